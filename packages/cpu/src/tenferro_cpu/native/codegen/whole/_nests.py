"""Nests of independent loops as functions of their own, so that compile time grows linearly with a program.

Equal nests are written once: their names follow the order of use. Every outer value of a nest is a parameter. Every
buffer has one parameter, and different buffers do not overlap, so each is ``noalias``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from tenferro_cpu.native._host import Host
from tenferro_cpu.native.codegen.builder import LLVM_TYPES, Int, Module, Pointer, ScalarBlock, Vec
from tenferro_cpu.native.codegen.machine._jit import FINISHED
from tenferro_cpu.native.codegen.operations._value import Value
from tenferro_cpu.native.codegen.whole._chunks import call_of, in_chunks
from tenferro_cpu.native.codegen.whole._frame import EntryBlock
from tenferro_cpu.native.codegen.whole._parts import in_parts, sums_of
from tenferro_cpu.native.codegen.whole._register_transpose import turned_nest
from tenferro_cpu.native.codegen.whole._statements import Writer
from tenferro_cpu.native.codegen.whole._streams import only_written, touched_bytes
from tenferro_cpu.native.codegen.whole._values import joined, parts, write_return
from tenferro_cpu.native.codegen.whole._vectors import SHORT_ROW_MAX, vector_loop
from tenferro_cpu.native.codegen.whole._work import is_small, self_contained, whole_work
from tenferro_tensor.loop_ir import Buffer, For, Let, Literal, Order, Statement, While, everything
from tenferro_tensor.loop_ir import Value as Number
from tenferro_tensor_core import Dim, DimLike

VECTOR_UNIT: Final = 64
"""Chunks of a vector loop are multiples of this many iterations: whole cache lines, in whole vectors."""

INLINE_MAX_WORK: Final = 128
"""Maximum work of a nest that stays inline."""

INLINE_MAX_NESTS: Final = 64
"""Maximum number of inline nests: compile time grows faster than the size of a function."""


class Nests:
    """The functions of nests, by their text.

    Args:
        module: where they are defined.
        host: the processor.
        small: whether no nest is worth chunks.
    """

    def __init__(self, module: Module, host: Host, small: bool) -> None:
        self.module, self.host, self.small = module, host, small
        self._names: dict[str, str] = {}

    def define(self, result: str, text: str) -> str:
        """The name of a private function with this text."""
        whole = f"{result}\0{text}"
        name = self._names.get(whole)
        if name is None:
            name = self._names[whole] = f"nest{len(self._names)}"
            self.module.require(
                name, lambda: f"define private {result} @{name}{text.replace('ATTRIBUTES', self.host.attributes, 1)}"
            )
        return name


class Main(Writer):
    """The function of the whole program, which calls its nests."""

    nests: Nests
    in_line = 0

    def for_(self, s: For) -> None:
        total = whole_work(s)
        if not self_contained(s):
            vectors = vector_loop(self, s, self.nests.host) if s.order is Order.ANY else None
            if vectors is None:
                super().for_(s)
            else:
                vectors.write(Int(self.block, "0"), self.size(s.extent))
        elif isinstance(total, int) and total <= INLINE_MAX_WORK and self.in_line < INLINE_MAX_NESTS:
            self.in_line += 1
            super().for_(s)
        else:
            write_nest(self, s)


class NestWriter(Writer):
    """The function of one nest.

    Args:
        outer: the function that calls it.
        block: the function.
        nests: the functions of all nests.

    Attributes:
        arguments: LLVM types, and names in the calling function.
        unit: chunks are multiples of this many iterations.
        finished: whether all frequently executed code uses explicit vectors, so that an optimiser gains nothing.
    """

    polls = False
    unit = 1
    finished = True

    def __init__(self, outer: Writer, block: ScalarBlock, nests: Nests) -> None:
        super().__init__(EntryBlock(block.module), block, outer.sizes, {}, [])
        self.outer, self.host, self.checks, self.small = outer, nests.host, outer.checks, nests.small
        self.arguments: list[tuple[str, str]] = []
        self._around: list[For] = []
        self._finish: Callable[[], None] | None = None
        self._written: frozenset[int] = frozenset()
        self._sizes: dict[Dim, str] = {}
        self._pointers: dict[int, Pointer] = {}

    def count(self, s: For, start: Int, end: Int) -> None:
        if not self._around:
            self._written = only_written(s)
        self._around.append(s)
        vectors = vector_loop(self, s, self.host)
        self.finished &= not any(map(_counts_flags, everything(s.body)))
        turned = turned_nest(self, s, self.host) if vectors is None and self.checks is None else None
        if len(self._around) == 1 and (vectors or turned):
            self.unit = VECTOR_UNIT
        if turned is not None:
            turned.write(start, end)
        elif vectors is None:
            self.finished &= not _computes_one_by_one(s)
            super().count(s, start, end)
        elif s.carries:
            vectors.reduce(start, end)
        else:
            touched = 0 if self.small else touched_bytes(self._around)
            write = partial(vectors.write, start, end, self._written, touched)
            if vectors.rows:
                self._by_length(vectors.rows, write, lambda: super(NestWriter, self).count(s, start, end))
            else:
                write()
            if vectors.streams:
                self._finish = partial(vectors.finish, touched)
        self._around.pop()
        if self._finish and not self._around:
            self._finish()

    def while_(self, s: While) -> None:
        self.finished = False
        super().while_(s)

    def _by_length(self, rows: Sequence[DimLike], short: Callable[[], None], long: Callable[[], None]) -> None:
        """Short rows as lanes of vectors, long ones one after the other."""
        b, (are_short, *more) = self.block, [self.size(n) < SHORT_ROW_MAX + 1 for n in rows]
        for flag in more:
            are_short = are_short & flag
        lanes, one, after = (b.new_label(word) for word in ("lanes", "row", "rows"))
        b.branch(are_short.name, lanes, one)
        for label, write in ((lanes, short), (one, long)):
            b.begin(label)
            write()
            b.jump(after)
        b.begin(after)

    def _parameter(self, llvm: str, name: str) -> str:
        self.arguments.append((llvm, name))
        return f"%p{len(self.arguments) - 1}"

    def size(self, extent: DimLike) -> Int:
        if not isinstance(extent, Dim):
            return Int(self.block, str(extent))
        found = self._sizes.get(extent)
        if found is None:
            found = self._sizes[extent] = self._parameter("i64", self.outer.size(extent).name)
        return Int(self.block, found)

    def value(self, number: Number) -> Value:
        if not isinstance(number, Literal) and number.number not in self.registers:
            outside = parts(self.outer.value(number))
            inside = [Vec(self.block, x.kind, (self._parameter(LLVM_TYPES[x.kind], x.names[0]),)) for x in outside]
            self.registers[number.number] = joined(inside)
        return super().value(number)

    def pointer(self, buffer: Buffer) -> Pointer:
        found = self._pointers.get(buffer.number)
        if found is None:
            name = self._parameter("ptr", self.outer.pointer(buffer).name)
            found = self._pointers[buffer.number] = Pointer(self.block, name)
        return found


def _counts_flags(s: Statement) -> bool:
    """Whether a statement converts booleans to numbers, whose masks the optimiser simplifies."""
    if not isinstance(s, Let) or s.result.dtype.kind == "b" or s.op.primitive.chooser is not None:
        return False
    return any(a.dtype.kind == "b" for a in s.args)


def _computes_one_by_one(s: For) -> bool:
    """Whether a scalar loop is an innermost one that computes something."""
    inside = list(everything(s.body))
    return any(isinstance(t, Let) for t in inside) and not any(isinstance(t, For) for t in inside)


def write_nest(main: Main, s: For) -> None:
    """Write a nest as a private function, and its calls."""
    block = ScalarBlock(main.block.module, main.block.fused, main.block.lookups)
    inner = NestWriter(main, block, main.nests)
    inner.entry.begin("entry")
    block.begin("body")
    sums = sums_of(s) if s.carries and not is_small(s) else None
    begun = s if sums is None else sums.from_neutral(s)
    inner.count(begun, Int(block, "%from"), Int(block, "%to"))
    results = [Vec(block, x.kind, x.names) for c in s.carries for x in parts(inner.value(c.result))]
    returned = write_return(block, results)
    typed = [f"{llvm}{' noalias' if llvm == 'ptr' else ''} %p{k}" for k, (llvm, _) in enumerate(inner.arguments)]
    finished = f" {FINISHED}" if inner.finished else ""
    head = f"({', '.join(['i64 %from', 'i64 %to', *typed])}) noinline{finished} ATTRIBUTES {{"
    name = main.nests.define(returned, "\n".join([head, *inner.entry.lines, "  br label %body", *block.lines, "}"]))
    given = [f"{llvm} {value}" for llvm, value in inner.arguments]
    call = f"call {returned} {call_of(name, Int(main.block, '0'), main.size(s.extent), given)}"
    alone = main.nests.small or is_small(s)
    if sums is not None and not alone:
        types = [LLVM_TYPES[x.kind] for x in results]
        _take(main, s, results, in_parts(main, s, sums, name, returned, types, inner.arguments))
    elif s.carries:
        _take(main, s, results, main.block.raw(call))
    elif alone:
        main.block.do(call)
    else:
        in_chunks(main, s, name, inner.arguments, inner.unit)
    if sums is not None:
        sums.add_first(main)


def _take(main: Main, s: For, results: Sequence[Vec], returned: str) -> None:
    """Assign the results of a nest to registers of the calling function."""
    b = main.block
    names = [returned]
    if len(results) > 1:
        whole = f"{{ {', '.join([LLVM_TYPES[x.kind] for x in results])} }}"
        names = [b.raw(f"extractvalue {whole} {returned}, {k}") for k in range(len(results))]
    numbers = iter([Vec(b, x.kind, (name,)) for x, name in zip(results, names, strict=True)])
    for c in s.carries:
        main.registers[c.result.number] = joined([next(numbers) for _ in range(1 + (c.result.dtype.kind == "c"))])
