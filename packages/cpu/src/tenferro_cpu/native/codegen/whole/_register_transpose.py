"""Nests that read some arrays across: squares are transposed in registers.

Of two loops, the inner one runs along the rows of most arrays, the outer one along those of the others. Squares of as
many iterations of both as a vector has lanes read whole vectors everywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from tenferro_cpu.native._host import Host
from tenferro_cpu.native.codegen.builder import LLVM_TYPES, Block, Branch, DoLoop, Int, Pointer, Vec
from tenferro_cpu.native.codegen.builder._types import indices
from tenferro_cpu.native.codegen.operations._value import Value
from tenferro_cpu.native.codegen.whole import _ports as ports
from tenferro_cpu.native.codegen.whole._lanes import Lanes, lanes_of, same_bits
from tenferro_cpu.native.codegen.whole._statements import Writer
from tenferro_cpu.native.codegen.whole._values import joined, parts
from tenferro_cpu.native.codegen.whole._vectors import BYTE, VectorLoop
from tenferro_tensor.loop_ir import For, Let, Load, Order, Position, Store

TILE: Final = 64
"""Side of tiles: the cache lines of all their rows fit the nearest cache."""

SQUARES_MIN_ITERATIONS: Final = 16
"""Shortest loop that is cut into squares."""

SQUARES_MAX_STATEMENTS: Final = 24
"""Longest body, which is repeated for each row of a square."""


def turned_nest(writer: Writer, s: For, host: Host) -> TurnedNest | None:
    """Two loops as squares, or None if no array is read across or vectors cannot run the rest."""
    if s.order is not Order.ANY or len(s.body) != 1 or not isinstance(s.body[0], For):
        return None
    inner = s.body[0]
    short = any(isinstance(n, int) and n < SQUARES_MIN_ITERATIONS for n in (s.extent, inner.extent))
    if inner.order is not Order.ANY or short or len(inner.body) > SQUARES_MAX_STATEMENTS:
        return None
    across = [t for t in inner.body if isinstance(t, Load) and _is_across(t, s, inner)]
    if not across or not all(isinstance(t, Let | Load | Store) or isinstance(t, Position) for t in inner.body):
        return None
    stored = {t.buffer.number for t in inner.body if isinstance(t, Store)}
    if any(t.buffer.number in stored for t in across):
        return None
    rest = replace(inner, body=tuple([t for t in inner.body if t not in across]))
    lanes = lanes_of(rest, writer.block.fused, across)
    if lanes is None or lanes.apart:
        return None
    width = BYTE * host.vector_bytes
    if host.tables and lanes.mathematics and not same_bits(lanes, width):
        return None
    return TurnedNest(writer, s, rest, across, lanes, host)


def _is_across(t: Load, outer: For, inner: For) -> bool:
    """Whether a load is contiguous along the outer loop but not along the inner one."""
    regs = {reg.number for reg, _ in t.at.terms}
    if not {outer.index.number, inner.index.number} <= regs or t.buffer.dtype.kind == "b":
        return False
    along, far = t.at.coefficient(outer.index), t.at.coefficient(inner.index)
    return along.__class__ is int and along == 1 and not (far.__class__ is int and abs(far) <= 1)


class _Row(VectorLoop):
    """The inner loop in one row of the squares; the loads across are given.

    Args:
        writer: writer of the function.
        s: the loop.
        lanes: its analysis for vectors.
        host: the processor.
        block: instructions on vectors, shared by all rows.

    Attributes:
        given: values of the current square, by register.
    """

    def __init__(self, writer: Writer, s: For, lanes: Lanes, host: Host, block: Block) -> None:
        super().__init__(writer, s, lanes, host, BYTE * host.vector_bytes)
        self.block, self.given = block, dict[int, Value]()

    def begin(self, start: Int) -> None:
        """Values shared by all squares of a tile, the first of which begins at `start`."""
        self._begin(start, start)

    def square(self, at: Int) -> None:
        """One vector of the row."""
        self._values = dict(self.given)
        for s in self.lanes.varying:
            self._one(s, [at], None)


class TurnedNest:
    """Two loops as squares.

    Args:
        writer: writer of the function.
        s: the outer loop.
        inner: the inner loop without the loads of `across`.
        across: the loads across.
        lanes: analysis of the inner loop for vectors.
        host: the processor.
    """

    def __init__(self, writer: Writer, s: For, inner: For, across: Sequence[Load], lanes: Lanes, host: Host) -> None:
        self.writer, self.s, self.inner, self.across, self.lanes, self.host = writer, s, inner, across, lanes, host
        self.side = BYTE * host.vector_bytes // lanes.bits

    def write(self, start: Int, end: Int) -> None:
        """The iterations of the outer loop from `start` below `end`."""
        w, b, side = self.writer, self.writer.block, self.side
        (whole,) = self.s.body
        assert isinstance(whole, For)
        columns = w.size(whole.extent)
        rows, main = start.plus((end - start) & -side), columns & -side
        with Branch(b, start < rows):
            with Branch(b, main > 0):
                self._tiles(start, rows, main)
            self._remainders(whole, start, rows, main, columns)
        self._remainders(whole, rows, end, Int(b, "0"), columns)

    def _remainders(self, whole: For, start: Int, end: Int, first: Int, columns: Int) -> None:
        """Elements that fill no square, one by one."""
        w = self.writer

        def row(i: Int) -> None:
            w.registers[self.s.index.number] = Vec(w.block, "i64", (i.name,))
            Writer.count(w, whole, first, columns)

        w.stepped(start, end, Int(w.block, "1"), row)

    def _tiles(self, start: Int, rows: Int, columns: Int) -> None:
        b, side = self.writer.block, self.side
        with DoLoop(b, start, rows, TILE) as down:
            bottom = _least(down.index.plus(TILE), rows)
            with DoLoop(b, 0, columns, TILE) as right:
                count = _least(columns - right.index, Int(b, str(TILE)))
                with DoLoop(b, down.index, bottom, side) as strip:
                    self._strip(strip.index, right.index, count)

    def _strip(self, i: Int, j: Int, count: Int) -> None:
        """The squares of some rows in one tile."""
        w, scalar = self.writer, self.writer.block
        w.registers[self.s.index.number] = Vec(scalar, "i64", (i.name,))
        w.registers[self.inner.index.number] = Vec(scalar, "i64", (j.name,))
        places = [self._place(t) for t in self.across]
        steps = [w.size(t.at.coefficient(self.inner.index) * t.buffer.dtype.itemsize) for t in self.across]
        rows, block = [], Block(scalar.module, self.side, 1, scalar.fused, self.host.tables)
        for k in range(self.side):
            w.registers[self.s.index.number] = Vec(scalar, "i64", (i.plus(k).name,))
            row = _Row(w, self.inner, self.lanes, self.host, block)
            row.begin(j)
            scalar.take_over(block)
            rows.append(row)
        block.take_over(scalar)
        with DoLoop(block, 0, count, self.side) as along:
            found = [self._read(block, t, *where, along.index) for t, where in zip(self.across, zip(places, steps))]
            for k, row in enumerate(rows):
                row.given = {t.result.number: x[k] for t, x in zip(self.across, found, strict=True)}
                row.square(along.index)
        scalar.take_over(block)

    def _place(self, t: Load) -> Pointer:
        return self.writer.pointer(t.buffer).element(f"[{t.buffer.dtype.itemsize} x i8]", self.writer.place(t.at))

    def _read(self, b: Block, t: Load, first: Pointer, step: Int, at: Int) -> list[Value]:
        """One square: for each row, its elements in the columns of the square."""
        vectors = []
        for k in range(self.side):
            place = Pointer(b, first.name).offset((at + k) * Int(b, step.name))
            vectors.append(ports.load(b, ports.Port(t.buffer.dtype, place), [Int(b, "0")]))
        turned = [transposed(b, column) for column in zip(*map(parts, vectors), strict=True)]
        return [joined(row) for row in zip(*turned, strict=True)]


def transposed(block: Block, rows: Sequence[Vec]) -> list[Vec]:
    """Transpose as many vectors as they have lanes: pairs at growing distances exchange halves."""
    names, side, kind = [x.names[0] for x in rows], len(rows), rows[0].kind
    vector, distance = f"<{side} x {LLVM_TYPES[kind]}>", 1
    while distance < side:
        for low in [k for k in range(side) if not k & distance]:
            lower, upper = names[low], names[low | distance]
            orders = (
                [side + (k ^ distance) if k & distance else k for k in range(side)],
                [side + k if k & distance else k | distance for k in range(side)],
            )
            names[low], names[low | distance] = [
                block.raw(f"shufflevector {vector} {lower}, {vector} {upper}, {indices(order)}") for order in orders
            ]
        distance *= 2
    return [Vec(block, kind, (name,)) for name in names]


def _least(x: Int, y: Int) -> Int:
    return (x < y).choose(x, y)
