"""`pack_columns`: a column that a nest computes again for each row is computed once, before the nest.

An outer product of two columns, for instance, reads one of them for each row; packed contiguously, its elements fill
vectors. A matrix-vector product computes the vector for each row, if it is a formula.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Final

from tenferro_runtime.lowering.passes._contents import (
    Block,
    all_registers,
    changed,
    hands_on,
    mentioned,
    reads,
    substituted,
    with_blocks,
)
from tenferro_tensor.loop_ir import (
    INDEX,
    Affine,
    Buffer,
    For,
    Let,
    Load,
    LoopFunction,
    Order,
    Position,
    Reg,
    Role,
    Statement,
    Store,
    Value,
    blocks,
    everything,
)
from tenferro_tensor_core import DimLike

PACK_MIN: Final = 4
"""Smallest length of a column, and smallest number of its uses, for packing."""

MAX_PACKED: Final = 4
"""Largest number of columns packed for one loop."""

PACK_MIN_COST: Final = 4
"""Smallest cost of a number that is packed."""

COST_STRIDED: Final = 4
"""Cost of a load that is not adjacent to that of the previous iteration."""


def pack_columns(function: LoopFunction) -> LoopFunction:
    """Pack columns that nests need repeatedly; `dead_code` removes what is left over.

    Args:
        function: the function.

    Returns:
        The function.
    """
    work = _Packing(function)
    body = work.block(function.body)
    return replace(function, body=body, temporaries=(*function.temporaries, *work.made)) if work.made else function


class _Packing:
    """The pass over one function.

    Attributes:
        made: new buffers.
    """

    def __init__(self, function: LoopFunction) -> None:
        inside = list(everything(function.body))
        named = [b for s in inside for b in mentioned(s)]
        named += [*function.inputs, *function.outputs, *function.temporaries]
        self.made: list[Buffer] = []
        self._buffers = count(1 + max([b.number for b in named], default=-1))
        self._registers = count(1 + max([reg.number for s in inside for reg in all_registers(s)], default=-1))

    def block(self, statements: Sequence[Statement]) -> Block:
        """Rewrite the statements of a block, with columns packed before the nests that need them."""
        found: list[Statement] = []
        for s in statements:
            if isinstance(s, For) and s.order is Order.ANY:
                nest = _Nest(self, s)
                s = nest.within(s, 1)
                found += nest.before
            elif not isinstance(s, For) or s.order is Order.GIVEN:
                inner = blocks(s)
                s = with_blocks(s, [self.block(b) for b in inner]) if inner else s
            found.append(s)
        return tuple(found)

    def column(self, s: For, chain: Sequence[Statement], wanted: Reg) -> tuple[Buffer, Statement]:
        """Memory for a column, and the loop that fills it."""
        buffer = Buffer(next(self._buffers), wanted.dtype, (s.extent,), Role.TEMPORARY)
        self.made.append(buffer)
        index = Reg(next(self._registers), INDEX)
        new: dict[int, Value] = {s.index.number: index}
        for t in chain:
            new |= {r.number: Reg(next(self._registers), r.dtype) for r in all_registers(t)}
        moved = [_named(t, new) for t in substituted(chain, new)]
        number = new[wanted.number]
        return buffer, For(index, s.extent, (*moved, Store(buffer, Affine.of(index), number)), order=Order.ANY)


def _named(s: Statement, new: dict[int, Value]) -> Statement:
    assert isinstance(s, Let | Position | Load)
    result = new[s.result.number]
    assert isinstance(result, Reg)
    return replace(s, result=result)


@dataclass(frozen=True, slots=True)
class _Known:
    """A number that is invariant in the outer loops.

    Attributes:
        made: the statement that computes it.
        varies: whether it differs along the innermost loop.
        cost: approximate number of operations.
    """

    made: Let | Position | Load
    varies: bool
    cost: int


class _Nest:
    """One nest of independent loops.

    Attributes:
        before: the statements to run before it.
    """

    def __init__(self, work: _Packing, nest: For) -> None:
        inside = list(everything((nest,)))
        self.work = work
        self.before: list[Statement] = []
        self._sets = {reg.number for s in inside for reg in all_registers(s)}
        self._written = {b.number for s in inside for b in changed(s)}
        self._columns: dict[tuple[Buffer, Affine, DimLike, DimLike], Buffer] = {}

    def within(self, s: For, times: DimLike) -> For:
        """A loop of the nest that reads columns; `times` is how often it runs in total."""
        if all(isinstance(t, Let | Position | Load | Store) for t in s.body):
            return self._packed(s) if _many(s.extent) and _many(times) else s
        times = times * s.extent
        return replace(s, body=tuple([self.within(t, times) if isinstance(t, For) else t for t in s.body]))

    def _packed(self, s: For) -> For:
        known: dict[int, _Known] = {}
        for t in s.body:
            if isinstance(t, Let | Position | Load) and (found := self._known(t, s, known)) is not None:
                known[t.result.number] = found
        wanted: dict[int, Statement] = {}
        for reg in _needed(s, known):
            if known[reg.number].varies and known[reg.number].cost >= PACK_MIN_COST and len(wanted) < MAX_PACKED:
                wanted[reg.number] = Load(reg, self._column(s, reg, known), Affine.of(s.index))
        if not wanted:
            return s
        return replace(s, body=tuple([wanted.get(_set_by(t), t) for t in s.body]))

    def _known(self, s: Let | Position | Load, loop: For, known: dict[int, _Known]) -> _Known | None:
        """The result of a statement, if it is invariant in the outer loops."""
        read = list(reads(s))
        mine = [known[reg.number] for reg in read if reg.number in known]
        along = [reg for reg in read if reg == loop.index]
        if any(reg.number in self._sets and reg.number not in known for reg in read if reg != loop.index):
            return None
        varies, cost = bool(along) or any(k.varies for k in mine), sum([k.cost for k in mine])
        if isinstance(s, Let):
            cost += s.op.primitive.work
        elif isinstance(s, Load):
            if s.buffer.number in self._written:
                return None
            by = s.at.coefficient(loop.index)
            cost += COST_STRIDED if varies and not (isinstance(by, int) and abs(by) == 1) else 0
        return _Known(s, varies, cost)

    def _column(self, s: For, wanted: Reg, known: dict[int, _Known]) -> Buffer:
        made = known[wanted.number].made
        key = None
        if isinstance(made, Load) and not any(reg.number in known for reg, _ in made.at.terms):
            by = made.at.coefficient(s.index)
            key = made.buffer, made.at - Affine.of(s.index) * by, by, s.extent
            if key in self._columns:
                return self._columns[key]
        chain = list(_chain(wanted, known))
        column, filled = self.work.column(s, chain, wanted)
        self.before.append(filled)
        if key is not None:
            self._columns[key] = column
        return column


def _needed(s: For, known: dict[int, _Known]) -> list[Reg]:
    """The invariant numbers that other statements read, without repetition."""
    found: dict[Reg, None] = {}
    for t in s.body:
        if _set_by(t) in known:
            continue
        places = [reg for reg, _ in t.at.terms] if isinstance(t, Load | Store) else []
        for reg in reads(t):
            if reg.number in known and reg not in places:
                found[reg] = None
    return list(found) + [reg for reg in hands_on(s) if reg.number in known and reg not in found]


def _chain(wanted: Reg, known: dict[int, _Known]) -> Iterator[Statement]:
    """The statements that compute a number, in order."""
    needed, open_ = set[int](), [wanted.number]
    while open_:
        number = open_.pop()
        if number in known and number not in needed:
            needed.add(number)
            open_ += [reg.number for reg in reads(known[number].made)]
    yield from [k.made for number, k in known.items() if number in needed]


def _set_by(s: Statement) -> int:
    return s.result.number if isinstance(s, Let | Position | Load) else -1


def _many(n: DimLike) -> bool:
    return not isinstance(n, int) or n >= PACK_MIN
