"""Long sums in chunks: polls in between, and the thread team.

The number of chunks depends only on the length, so no bit depends on the number of threads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from tenferro_cpu.native.codegen.builder import Int, Loop, Pointer, ScalarBlock, Vec
from tenferro_cpu.native.codegen.operations._ops import apply
from tenferro_cpu.native.codegen.operations._value import Value, kind_of
from tenferro_cpu.native.codegen.whole._calls import PARALLEL_FOR, THREADS, leave_with
from tenferro_cpu.native.codegen.whole._chunks import ARGUMENT_BYTES, call_of
from tenferro_cpu.native.codegen.whole._frame import EntryBlock
from tenferro_cpu.native.codegen.whole._polls import count_down
from tenferro_cpu.native.codegen.whole._statements import Writer
from tenferro_cpu.native.codegen.whole._values import joined, parts, write_return
from tenferro_cpu.native.codegen.whole._work import TEAM_MIN_WORK, work
from tenferro_tensor import Op, Primitive
from tenferro_tensor.catalog import arithmetic, bits
from tenferro_tensor.loop_ir import Carried, For, Literal, accumulation
from tenferro_tensor_core import dim_max, floordiv

MAX_PARTS: Final = 64
"""Maximum number of chunks of a sum."""

PART_MULTIPLE: Final = 512
"""Chunks are multiples of this many elements."""

PARTS_PER_THREAD: Final = 4
"""Chunks per thread between two polls."""


def _least(dtype: np.dtype[Any]) -> Any:
    return -np.inf if dtype.kind == "f" else False if dtype.kind == "b" else int(np.iinfo(dtype).min)


def _most(dtype: np.dtype[Any]) -> Any:
    return np.inf if dtype.kind == "f" else True if dtype.kind == "b" else int(np.iinfo(dtype).max)


def _zero(dtype: np.dtype[Any]) -> Any:
    return dtype.type(0).item()


_NEUTRAL: Final[dict[Primitive, Any]] = {
    arithmetic.add: _zero,
    arithmetic.mul: lambda dtype: dtype.type(1).item(),
    arithmetic.maximum: _least,
    arithmetic.minimum: _most,
    bits.bitwise_or: _zero,
    bits.bitwise_xor: _zero,
    bits.bitwise_and: lambda dtype: True if dtype.kind == "b" else _most(dtype) if dtype.kind == "u" else -1,
}
"""Neutral element of each accumulating op."""


@dataclass(frozen=True)
class Sums:
    """How the carries of a loop accumulate.

    Attributes:
        carries: the carries.
        ops: the op by which each accumulates.
        neutral: neutral element of each.
    """

    carries: tuple[Carried, ...]
    ops: tuple[Op, ...]
    neutral: tuple[Literal, ...]

    def from_neutral(self, s: For) -> For:
        """The loop, started from the neutral elements."""
        return replace(s, carries=tuple([replace(c, first=v) for c, v in zip(s.carries, self.neutral, strict=True)]))

    def add_first(self, main: Writer) -> None:
        """Combine the initial values of the carries with the sums."""
        for k, (c, neutral) in enumerate(zip(self.carries, self.neutral, strict=True)):
            if c.first != neutral:
                found = self.combined(main.block, k, main.value(c.first), main.value(c.result))
                main.registers[c.result.number] = found

    def combined(self, block: ScalarBlock, k: int, x: Value, y: Value) -> Value:
        """Carry `k`, combined from both."""
        dtype = self.carries[k].inside.dtype
        return apply(block, self.ops[k], (dtype, dtype), dtype, x, y)


def sums_of(s: For) -> Sums | None:
    """How the carries of a loop accumulate, or None if one of them does not."""
    ops = [accumulation(c, s.body) for c in s.carries]
    known = [op for op in ops if op is not None]
    if len(known) < len(ops):
        return None
    dtypes = [c.inside.dtype for c in s.carries]
    neutral = [Literal(_NEUTRAL[op.primitive](d), d) for op, d in zip(known, dtypes, strict=True)]
    return Sums(s.carries, tuple(known), tuple(neutral))


def in_parts(
    main: Writer,
    s: For,
    sums: Sums,
    name: str,
    returned: str,
    types: Sequence[str],
    arguments: Sequence[tuple[str, str]],
) -> str:
    """Write an accumulating loop; returns the register that holds its total.

    Args:
        main: the function that runs it.
        s: the loop.
        sums: how it accumulates.
        name: the function of a range of it.
        returned: LLVM type that this function returns.
        types: types of the numbers in it.
        arguments: LLVM types and names of its further arguments.
    """
    b, each = main.block, work(s.body) + 1
    least = (floordiv(TEAM_MIN_WORK, each * PART_MULTIPLE) + 1) * PART_MULTIPLE
    length = main.size(dim_max(least, (floordiv(s.extent, MAX_PARTS * PART_MULTIPLE) + 1) * PART_MULTIPLE))
    handed = [llvm for llvm, _ in arguments]
    b.module.require(f"{name}.part", lambda: _part(name, returned, types, handed))
    b.module.require(f"{name}.parts", lambda: _parts(main, name, handed))
    b.module.require(f"{name}.total", lambda: _total(main, sums, name, returned, types))
    given = [f"{llvm} {value}" for llvm, value in arguments]
    extent, slots = main.size(s.extent), main.reserved("i64", MAX_PARTS * len(types))
    many, few, after = (b.new_label(word) for word in ("many", "few", "whole"))
    b.branch((extent > length).name, many, few)
    b.begin(few)
    one = b.raw(f"call {returned} {call_of(name, Int(b, '0'), extent, given)}")
    b.jump(after)
    b.begin(many)
    count = (extent + length - 1) // length
    numbers = [f"i64 {x.name}" for x in (extent, length, count, main.size(each))]
    leave_with(
        main,
        Int(b, b.raw(f"call i64 @{name}.parts({', '.join(['ptr %context', f'ptr {slots.name}', *numbers, *given])})")),
    )
    total, here = b.raw(f"call {returned} @{name}.total(ptr {slots.name}, i64 {count.name})"), b.label
    b.jump(after)
    b.begin(after)
    return b.raw(f"phi {returned} [ {one}, %{few} ], [ {total}, %{here} ]")


def _part(name: str, returned: str, types: Sequence[str], handed: Sequence[str]) -> str:
    """The function that runs one chunk; the team calls it with the arguments in memory and the number of the chunk."""
    lines = []
    for k, llvm in enumerate(["ptr", "i64", "i64", "i64", *handed]):
        lines.append(f"  %a{k} = getelementptr inbounds i64, ptr %arguments, i64 {k}")
        lines.append(f"  %v{k} = load {llvm}, ptr %a{k}, align {ARGUMENT_BYTES}")
    for k, llvm in enumerate(types):
        value = "%found" if len(types) == 1 else f"%x{k}"
        if len(types) > 1:
            lines.append(f"  {value} = extractvalue {returned} %found, {k}")
        lines.append(f"  %s{k} = getelementptr inbounds i64, ptr %slot, i64 {k}")
        lines.append(f"  store {llvm} {value}, ptr %s{k}, align {ARGUMENT_BYTES}")
    given = ", ".join(["i64 %from", "i64 %to", *[f"{llvm} %v{k}" for k, llvm in enumerate(handed, 4)]])
    at = 2 * (4 + len(handed))
    return "\n".join(
        [
            f"define private void @{name}.part(ptr %arguments, i64 %number) nounwind {{",
            *lines[:at],
            "  %which = add nsw i64 %number, %v1",
            "  %from = mul nsw i64 %which, %v2",
            "  %end = add nsw i64 %from, %v2",
            "  %to = call i64 @llvm.smin.i64(i64 %end, i64 %v3)",
            f"  %place = mul nsw i64 %which, {len(types)}",
            "  %slot = getelementptr inbounds i64, ptr %v0, i64 %place",
            f"  %found = call {returned} @{name}({given})",
            *lines[at:],
            "  ret void",
            "}",
        ]
    )


def _parts(main: Writer, name: str, handed: Sequence[str]) -> str:
    """The function that runs all chunks; returns the first nonzero status of a poll."""
    b = ScalarBlock(main.block.module)
    frame = Writer(EntryBlock(b.module), b, main.sizes, {}, [])
    frame.entry.begin("entry")
    b.begin("body")
    extent, length, count, each = (Int(b, f"%{word}") for word in ("extent", "length", "count", "each"))
    arguments = [(llvm, f"%q{k}") for k, llvm in enumerate(handed)]
    memory, context = frame.reserved("i64", 4 + len(arguments)), Pointer(b, "%context")
    threads = context.element("i8", THREADS).load_int()
    several = threads > 1
    step = several.choose(threads.times(PARTS_PER_THREAD), 1)
    first = [("ptr", "%slots"), ("i64", "0"), ("i64", length.name), ("i64", extent.name), *arguments]
    for k, (llvm, value) in enumerate(first):
        memory.element("i64", k).store(llvm, value, ARGUMENT_BYTES)

    def some(start: Int) -> None:
        memory.element("i64", 1).store("i64", start.name, ARGUMENT_BYTES)
        left = count - start
        here = (left < step).choose(left, step)
        team, alone, after = (b.new_label(word) for word in ("team", "alone", "ran"))
        b.branch(several.name, team, alone)
        b.begin(team)
        run = context.element("i8", PARALLEL_FOR).load_pointer()
        b.do(f"call void {run.name}(ptr @{name}.part, ptr {memory.name}, i64 {here.name}, i64 {threads.name})")
        b.jump(after)
        b.begin(alone)
        b.do(f"call void @{name}.part(ptr {memory.name}, i64 0)")
        b.jump(after)
        b.begin(after)
        count_down(frame, here.times(length).times(each))

    frame.stepped(Int(b, "0"), count, step, some)
    b.do("ret i64 0")
    words = [f"i64 %{word}" for word in ("extent", "length", "count", "each")]
    head = ["ptr %context", "ptr %slots", *words, *[f"{llvm} {value}" for llvm, value in arguments]]
    return "\n".join(
        [
            f"define private i64 @{name}.parts({', '.join(head)}) noinline nounwind {{",
            *frame.entry.lines,
            "  br label %body",
            *b.lines,
            "}",
        ]
    )


def _total(main: Writer, sums: Sums, name: str, returned: str, types: Sequence[str]) -> str:
    """The function that combines the results of the chunks in order."""
    b = ScalarBlock(main.block.module, main.block.fused, main.block.lookups)
    b.begin("entry")
    slots, dtypes = Pointer(b, "%slots"), [c.inside.dtype for c in sums.carries]
    kinds = [kind_of(d) for d in dtypes for _ in range(2 if d.kind == "c" else 1)]

    def part(number: Int) -> list[Vec]:
        first = slots.element("i64", number.times(len(types)))
        found = [first.element("i64", k).load(llvm, ARGUMENT_BYTES) for k, llvm in enumerate(types)]
        return [Vec(b, kind, (x,)) for kind, x in zip(kinds, found, strict=True)]

    def values(numbers: Sequence[Vec]) -> list[Value]:
        rest = iter(numbers)
        return [joined([next(rest) for _ in range(2 if d.kind == "c" else 1)]) for d in dtypes]

    with Loop(b, [1], part(Int(b, "0"))) as loop:
        (number,) = loop.counters
        loop.leave_unless(number < Int(b, "%count"))
        both = zip(values(loop.values), values(part(number)), strict=True)
        loop.values = [x for k, (one, other) in enumerate(both) for x in parts(sums.combined(b, k, one, other))]
        loop.counters = [number + 1]
    write_return(b, loop.values)
    return "\n".join(
        [f"define private {returned} @{name}.total(ptr %slots, i64 %count) noinline nounwind {{", *b.lines, "}"]
    )
