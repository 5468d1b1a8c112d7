"""Large nests in chunks: polls in between, and the thread team for chunks that may run in any order.

Iterations of such a nest are independent, so its bits depend neither on the chunks nor on the number of threads.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tenferro_cpu.native.codegen.builder import Int, Pointer, ScalarBlock
from tenferro_cpu.native.codegen.whole._calls import PARALLEL_FOR, THREADS, leave_with
from tenferro_cpu.native.codegen.whole._frame import EntryBlock
from tenferro_cpu.native.codegen.whole._polls import count_down
from tenferro_cpu.native.codegen.whole._statements import Writer
from tenferro_cpu.native.codegen.whole._work import TEAM_MIN_WORK, work
from tenferro_tensor.loop_ir import For
from tenferro_tensor_core import DimLike, dim_min, floordiv

BATCH_WORK: Final = 1 << 21
"""Work of a nest between two polls."""

CHUNK_WORK: Final = 1 << 15
"""Work that a thread takes at once."""

ARGUMENT_BYTES: Final = 8
"""Bytes of an argument in memory."""


def call_of(name: str, start: Int, end: Int, given: Sequence[str]) -> str:
    """The instruction that runs a range of the outermost loop of a nest."""
    return f"@{name}({', '.join([f'i64 {start.name}', f'i64 {end.name}', *given])})"


def in_chunks(main: Writer, s: For, name: str, arguments: Sequence[tuple[str, str]], unit: int) -> None:
    """Run a nest: one batch after the other, each by the team where that pays; a small nest without a poll.

    Args:
        main: the function that runs it.
        s: the nest.
        name: its function.
        arguments: LLVM types and names of its arguments besides the range.
        unit: chunks are multiples of this many iterations.
    """
    b, each = main.block, work(s.body) + 1
    length = dim_min(s.extent, _iterations(BATCH_WORK, each, unit))
    least, piece = floordiv(TEAM_MIN_WORK, each) + 1, _iterations(CHUNK_WORK, each, unit)
    numbers = [f"i64 {main.size(d).name}" for d in (s.extent, length, least, piece, each * length)]
    types = [llvm for llvm, _ in arguments]
    b.module.require(f"{name}.piece", lambda: _piece(name, types))
    b.module.require(f"{name}.all", lambda: _all(main, name, types))
    given = [f"{llvm} {value}" for llvm, value in arguments]
    extent = main.size(s.extent)
    many, few, after = (b.new_label(word) for word in ("many", "few", "whole"))
    b.branch((extent > main.size(least)).name, many, few)
    b.begin(few)
    b.do(f"call void {call_of(name, Int(b, '0'), extent, given)}")
    b.jump(after)
    b.begin(many)
    leave_with(main, Int(b, b.raw(f"call i64 @{name}.all({', '.join(['ptr %context', *numbers, *given])})")))
    b.jump(after)
    b.begin(after)


def _iterations(work: int, each: DimLike, unit: int) -> DimLike:
    """Number of iterations with about this work, in whole units."""
    return (floordiv(work, each * unit) + 1) * unit


def _all(main: Writer, name: str, types: Sequence[str]) -> str:
    """The function that runs all of a nest; returns the first nonzero status of a poll."""
    b = ScalarBlock(main.block.module)
    frame = Writer(EntryBlock(b.module), b, main.sizes, {}, [])
    frame.entry.begin("entry")
    b.begin("body")
    extent, step, least, piece, amount = (Int(b, f"%{word}") for word in ("extent", "step", "least", "piece", "amount"))
    arguments = [(llvm, f"%q{k}") for k, llvm in enumerate(types)]
    given = [f"{llvm} {value}" for llvm, value in arguments]
    slots, context = frame.reserved("i64", 3 + len(arguments)), Pointer(b, "%context")

    def batch(start: Int) -> None:
        end = start.plus(step)
        last = Int(b, b.raw(f"call i64 @llvm.smin.i64(i64 {end.name}, i64 {extent.name})"))
        count = last - start
        threads = context.element("i8", THREADS).load_int()
        team, alone, after = (b.new_label(word) for word in ("team", "alone", "ran"))
        b.branch(((threads > 1) & (count > least)).name, team, alone)
        b.begin(team)
        handed = [("i64", piece.name), ("i64", start.name), ("i64", last.name), *arguments]
        for k, (llvm, value) in enumerate(handed):
            slots.element("i64", k).store(llvm, value, ARGUMENT_BYTES)
        pieces = (count + piece - 1) // piece
        run = context.element("i8", PARALLEL_FOR).load_pointer()
        job = f"ptr @{name}.piece, ptr {slots.name}, i64 {pieces.name}, i64 {threads.name}"
        b.do(f"call void {run.name}({job})")
        b.jump(after)
        b.begin(alone)
        b.do(f"call void {call_of(name, start, last, given)}")
        b.jump(after)
        b.begin(after)
        count_down(frame, amount)

    frame.stepped(Int(b, "0"), extent, step, batch)
    b.do("ret i64 0")
    head = ["ptr %context", *[f"i64 %{word}" for word in ("extent", "step", "least", "piece", "amount")], *given]
    return "\n".join(
        [
            f"define private i64 @{name}.all({', '.join(head)}) noinline nounwind {{",
            *frame.entry.lines,
            "  br label %body",
            *b.lines,
            "}",
        ]
    )


def _piece(name: str, types: Sequence[str]) -> str:
    """The function that runs one chunk; the team calls it with the arguments in memory and the number of the chunk."""
    lines = []
    for k, llvm in enumerate(["i64", "i64", "i64", *types]):
        lines.append(f"  %a{k} = getelementptr inbounds i64, ptr %arguments, i64 {k}")
        lines.append(f"  %v{k} = load {llvm}, ptr %a{k}, align {ARGUMENT_BYTES}")
    given = ", ".join(["i64 %from", "i64 %to", *[f"{llvm} %v{k}" for k, llvm in enumerate(types, 3)]])
    return "\n".join(
        [
            f"define private void @{name}.piece(ptr %arguments, i64 %number) nounwind {{",
            *lines,
            "  %before = mul nsw i64 %number, %v0",
            "  %from = add nsw i64 %v1, %before",
            "  %end = add nsw i64 %from, %v0",
            "  %to = call i64 @llvm.smin.i64(i64 %end, i64 %v2)",
            f"  call void @{name}({given})",
            "  ret void",
            "}",
        ]
    )
