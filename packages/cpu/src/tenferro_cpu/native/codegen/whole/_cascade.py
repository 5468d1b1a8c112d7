"""Sums of rows, and other reductions of them to one vector.

Sums are cascades: groups of a few additions, a block of a few groups in several accumulators, then blocks combined like
the digits of a counter. The error grows with the logarithm of the length, with chains no longer than those of NumPy's
pairwise summation, and the order of operations depends on shapes alone.
"""

from collections.abc import Sequence
from typing import Protocol

from tenferro_cpu.native.codegen.builder import Block, Branch, DoLoop, Int, Loop, Scratch, Vec
from tenferro_cpu.native.codegen.operations._value import Value
from tenferro_cpu.native.codegen.whole._combine import Combiner
from tenferro_cpu.native.codegen.whole._values import joined, parts

GROUP = 8
"""Consecutive rounded additions before their result is added to an accumulator."""

BLOCK = 64
"""Elements per accumulator before it enters the cascade."""

LEVELS = 48


class Terms(Protocol):
    """Rows whose elements are reduced.

    Attributes:
        block: the function under construction.
        width: vectors that the main loop takes at once.
        length: elements of a row.
    """

    block: Block
    width: int
    length: Int

    def starts(self, first: Int) -> list[Int]:
        """First elements of the interleaved vectors."""

    def read(self, starts: Sequence[Int], mask: Vec | None = None) -> Sequence[Value]:
        """Values of the elements from `starts`, one for each combiner."""


class SummedRows:
    """Rows, and one combiner for each of their values.

    Args:
        row: the rows.
        parts: the combiners.
    """

    def __init__(self, row: Terms, parts: Sequence[Combiner]) -> None:
        self.row, self.block, self.parts = row, row.block, parts
        rounds = any(part.kind in ("sum", "prod") and part.dtype.kind in "fc" for part in self.parts)
        self.group = GROUP if rounds else 0
        """Elements that are combined by themselves first, where combining rounds and chains must be short."""

    def neutral(self) -> list[Value]:
        """The values of no elements."""
        return [part.neutral() for part in self.parts]

    def combine(self, xs: list[Value], ys: list[Value]) -> list[Value]:
        """Combine two lists of values."""
        return [part.combine(x, y) for part, x, y in zip(self.parts, xs, ys, strict=True)]

    def vectors(self, values: list[Value]) -> list[Vec]:
        """The vectors of all values, as loops carry them."""
        return [x for value in values for x in parts(value)]

    def values(self, vectors: list[Vec]) -> list[Value]:
        """The values composed of these vectors."""
        rest = iter(vectors)
        return [joined([next(rest) for _ in range(1 + (part.dtype.kind == "c"))]) for part in self.parts]

    def accumulated(self, values: list[Vec], starts: Sequence[Int], mask: Vec | None = None) -> list[Vec]:
        """The values combined with the elements from `starts`."""
        found = []
        for part, value, new in zip(self.parts, self.values(values), self.row.read(starts, mask), strict=True):
            found.append(part.combine(value, new if mask is None else part.masked(new, mask)))
        return self.vectors(found)


class _Cascade:
    """Sums of blocks on the stack: level k holds one of ``2**k`` blocks if the k-th bit of their number is set."""

    def __init__(self, rows: SummedRows, entry: Block) -> None:
        self.rows = rows
        self.levels = [Scratch(rows.block, x.kind, LEVELS, entry) for x in rows.vectors(rows.neutral())]

    def _with_level(self, level: Int, values: list[Value]) -> list[Value]:
        return self.rows.combine(self.rows.values([slot.get(level) for slot in self.levels]), values)

    def add(self, number: Int, values: list[Value]) -> None:
        """Add the block of this number, with carries as in a binary counter."""
        r = self.rows
        with Loop(r.block, [0, number], r.vectors(values)) as carry:
            level, digits = carry.counters
            carry.leave_unless((digits & 1).differs(0))
            carry.values = r.vectors(self._with_level(level, r.values(carry.values)))
            carry.counters = [level + 1, digits >> 1]
        for slot, x in zip(self.levels, carry.values):
            slot.put(carry.counters[0], x)

    def total(self, blocks: Int, values: list[Value]) -> list[Value]:
        """Combine all levels and these values, the lowest level first."""
        r = self.rows
        with Loop(r.block, [0, blocks], r.vectors(values)) as gather:
            level, digits = gather.counters
            gather.leave_unless(digits.differs(0))
            with Branch(r.block, (digits & 1).differs(0), gather.values) as held:
                held.values = r.vectors(self._with_level(level, r.values(held.values)))
            gather.values = held.values
            gather.counters = [level + 1, digits >> 1]
        return r.values(gather.values)


def trailing(r: SummedRows, entry: Block, most: int | None = None) -> list[Value]:
    """Reduce one row to one vector per value, whose lanes remain to be combined.

    Args:
        r: the row.
        entry: where memory on the stack is reserved.
        most: bound of the length, if known; the order of operations does not depend on it.
    """
    row, b, n = r.row, r.block, r.row.length
    step = b.lanes * row.width
    b.interleave = 1
    nothing = r.vectors(r.neutral())
    with Branch(b, n > 0, nothing) as some:
        if most is not None and most < BLOCK * step:
            some.values = _with_rest(r, n, _block(r, Int(b, "0"), n & -step, nothing))
        else:
            cascade, blocks = _Cascade(r, entry), n // (BLOCK * step)
            last = _in_blocks(r, blocks, cascade, nothing)
            some.values = r.vectors(cascade.total(blocks, r.values(_with_rest(r, n, last))))
    return r.values(some.values)


def _in_blocks(r: SummedRows, blocks: Int, cascade: _Cascade, nothing: list[Vec]) -> list[Vec]:
    """Add whole blocks to the cascade; returns the last block, which is partial or empty."""
    b, step = r.block, r.block.lanes * r.row.width
    main = r.row.length & -step
    with DoLoop(b, 0, blocks + 1, 1, nothing) as loop:
        number = loop.index
        start, whole = number * (BLOCK * step), number < blocks
        end = whole.choose(start + BLOCK * step, main)
        values = _block(r, start, end, nothing)
        with Branch(b, whole):
            cascade.add(number, r.values(values))
        loop.values = values
    return loop.values


def _block(r: SummedRows, start: Int, end: Int, nothing: list[Vec]) -> list[Vec]:
    """The elements from `start` below `end`, in whole steps, as one vector per value."""
    row, b = r.row, r.block
    with Branch(b, start < end, nothing) as filled:
        b.interleave = row.width
        values, single = r.values(_summed(r, start, end, b.lanes * row.width)), []
        for part, value in zip(r.parts, values, strict=True):
            b.interleave = row.width
            single.append(part.interleaved(value))
        filled.values = r.vectors(single)
    return filled.values


def _summed(r: SummedRows, start: Int, end: Int, step: int) -> list[Vec]:
    """Combine the elements of at least one step; in groups if combining rounds."""
    neutral = r.vectors(r.neutral())
    if not r.group:
        with DoLoop(r.block, start, end, step, neutral) as each:
            each.values = r.accumulated(each.values, r.row.starts(each.index))
        return each.values
    with DoLoop(r.block, start, end, r.group * step, neutral) as groups:
        far = groups.index + r.group * step
        stop = (far < end).choose(far, end)
        with DoLoop(r.block, groups.index, stop, step, neutral) as each:
            each.values = r.accumulated(each.values, r.row.starts(each.index))
        groups.values = r.vectors(r.combine(r.values(groups.values), r.values(each.values)))
    return groups.values


def _with_rest(r: SummedRows, n: Int, values: list[Vec]) -> list[Vec]:
    """Combine the remaining elements that fill no step."""
    b = r.block
    main = n & -(b.lanes * r.row.width)
    with Branch(b, main < n, values) as rest:
        with DoLoop(b, main, n, b.lanes, rest.values) as tail:
            tail.values = r.accumulated(tail.values, [tail.index], b.below(tail.index, n))
        rest.values = tail.values
    return rest.values
