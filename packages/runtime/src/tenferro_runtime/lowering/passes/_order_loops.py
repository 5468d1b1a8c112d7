"""`order_loops`: the innermost of several independent loops goes along memory.

A nest whose accesses are neighbours along another axis, as in a sum with a transposed array, is turned. Where some are
neighbours along one axis and some along another, small blocks use each line of the cache as long as it is near.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import count
from typing import Final

from tenferro_runtime.lowering.passes._contents import (
    Block,
    all_registers,
    reads,
    substituted,
    with_blocks,
    with_values,
)
from tenferro_tensor.loop_ir import (
    INDEX,
    Affine,
    For,
    Let,
    Load,
    Order,
    Position,
    Reg,
    Statement,
    Store,
    Value,
    blocks,
    everything,
)

BLOCK: Final = 8
"""Extent of a block along both axes."""

SMALLEST: Final = 4096
"""Elements from which blocks pay: fewer are near in any order."""

NEAR_BYTES: Final = 3 << 19
"""Bytes up to which an array stays in the second cache, where blocks always pay."""

CONFLICTING_BYTES: Final = 2048
"""Multiples of this distance share few sets of the first cache: without blocks they drive each other out."""

MOST_LINES: Final = 12
"""Statements of a body that is written out for blocks and for what is beside them."""


def order_loops(statements: Sequence[Statement]) -> Block:
    """Statements with the innermost loop of each nest along memory."""
    return tuple([_ordered(s) for s in statements])


def block_loops(statements: Sequence[Statement]) -> Block:
    """Statements with transposing nests in blocks."""
    first = 1 + max([reg.number for s in everything(statements) for reg in all_registers(s)], default=-1)
    numbers = count(first)
    return tuple([t for s in statements for t in _blocked(s, numbers)])


def _ordered(s: Statement) -> Statement:
    nest = _nest(s, _is_carrying)
    if nest is None:
        inner = blocks(s)
        return with_blocks(s, [order_loops(b) for b in inner]) if inner else s
    loops, body = nest
    scores = [_score(loop.index, body) for loop in loops]
    best = max(range(len(loops)), key=lambda k: (scores[k], k))
    if scores[best] == scores[-1]:
        return s
    return _rebuilt([*loops[:best], *loops[best + 1 :], loops[best]], body)


def _is_carrying(s: Statement) -> bool:
    """Whether a statement is a loop that computes a number, such as a sum."""
    return (
        isinstance(s, For) and bool(s.carries) and not s.swaps and all(_is_plain(t) or _is_carrying(t) for t in s.body)
    )


def _is_plain(s: Statement) -> bool:
    return isinstance(s, Let | Position | Load | Store)


def _nest(s: Statement, more: Callable[[Statement], bool] | None = None) -> tuple[list[For], Block] | None:
    """At least two independent loops, each all of the one around it, and a body of plain statements, or of `more`."""
    loops: list[For] = []
    while isinstance(s, For) and s.order is Order.ANY:
        loops.append(s)
        if len(s.body) != 1:
            break
        s = s.body[0]
    if len(loops) < 2 or not all(_is_plain(t) or (more is not None and more(t)) for t in loops[-1].body):
        return None
    return loops, loops[-1].body


def _score(index: Reg, body: Block) -> int:
    """How many accesses are to neighbours; stores count twice."""
    all_of = everything(body)
    return sum([1 + isinstance(s, Store) for s in all_of if isinstance(s, Load | Store) and _unit(s.at, index)])


def _unit(at: Affine, index: Reg) -> bool:
    by = at.coefficient(index)
    return isinstance(by, int) and abs(by) == 1


def _rebuilt(loops: Sequence[For], body: Block) -> Statement:
    for loop in reversed(loops):
        body = (For(loop.index, loop.extent, body, order=Order.ANY),)
    return body[0]


def _blocked(s: Statement, numbers: Iterator[int]) -> Sequence[Statement]:
    nest = _nest(s)
    if nest is None:
        inner = blocks(s)
        return [with_blocks(s, [tuple([t for u in b for t in _blocked(u, numbers)]) for b in inner]) if inner else s]
    loops, body = nest
    across = _across(loops, body)
    if across is None:
        return [s]
    outer = [loop for loop in loops[:-1] if loop is not across]
    parts = _in_blocks(across, loops[-1], body, numbers)
    for loop in reversed(outer):
        parts = [For(loop.index, loop.extent, tuple(parts), order=Order.ANY)]
    return parts


def _across(loops: Sequence[For], body: Block) -> For | None:
    """The loop along which some loads are to neighbours that are far apart along the innermost one."""
    along = loops[-1]
    if len(body) > MOST_LINES or not isinstance(along.extent, int):
        return None
    named = {reg.number for s in body if isinstance(s, Let | Store) for reg in _values(s)}
    for loop in loops[:-1]:
        n = loop.extent
        if not isinstance(n, int) or n < 2 * BLOCK or along.extent < 2 * BLOCK or n * along.extent < SMALLEST:
            continue
        if named & {loop.index.number, along.index.number}:
            continue
        elements = n * along.extent
        far = [s for s in body if isinstance(s, Load) and _unit(s.at, loop.index) and _far(s, along.index, elements)]
        near = [s for s in body if isinstance(s, Store) and _unit(s.at, along.index)]
        if far and near:
            return loop
    return None


def _values(s: Let | Store) -> Iterator[Reg]:
    yield from reads(s) if isinstance(s, Let) else [v for v in (s.value,) if isinstance(v, Reg)]


def _far(s: Load, index: Reg, elements: int) -> bool:
    """Whether blocks pay for a load whose neighbours along a loop are far apart."""
    by, size = s.at.coefficient(index), s.buffer.dtype.itemsize
    if not isinstance(by, int) or abs(by) < BLOCK:
        return False
    return elements * size <= NEAR_BYTES or by * size % CONFLICTING_BYTES == 0


def _in_blocks(across: For, along: For, body: Block, numbers: Iterator[int]) -> list[Statement]:
    """Two loops in blocks, and the elements beside the last whole block."""
    assert isinstance(across.extent, int) and isinstance(along.extent, int)
    (n, beside), (m, after) = divmod(across.extent, BLOCK), divmod(along.extent, BLOCK)

    def loop(extent: int) -> For:
        return For(Reg(next(numbers), INDEX), extent, ())

    def part(loops: Sequence[For], first: Affine, second: Affine) -> Statement:
        return _nested(loops, body, {across.index.number: first, along.index.number: second}, numbers)

    rows, columns, i, j = loop(n), loop(m), loop(BLOCK), loop(BLOCK)
    found = [
        part((rows, columns, i, j), Affine.of(rows.index) * BLOCK + i.index, Affine.of(columns.index) * BLOCK + j.index)
    ]
    if after:
        i, j = loop(across.extent), loop(after)
        found.append(part((i, j), Affine.of(i.index), Affine.of(j.index) + m * BLOCK))
    if beside:
        i, j = loop(beside), loop(m * BLOCK)
        found.append(part((i, j), Affine.of(i.index) + n * BLOCK, Affine.of(j.index)))
    return found


def _nested(loops: Sequence[For], body: Block, places: dict[int, Affine], numbers: Iterator[int]) -> Statement:
    """Loops around a copy of a body at other places, with registers of its own."""
    new: dict[int, Value] = {r.number: Reg(next(numbers), r.dtype) for s in body for r in all_registers(s)}

    def place(at: Affine) -> Affine:
        for reg, by in at.terms:
            index = places.get(reg.number)
            if index is not None:
                at = at - Affine.of(reg) * by + index * by
        return at

    moved = [with_values(s, lambda v: v, place) for s in body]
    return _rebuilt(loops, tuple([_renumbered(s, new) for s in substituted(moved, new)]))


def _renumbered(s: Statement, new: dict[int, Value]) -> Statement:
    if isinstance(s, Let | Position | Load):
        result = new[s.result.number]
        assert isinstance(result, Reg)
        return replace(s, result=result)
    return s
