"""Loops as explicit vectors: a loop over several vectors at once, and the remainder under a mask.

Mathematics is inlined in the form, width and bits of the kernels. Inner loops run for all lanes together and carry
vectors, so that sums over rows stay in registers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from contextlib import contextmanager
from typing import Any, Final, cast

import numpy as np

from tenferro_cpu.native._host import Host
from tenferro_cpu.native.codegen.builder import LLVM_TYPES, Block, Branch, DoLoop, Int, Pointer, Vec
from tenferro_cpu.native.codegen.builder import _memory as memory
from tenferro_cpu.native.codegen.builder._types import indices
from tenferro_cpu.native.codegen.operations._convert import resized
from tenferro_cpu.native.codegen.operations._ops import apply
from tenferro_cpu.native.codegen.operations._value import Value, kind_of, literal
from tenferro_cpu.native.codegen.whole import _ports as ports
from tenferro_cpu.native.codegen.whole._cascade import SummedRows, trailing
from tenferro_cpu.native.codegen.whole._combine import Combiner
from tenferro_cpu.native.codegen.whole._combs import Comb
from tenferro_cpu.native.codegen.whole._inner_loops import together, until_all_leave
from tenferro_cpu.native.codegen.whole._lanes import Lanes, every_other, lanes_of, same_bits
from tenferro_cpu.native.codegen.whole._statements import Writer
from tenferro_cpu.native.codegen.whole._streams import Streams, streamed_bytes
from tenferro_cpu.native.codegen.whole._values import joined, names, parts, stored_type
from tenferro_tensor.loop_ir import (
    Affine,
    Buffer,
    For,
    Let,
    Literal,
    Load,
    Order,
    Position,
    Reg,
    Statement,
    Store,
    While,
    everything,
)
from tenferro_tensor.loop_ir import Value as Number
from tenferro_tensor_core import DimLike

MIN_BITS: Final = 128
"""Width of the narrowest vectors."""

BYTE: Final = 8
"""Bits of a byte."""

MIN_ITERATIONS: Final = 2
"""Shortest loop that is vectorised for the sake of inner loops."""

GATHER_MIN_INSTRUCTIONS: Final = 8
"""Minimum instructions per gathered access for which vectors are faster than scalar code."""

SUMMED_MIN_ITERATIONS: Final = 8
"""Shortest loop that is vectorised for the sake of its carries."""

SHORT_ROW_MAX: Final = 8
"""Maximum length of rows that are assigned to lanes."""

LIGHT, CHAIN, HEAVY, HUGE = 24, 100, 600, 1500
"""Instruction counts of one vector's work at which the interleaving changes.

Code size is compile time. Very short loops are dominated by their counter, long chains wait for their own results; in
between the processor's out-of-order window suffices.
"""

Place = tuple[Int, Int]
"""Index of the first iteration, and the increment of the next."""


def vector_loop(writer: Writer, s: For, host: Host) -> VectorLoop | None:
    """The loop as vectors, or None if scalar code is faster."""
    if s.order is Order.GIVEN or s.swaps or writer.checks is not None:
        return None
    lanes = lanes_of(s, writer.block.fused)
    if lanes is None or (
        lanes.instructions < lanes.apart * GATHER_MIN_INSTRUCTIONS and not (lanes.mathematics or lanes.apart_inside)
    ):
        return None
    if lanes.apart_inside and (s.carries or lanes.instructions > HEAVY or not short_rows(lanes)):
        return None
    bits = _bits(s, lanes, BYTE * host.vector_bytes)
    if not bits or not (lanes.varying or s.carries):
        return None
    if host.tables and lanes.mathematics and not same_bits(lanes, bits):
        return None
    return VectorLoop(writer, s, lanes, host, bits)


def _bits(s: For, lanes: Lanes, most: int) -> int:
    """Width of the vectors, smaller than the maximum for a short loop; 0 if it has too few iterations."""
    if not isinstance(s.extent, int):
        return most
    if s.carries or lanes.inside:
        return most if s.extent >= (SUMMED_MIN_ITERATIONS if s.carries else MIN_ITERATIONS) else 0
    bits = min(most, s.extent * lanes.bits)
    exact = bits & (bits - 1) == 0 and bits >= MIN_BITS
    return bits if bits == most or (exact and not lanes.mathematics) else 0


def interleaving(instructions: int, host: Host) -> int:
    """Number of vectors that the main loop takes at once; a power of two, because the trip count is masked with it."""
    most = 4 if host.registers >= 32 else 2
    if instructions <= LIGHT or CHAIN < instructions <= HEAVY:
        return most
    return 1 if instructions > HUGE else 2


def short_rows(lanes: Lanes) -> list[DimLike]:
    """Lengths of inner loops that run along rows, one row per lane; empty if one is known to be long.

    Vectors along short rows would be mostly empty, and their lanes would be combined one row at a time.
    """
    found = list(dict.fromkeys([s.extent for s in everything(lanes.varying) if isinstance(s, For)]))
    return [] if any(isinstance(n, int) and n > SHORT_ROW_MAX for n in found) else found


def _folded(combiner: Combiner, value: Value) -> list[str]:
    """Combine the lanes of one vector by halves; returns names of scalars.

    Vectors become narrower on the way. With full ones, LLVM 22 picks wrong lanes for integers when optimising.
    """
    outer = block = combiner.block
    while block.lanes > 1:
        half = Block(block.module, block.lanes // 2, 1, block.fused, block.tables)
        half.take_over(block)
        sides: list[list[Vec]] = [[], []]
        for x in parts(value):
            wide = f"<{block.lanes} x {LLVM_TYPES[x.kind]}>"
            for side, found in enumerate(sides):
                order = indices([side * half.lanes + k for k in range(half.lanes)])
                name = half.raw(f"shufflevector {wide} {x.names[0]}, {wide} poison, {order}")
                found.append(Vec(half, x.kind, (name,)))
        combiner, block = Combiner(half, combiner.kind, combiner.dtype), half
        value = combiner.combine(joined(sides[0]), joined(sides[1]))
    names = [block.first_lane(x) for x in parts(value)]
    outer.take_over(block)
    return names


def _operands(s: Statement) -> Sequence[Number]:
    """The numbers that a statement needs in every lane."""
    match s:
        case Let(args=args):
            return args
        case Store(value=value):
            return (value,)
        case For(carries=carries):
            return [number for c in carries for number in (c.first, c.following)]
        case While(carries=carries, condition=condition):
            return [condition, *[number for c in carries for number in (c.first, c.following)]]
    return ()


class VectorLoop:
    """One loop as vectors.

    Args:
        writer: writer of the function.
        s: the loop.
        lanes: its analysis for vectors.
        host: the processor.
        bits: width of a vector.

    Attributes:
        block: instructions on vectors; writes to the function.
        width: vectors that the main loop takes at once.
        length: number of iterations.
        streams: whether stores may bypass the caches.
    """

    length: Int
    streams = False

    def __init__(self, writer: Writer, s: For, lanes: Lanes, host: Host, bits: int) -> None:
        self.writer, self.s, self.lanes, self.host = writer, s, lanes, host
        self._single = s.extent == bits // lanes.bits  # one vector does all of it
        one = self._single or bool(lanes.combs)
        self.width = 1 if one else interleaving(0 if s.carries else lanes.instructions, host)
        scalar = writer.block
        self.block = Block(scalar.module, bits // lanes.bits, self.width, scalar.fused, host.tables)
        self._fixed: dict[int, list[Vec]] = {}
        self._places: dict[Affine, Place] = {}
        self._ports: dict[tuple[int, Affine], ports.Port] = {}
        self._values: dict[int, Value] = {}
        self._combs: dict[tuple[int, int], Comb] = {}
        self._strides: dict[tuple[DimLike | str, int], tuple[Int, Vec]] = {}
        self._columns: dict[int, tuple[Comb, int]] = {}
        self._streamed: Set[tuple[int, Affine]] = frozenset()

    @property
    def rows(self) -> list[DimLike]:
        """Symbolic lengths of rows for which the loop is used only up to a bound."""
        return [n for n in short_rows(self.lanes) if not isinstance(n, int)] if self.lanes.apart_inside else []

    def write(
        self, start: Int, end: Int, written: Set[int] = frozenset(), touched: DimLike = 0, *, past_caches: bool = False
    ) -> None:
        """The iterations from `start` below `end`.

        Args:
            start: the first iteration.
            end: one past the last iteration.
            written: numbers of buffers that the nest only writes.
            touched: bytes that the nest touches; if they exceed the caches, stores bypass them.
            past_caches: whether all stores bypass them, to memory aligned to cache lines.
        """
        scalar = self.writer.block
        if self._single and (start.name, end.name) == ("0", str(self.s.extent)):
            self._begin(start, end)
            self._body([Int(self.block, "0")], None)
            scalar.take_over(self.block)
            return
        with Branch(scalar, start < end):
            self._begin(start, end)
            if past_caches:
                self._streamed = self._ports.keys()
            self._over_elements(self._streams(written, touched))
            scalar.take_over(self.block)

    def _streams(self, written: Set[int], touched: DimLike) -> Streams | None:
        """The stores that may bypass the caches, if there are any and it may pay."""
        limit = self.host.cache_bytes
        if self.lanes.mathematics or not limit or (isinstance(touched, int) and touched <= limit):
            return None
        found = {}
        for s in self.lanes.varying:
            if isinstance(s, Store) and s.buffer.number in written:
                port = self._ports.get((s.buffer.number, s.at))
                if port is not None and streamed_bytes(self.block, port):
                    found[s.buffer.number, s.at] = port
        if not found:
            return None
        self.streams = True
        far = Int(self.block, self.writer.size(touched).name) > limit
        return Streams(self.block, found, far)

    def finish(self, touched: DimLike) -> None:
        """Order the stores past the caches before later ones."""
        w = self.writer
        with Branch(w.block, w.size(touched) > self.host.cache_bytes):
            w.block.fence()

    def _begin(self, start: Int, end: Int) -> None:
        """Values shared by all iterations; instructions on vectors follow those on numbers."""
        w, scalar = self.writer, self.writer.block
        w.write(self.lanes.uniform)
        w.registers[self.s.index.number] = Vec(scalar, "i64", (start.name,))
        count = end - start
        self._place_all()
        self.block.take_over(scalar)
        self.length = Int(self.block, count.name)
        self._prepare()

    def reduce(self, start: Int, end: Int) -> None:
        """The same for a loop with carries, which are combined in the order of the reducing kernels.

        That order depends only on the length and on the width of vectors. Sums of contiguous rows are therefore
        bit-equal to those kernels, except where these cut long rows or take many short ones at once, and where short
        rows are lanes here.
        """
        scalar, carries = self.writer.block, self.s.carries
        dtypes = [c.inside.dtype for c in carries]
        kinds = [kind for kind, _ in self.lanes.combined]
        numbers = [x for kind, d in zip(kinds, dtypes, strict=True) for x in parts(Combiner(scalar, kind, d).neutral())]
        with Branch(scalar, start < end, numbers) as some:
            self._begin(start, end)
            combiners = [Combiner(self.block, kind, d) for kind, d in zip(kinds, dtypes, strict=True)]
            most = self.s.extent if isinstance(self.s.extent, int) else None
            totals = trailing(SummedRows(self, combiners), self.writer.entry, most)
            folded = [name for c, total in zip(combiners, totals, strict=True) for name in _folded(c, total)]
            scalar.take_over(self.block)
            some.values = [Vec(scalar, x.kind, (name,)) for x, name in zip(numbers, folded, strict=True)]
        rest = iter(some.values)
        for c, dtype, kind in zip(carries, dtypes, kinds, strict=True):
            total = joined([next(rest) for _ in range(1 + (dtype.kind == "c"))])
            self.writer.registers[c.result.number] = self._with_first(kind, c.first, dtype, total)

    def _with_first(self, kind: str, first: Number, dtype: np.dtype[Any], total: Value) -> Value:
        scalar = self.writer.block
        before, combiner = self.writer.value(first), Combiner(scalar, kind, dtype)
        if isinstance(first, Literal) and names([before]) == names([combiner.neutral()]):
            return total
        return combiner.combine(before, total)

    def starts(self, first: Int) -> list[Int]:
        """First elements of the interleaved vectors."""
        return [first + k * self.block.lanes for k in range(self.block.interleave)]

    def read(self, starts: Sequence[Int], mask: Vec | None = None) -> list[Value]:
        """The terms of the carries, for as many vectors at once as suits their combination."""
        b, found = self.block, []
        some = interleaving(self.lanes.instructions, self.host)
        for k in range(0, len(starts), some):
            here = starts[k : k + some]
            b.interleave = len(here)
            self._body(here, mask)
            found.append([parts(self.value(term, here)) for _, term in self.lanes.combined])
        b.interleave = len(starts)
        return [
            joined([Vec(b, x[0].kind, tuple([name for v in x for name in v.names])) for x in zip(*term, strict=True)])
            for term in zip(*found, strict=True)
        ]

    def _over_elements(self, streams: Streams | None) -> None:
        b, n = self.block, self.length
        step = b.lanes * self.width
        first = Int(b, "0") if streams is None else self._past_caches(streams, step)
        main = (n & -step) if streams is None else first + ((n - first) & -step)
        with Branch(b, first < main), DoLoop(b, first, main, step) as loop:
            self._body(self.starts(loop.index), None)
        b.interleave = 1
        with Branch(b, main < n), DoLoop(b, main, n, b.lanes) as loop:
            self._body([loop.index], b.below(loop.index, n))

    def _past_caches(self, streams: Streams, step: int) -> Int:
        """The main loop with stores past the caches, where that pays; returns the first element after it."""
        b, n = self.block, self.length
        with Branch(b, streams.far, [Int(b, "0")], rarely=True) as far:
            head, pays = streams.head(n, step)
            with Branch(b, pays, far.values) as done:
                b.interleave = 1
                with Branch(b, head > 0):
                    self._body([Int(b, "0")], b.below(Int(b, "0"), head))
                b.interleave = self.width
                main = head + ((n - head) & -step)
                self._streamed = streams.ports.keys()
                with DoLoop(b, head, main, step) as loop:
                    self._body(self.starts(loop.index), None)
                self._streamed = frozenset()
                done.values = [main]
            far.values = done.values
        return far.values[0]

    # What all iterations share.

    def _place_all(self) -> None:
        """Positions in the first iteration, and their increments; integer registers with regular increments."""
        self._place(Affine.of(self.s.index))
        for s in self.lanes.varying:
            self._place_one(s)

    def _place_one(self, s: Statement) -> None:
        w = self.writer
        if isinstance(s, Load | Store):
            self._place(s.at)
        elif isinstance(s, Position):
            first, _ = self._place(s.index)
            if not self._is_scattered(s.result):
                w.registers[s.result.number] = Vec(w.block, "i64", (first.name,))
                self._place(Affine.of(s.result))

    def _place(self, at: Affine) -> Place:
        found = self._places.get(at)
        if found is None:
            regular = Affine(at.constant, tuple([t for t in at.terms if not self._is_scattered(t[0])]))
            step = self.lanes.step(regular)
            assert not isinstance(step, str)
            first, by = self.writer.number(regular), self.writer.size(step)
            found = self._places[at] = Int(self.block, first.name), Int(self.block, by.name)
        return found

    def _is_scattered(self, reg: Reg) -> bool:
        return reg.number in self.lanes.differing and reg.number not in self.lanes.steps

    def _prepare(self) -> None:
        """Ports, strides of those in inner loops, and uniform numbers broadcast to every lane."""
        self._strides = {}
        for loop in self.lanes.varying:
            for s in everything((loop,)) if isinstance(loop, For | While) else ():
                if isinstance(s, Load | Store) and not self._scattered_terms(s.at):
                    key = step, _ = self._stride_key(s.buffer, s.at)
                    if not isinstance(step, int | str) and key not in self._strides:
                        by = Int(self.block, self.writer.size(step).name)
                        self._strides[key] = self._stride(s.buffer, by)
        for s in self.lanes.varying:
            self._open_port(s)
        for s in everything(self.lanes.varying):
            for number in _operands(s):
                if not (isinstance(number, Reg) and number.number in self.lanes.inside):
                    self.share(number)
        for _, term in self.lanes.combined:
            self.share(term)

    def _open_port(self, s: Statement) -> None:
        if isinstance(s, Load | Store) and not self._scattered_terms(s.at):
            self._ports[s.buffer.number, s.at] = self._port(s.buffer, s.at)

    def share(self, number: Number) -> None:
        """Broadcast a number that all iterations share."""
        if isinstance(number, Reg) and not self.lanes.differs(number):
            b, value = self.block, self.writer.value(number)
            self._fixed[number.number] = [b.repeated(x.kind, LLVM_TYPES[x.kind], x.names[0]) for x in parts(value)]

    def _scattered_terms(self, at: Affine) -> list[tuple[Reg, DimLike]]:
        return [term for term in at.terms if self._is_scattered(term[0])]

    def _port(self, buffer: Buffer, at: Affine) -> ports.Port:
        first, by = self._places[at]
        pointer = self._pointer(buffer, first)
        if self.lanes.step(at) == 1:
            return ports.Port(buffer.dtype, pointer)
        stride, steps = self._strides.get(self._stride_key(buffer, at)) or self._stride(buffer, by)
        return ports.Port(buffer.dtype, pointer, stride, steps)

    def _stride_key(self, buffer: Buffer, at: Affine) -> tuple[DimLike | str, int]:
        return self.lanes.step(at), buffer.dtype.itemsize

    def _stride(self, buffer: Buffer, by: Int) -> tuple[Int, Vec]:
        """Bytes from one iteration to the next, and the same for each lane of a vector."""
        b, stride = self.block, by * buffer.dtype.itemsize
        return stride, b.repeated("i64", "i64", stride.name) * b.lane_numbers()

    def _pointer(self, buffer: Buffer, first: Int) -> Pointer:
        llvm = f"[{buffer.dtype.itemsize} x i8]"
        return Pointer(self.block, self.writer.pointer(buffer).name).element(llvm, first)

    # One iteration of several vectors.

    def _body(self, starts: Sequence[Int], mask: Vec | None) -> None:
        self._values, self._combs, self._columns = {}, {}, {}
        for s in self.lanes.varying:
            self._one(s, starts, mask)

    def _one(self, s: Statement, starts: Sequence[Int], mask: Vec | None) -> None:
        if isinstance(s, Let):
            if not self._neighbours(s):
                self._values[s.result.number] = self._applied(s, *[self.value(a, starts) for a in s.args])
        elif isinstance(s, Position) and self._is_scattered(s.result):
            self._values[s.result.number] = self._numbers(s.index, starts)
        elif isinstance(s, Load) and s in self.lanes.combs:
            self._columns[s.result.number] = self._comb(s, starts, mask), cast(int, s.at.constant)
        elif isinstance(s, Load):
            self._values[s.result.number] = self._load(s, starts, mask)
        elif isinstance(s, Store):
            self._store(s, starts, mask)
        elif isinstance(s, For):
            together(self, s, starts, mask)
        elif isinstance(s, While):
            until_all_leave(self, s, starts, mask)

    def _applied(self, s: Let, *args: Value) -> Value:
        return apply(self.block, s.op, tuple([a.dtype for a in s.args]), s.result.dtype, *args)

    def _neighbours(self, s: Let) -> bool:
        """Combine two neighbours of short rows, and with them all such pairs; whether the arguments are two."""
        found = [self._columns.get(a.number) if isinstance(a, Reg) else None for a in s.args]
        if len(found) != 2 or found[0] is None or found[1] is None:
            return False
        (row, k), (other, after) = found[0], found[1]
        if row is not other or len(row.vectors) % 2 or k % 2 or after != k + 1:
            return False
        self._columns[s.result.number] = row.neighbours(s.op, lambda x, y: self._applied(s, x, y)), k // 2
        return True

    def _comb(self, s: Load, starts: Sequence[Int], mask: Vec | None) -> Comb:
        """The short rows of a load; of the last ones under a mask, whose vectors may be empty."""
        b, length = self.block, self.lanes.combs[s]
        found = self._combs.get((s.buffer.number, length))
        if found is None:
            base, (start,) = self._port(s.buffer, s.at - cast(int, s.at.constant)), starts
            vectors = []
            for first in range(0, length * b.lanes, b.lanes):
                some = None if mask is None else b.below(Int(b, str(first)), (self.length - start) * length)
                place = ports.Port(s.buffer.dtype, base.pointer)
                vectors.append(ports.load(b, place, [start * length + first], some, idle="zeroinitializer"))
            found = self._combs[s.buffer.number, length] = Comb(vectors)
        return found

    def inside(self, s: Statement, starts: Sequence[Int], mask: Vec | None) -> None:
        """A statement of an inner loop, whose positions change between its iterations."""
        scalar = self.writer.block
        scalar.take_over(self.block)
        if isinstance(s, Let | Position | Load) and not self.lanes.differs(s.result):
            self.writer.write((s,))
            self.block.take_over(scalar)
            self.share(s.result)
            return
        self._place_one(s)
        self.block.take_over(scalar)
        self._open_port(s)
        self._one(s, starts, mask)

    @contextmanager
    def forgetting(self) -> Iterator[None]:
        """A scope of an inner loop; values known only inside are dropped after it."""
        known = dict(self._values), dict(self._places), dict(self._ports)
        yield
        self._values, self._places, self._ports = known

    def carry(self, registers: Sequence[Reg], vectors: Sequence[Vec]) -> None:
        """Assign these vectors to registers."""
        rest = iter(vectors)
        for reg in registers:
            self._values[reg.number] = joined([next(rest) for _ in range(1 + (reg.dtype.kind == "c"))])

    def value(self, number: Number, starts: Sequence[Int]) -> Value:
        b = self.block
        if isinstance(number, Literal):
            return literal(b, number.value, number.dtype)
        if not self.lanes.differs(number):
            return joined([Vec(b, x.kind, x.names * b.interleave) for x in self._fixed[number.number]])
        found = self._values.get(number.number)
        if found is None:
            column = self._columns.get(number.number)
            made = self._numbers(Affine.of(number), starts) if column is None else column[0].column(column[1])
            found = self._values[number.number] = made
        return found

    def _numbers(self, at: Affine, starts: Sequence[Int]) -> Vec:
        """A position in every lane."""
        b, (first, by) = self.block, self._places[at]
        steps = b.repeated("i64", "i64", by.name) * b.lane_numbers()
        columns = [b.repeated("i64", "i64", (first + by * start).name) + steps for start in starts]
        found = Vec(b, "i64", tuple([x.names[0] for x in columns]))
        for reg, coefficient in self._scattered_terms(at):
            x = self.value(reg, starts)
            assert isinstance(x, Vec)
            if x.kind != "i64":
                x = resized(x, "i64", reg.dtype.kind == "i")
            each = b.repeated("i64", "i64", self.writer.size(coefficient).name)
            found = found + x * Vec(b, "i64", each.names * b.interleave)
        return found

    def _distances(self, s: Load | Store, starts: Sequence[Int]) -> Vec:
        """Byte offset from the start of a buffer to each lane."""
        return self._numbers(s.at, starts) * s.buffer.dtype.itemsize

    def _elements(self, buffer: Buffer) -> tuple[memory.Element, list[Pointer]]:
        """Element layout of a buffer, and its base pointers: two for a complex number."""
        llvm, size = stored_type(buffer.dtype)
        base = Pointer(self.block, self.writer.pointer(buffer).name)
        bases = [base, base.offset(size)] if buffer.dtype.kind == "c" else [base]
        return memory.Element(llvm, size), bases

    def _load(self, s: Load, starts: Sequence[Int], mask: Vec | None) -> Value:
        b, port = self.block, self._ports.get((s.buffer.number, s.at))
        if port is not None:
            if self.lanes.pairs and every_other(self.lanes.step(s.at), s.buffer):
                places = self._lined_up(port, starts)
                some = mask.names[0] if mask else ""
                return Vec(b, port.kind, tuple([memory.load_every_other(b, at, port.element, some) for at in places]))
            return ports.load(b, port, starts, mask)
        element, bases = self._elements(s.buffer)
        found = []
        for base in bases:
            distances = self._distances(s, starts).names
            masks = ("",) if mask is None else mask.names  # lanes leave an inner loop vector by vector
            names = [
                memory.gather(b, memory.addresses(b, base, d), element, some)
                for d, some in zip(distances, masks * (len(distances) // len(masks)), strict=True)
            ]
            if s.buffer.dtype.kind == "b":
                names = [memory.as_mask(b, name) for name in names]
            found.append(Vec(b, kind_of(s.buffer.dtype), tuple(names)))
        return joined(found)

    def _lined_up(self, port: ports.Port, starts: Sequence[Int]) -> list[Pointer]:
        """Start addresses of vectors of a strided operand."""
        assert port.stride is not None
        return [port.pointer.offset(start * port.stride) for start in starts]

    def _store(self, s: Store, starts: Sequence[Int], mask: Vec | None) -> None:
        b, value = self.block, self.value(s.value, starts)
        port = self._ports.get((s.buffer.number, s.at))
        if port is not None and self.lanes.pairs and every_other(self.lanes.step(s.at), s.buffer):
            assert isinstance(value, Vec)
            for at, name in zip(self._lined_up(port, starts), value.names, strict=True):
                memory.store_every_other(b, at, port.element, name, mask.names[0] if mask else "")
            return
        if port is not None:
            ports.store(b, port, starts, value, mask, stream=(s.buffer.number, s.at) in self._streamed)
            return
        element, bases = self._elements(s.buffer)
        distances = self._distances(s, starts).names
        for base, x in zip(bases, parts(value), strict=True):
            kept = b.cast("zext", x, "i8") if s.buffer.dtype.kind == "b" else x
            for name, d in zip(kept.names, distances, strict=True):
                memory.scatter(b, memory.addresses(b, base, d), element, name, mask.names[0] if mask else "")
