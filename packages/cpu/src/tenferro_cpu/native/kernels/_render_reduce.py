"""Reducing kernels: one element per row, or rows combined element by element.

Sums are cascades: groups of a few additions, a block of a few groups in several accumulators, then blocks combined like
the digits of a counter. The error grows with the logarithm of the length, with chains no longer than those of NumPy's
pairwise summation, and the order of operations depends on shapes alone.
"""

from collections.abc import Callable, Sequence
from typing import Protocol

from tenferro_cpu.native.builder import Block, Branch, DoLoop, Int, Loop, Pointer, Scratch, Vec
from tenferro_cpu.native.kernels._combine import Combiner, Found, State
from tenferro_cpu.native.kernels._forms import LOCATED
from tenferro_cpu.native.kernels._ports import Port, fixed_value, load, load_fixed, store
from tenferro_cpu.native.kernels._render import Row, evaluate, require_rendered
from tenferro_cpu.native.machine._host import Host
from tenferro_cpu.native.operations._value import Value
from tenferro_tensor.device_model import Access, KernelIR, Over

GROUP = 8
"""Consecutive rounded additions before their result is added to an accumulator."""

BLOCK = 64
"""Elements per accumulator before it enters the cascade."""

LEVELS = 48

LINE = 64
"""Bytes of a cache line."""

COMBINED = 16
"""Rows combined in registers before the result in memory is read, and rows to prefetch."""

GROUPED = 64
"""The same number for rows that are added in groups."""


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

    def fix(self) -> None:
        """Load the operands that are constant along the row."""

    def read(self, starts: Sequence[Int], mask: Vec | None = None) -> Sequence[Value]:
        """Values of the elements from `starts`, one for each combiner."""


class Reduced:
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

    def neutral(self) -> list[State]:
        """The states of no elements."""
        return [part.neutral() for part in self.parts]

    def combine(self, xs: list[State], ys: list[State]) -> list[State]:
        """Combine two lists of states."""
        return [part.combine(x, y) for part, x, y in zip(self.parts, xs, ys)]

    def vectors(self, states: list[State]) -> list[Vec]:
        """The vectors of all states, as loops carry them."""
        return [x for part, state in zip(self.parts, states) for x in part.split(state)]

    def states(self, vectors: list[Vec]) -> list[State]:
        """The states composed of these vectors."""
        rest = iter(vectors)
        return [part.join(*(next(rest) for _ in part.kinds)) for part in self.parts]

    def summed(self, start: Int, end: Int, step: int, accumulate: "Accumulate") -> list[State]:
        """Combine the values at ``start, start + step, ...`` below `end`, at least one; in groups if it rounds."""
        neutral = self.vectors(self.neutral())
        if not self.group:
            with DoLoop(self.block, start, end, step, neutral) as each:
                each.values = self.vectors(accumulate(each.index, self.states(each.values)))
            return self.states(each.values)
        with DoLoop(self.block, start, end, self.group * step, neutral) as groups:
            far = groups.index + self.group * step
            stop = (far < end).choose(far, end)
            with DoLoop(self.block, groups.index, stop, step, neutral) as each:
                each.values = self.vectors(accumulate(each.index, self.states(each.values)))
            total = self.combine(self.states(groups.values), self.states(each.values))
            groups.values = self.vectors(total)
        return self.states(groups.values)


Accumulate = Callable[[Int, list[State]], list[State]]
"""Maps a position and states to the states combined with the value at the position."""


def render_reduction(kernel: KernelIR, name: str, host: Host) -> str:
    """LLVM text of a reducing kernel: ``void(ptr data, i64 n, ptr strides, i64 m, ptr rows)``.

    Over the trailing axis, `n` elements become one; `m` and `rows` are not read. Over the leading axis, `m` rows
    at the distances `rows` become one of `n` elements; both are at least 1.
    """
    assert kernel.reduction is not None
    require_rendered(kernel, host)
    row = Row(kernel, host)
    reduced = Reduced(row, [Combiner(row.block, kernel.reduction.kind, kernel.dtypes[i]) for i in kernel.outputs])
    if kernel.reduction.over is Over.TRAILING:
        states = trailing(reduced, row.block)
        for part, state, port in zip(reduced.parts, states, row.outputs):
            _write(part, port, part.folded(state))
    else:
        _leading(reduced, row)
    return row.text(name, ", i64 %m, ptr %rows")


class _Cascade:
    """Sums of blocks on the stack: level k holds one of ``2**k`` blocks if the k-th bit of their number is set."""

    def __init__(self, reduced: Reduced, entry: Block) -> None:
        self.reduced = reduced
        kinds = [kind for part in reduced.parts for kind in part.kinds]
        self.levels = [Scratch(reduced.block, kind, LEVELS, entry) for kind in kinds]

    def _with_level(self, level: Int, states: list[State]) -> list[State]:
        return self.reduced.combine(self.reduced.states([slot.get(level) for slot in self.levels]), states)

    def add(self, number: Int, states: list[State]) -> None:
        """Add the block of this number, with carries as in a binary counter."""
        r = self.reduced
        with Loop(r.block, [0, number], r.vectors(states)) as carry:
            level, digits = carry.counters
            carry.leave_unless((digits & 1).differs(0))
            carry.values = r.vectors(self._with_level(level, r.states(carry.values)))
            carry.counters = [level + 1, digits >> 1]
        for slot, x in zip(self.levels, carry.values):
            slot.put(carry.counters[0], x)

    def total(self, blocks: Int, states: list[State]) -> list[State]:
        """Combine all levels and these states, the lowest level first."""
        r = self.reduced
        with Loop(r.block, [0, blocks], r.vectors(states)) as gather:
            level, digits = gather.counters
            gather.leave_unless(digits.differs(0))
            with Branch(r.block, (digits & 1).differs(0), gather.values) as held:
                held.values = r.vectors(self._with_level(level, r.states(held.values)))
            gather.values = held.values
            gather.counters = [level + 1, digits >> 1]
        return r.states(gather.values)


def trailing(r: Reduced, entry: Block, most: int | None = None) -> list[State]:
    """Reduce one row to one vector per state, whose lanes remain to be combined.

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
        row.fix()
        if most is not None and most < BLOCK * step:
            some.values = _with_rest(r, n, _block(r, Int(b, "0"), n & -step, nothing))
        else:
            cascade, blocks = _Cascade(r, entry), n // (BLOCK * step)
            last = _in_blocks(r, blocks, cascade, nothing)
            some.values = r.vectors(cascade.total(blocks, r.states(_with_rest(r, n, last))))
    return r.states(some.values)


def _in_blocks(r: Reduced, blocks: Int, cascade: _Cascade, nothing: list[Vec]) -> list[Vec]:
    """Add whole blocks to the cascade; returns the last block, which is partial or empty."""
    b, step = r.block, r.block.lanes * r.row.width
    main = r.row.length & -step
    with DoLoop(b, 0, blocks + 1, 1, nothing) as loop:
        number = loop.index
        start, whole = number * (BLOCK * step), number < blocks
        end = whole.choose(start + BLOCK * step, main)
        values = _block(r, start, end, nothing)
        with Branch(b, whole):
            cascade.add(number, r.states(values))
        loop.values = values
    return loop.values


def _block(r: Reduced, start: Int, end: Int, nothing: list[Vec]) -> list[Vec]:
    """The elements from `start` below `end`, in whole steps, as one vector per state."""
    row, b = r.row, r.block
    with Branch(b, start < end, nothing) as filled:
        b.interleave = row.width
        step = b.lanes * row.width
        states = r.summed(start, end, step, lambda i, states: _accumulated(r, states, row.starts(i)))
        single = []
        for part, state in zip(r.parts, states):
            b.interleave = row.width
            single.append(part.interleaved(state))
        filled.values = r.vectors(single)
    return filled.values


def _with_rest(r: Reduced, n: Int, values: list[Vec]) -> list[Vec]:
    """Combine the remaining elements that fill no step."""
    b = r.block
    main = n & -(b.lanes * r.row.width)
    with Branch(b, main < n, values) as rest:
        with DoLoop(b, main, n, b.lanes, rest.values) as tail:
            mask = b.below(tail.index, n)
            tail.values = r.vectors(_accumulated(r, r.states(tail.values), [tail.index], mask))
        rest.values = tail.values
    return rest.values


def _accumulated(r: Reduced, states: list[State], starts: list[Int], mask: Vec | None = None) -> list[State]:
    """The states combined with the elements from `starts`."""
    b, found = r.block, []
    for part, state, value in zip(r.parts, states, r.row.read(starts, mask)):
        new: State = value
        if part.kind in LOCATED:
            assert isinstance(value, Vec)
            places = [b.repeated("i64", "i64", start.name) + b.lane_numbers() for start in starts]
            new = Found(value, Vec(b, "i64", tuple([x.names[0] for x in places])))
        if mask is not None:
            new = part.masked(new, mask)
        found.append(part.combine(state, new))
    return found


def _write(part: Combiner, port: Port, scalars: tuple[str, ...]) -> None:
    """Store the one element of a row."""
    if part.kind in LOCATED:
        port.pointer.store("i64", scalars[1], 8)
        return
    element = port.element
    for k, scalar in enumerate(scalars):
        if port.boolean:
            scalar = part.block.raw(f"zext i1 {scalar} to i8")
        port.pointer.item(element.llvm, k).store(element.llvm, scalar, element.align)


def _leading(r: Reduced, row: Row) -> None:
    """`m` rows become one, a few at a time so that they stream."""
    b = r.block
    many, rows = Int(b, "%m"), Pointer(b, "%rows")
    distances = [rows.item("i64", number).load_int() for number in range(len(row.inputs))]
    band = GROUPED if r.group else COMBINED
    with DoLoop(b, 0, many, band) as bands:
        first, far = bands.index, bands.index + band
        last = (far < many).choose(far, many)

        def combine_columns(starts: list[Int], mask: Vec | None) -> None:
            def accumulate(number: Int, states: list[State]) -> list[State]:
                ports = [port.moved(number * distance) for port, distance in zip(row.inputs, distances)]
                values = [_row_value(r, port, d, starts, mask) for port, d in zip(ports, distances)]
                return r.combine(states, list(evaluate(b, row.kernel, values)))

            totals = r.summed(first, last, 1, accumulate)
            with Branch(b, first.differs(0), r.vectors(totals)) as again:
                have: list[State] = [load(b, port, starts, mask) for port in row.outputs]
                again.values = r.vectors(r.combine(have, totals))
            for port, state in zip(row.outputs, r.states(again.values)):
                assert not isinstance(state, Found)
                store(b, port, starts, state, mask)

        row.over_elements(combine_columns)


def _row_value(r: Reduced, port: Port, distance: Int, starts: list[Int], mask: Vec | None) -> Value:
    """An operand in one row; prefetches the same columns of the next rows, a pattern that processors do not detect."""
    b = r.block
    if port.operand.access is Access.FIXED:
        return fixed_value(b, port, load_fixed(b, port))
    value = load(b, port, starts, mask)
    if port.operand.access is Access.UNIT and mask is None:
        size = port.operand.dtype.itemsize
        ahead, start = port.pointer.offset(distance * COMBINED), starts[0] * size
        for line in range(0, len(starts) * b.lanes * size, LINE):
            ahead.offset(start + line).prefetch()
    return value
