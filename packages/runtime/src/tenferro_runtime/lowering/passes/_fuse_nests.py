"""`fuse_nests`: fuses loops of equal extent if only equal iterations of both access the same memory.

The second loop may read what the same iteration of the first one stores, which is then in a register or in the nearest
cache. Outer loops are fused first, then the loops inside.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from tenferro_runtime.lowering._elementwise import SLOW
from tenferro_runtime.lowering.passes._conflicts import Extents, meet_elsewhere
from tenferro_runtime.lowering.passes._contents import Block, substituted, with_blocks
from tenferro_runtime.lowering.passes._footprint import Footprint, Footprints, footprint
from tenferro_tensor.loop_ir import Affine, For, Let, Load, Position, Statement, blocks, everything

MAX_BUFFERS: Final = 12
"""Largest number of buffers in a nest; more streams than a processor prefetches cost more than another loop."""

MAX_STATEMENTS: Final = 200
"""Largest number of statements in a nest; more would spill registers."""

WINDOW: Final = 32
"""Number of statements before a loop that are searched for one to fuse it with."""

MAX_PAIRS: Final = 256
"""Largest number of pairs of accesses that are compared for one fusion."""


@dataclass(slots=True)
class _Measured:
    """A statement of a block, with its analysis."""

    statement: Statement
    footprint: Footprint


def fuse_nests(statements: Sequence[Statement]) -> Block:
    """Fuse loops.

    Args:
        statements: the statements.

    Returns:
        Statements with equal bits and fewer loops.
    """
    extents: dict[int, object] = {s.index.number: s.extent for s in everything(statements) if isinstance(s, For)}
    return _fused(statements, extents, {})  # type: ignore[arg-type]


def fusible(first: Statement, second: Statement) -> bool:
    """Whether two statements are loops that may become one."""
    one, two = (_Measured(s, footprint(s, {})) for s in (first, second))
    extents = {s.index.number: s.extent for s in everything((first, second)) if isinstance(s, For)}
    return _fits(one) and _fits(two) and _fusible(one, two, extents)


def _fused(statements: Sequence[Statement], extents: Extents, known: Footprints) -> Block:
    joined = _joined(statements, extents, known) if sum(map(_may_fuse, statements)) > 1 else statements
    found = []
    for s in joined:
        inner = blocks(s)
        found.append(with_blocks(s, [_fused(b, extents, known) for b in inner]) if inner else s)
    return tuple(found)


def _may_fuse(s: Statement) -> bool:
    return isinstance(s, For)


def _joined(statements: Sequence[Statement], extents: Extents, known: Footprints) -> list[Statement]:
    """The statements of a block, with loops fused."""
    done: list[_Measured] = []
    for s in statements:
        entry = _Measured(s, footprint(s, known))
        if not (_fits(entry) and _join(done, entry, extents, known)):
            done.append(entry)
    return [entry.statement for entry in done]


def _fits(entry: _Measured) -> bool:
    """Whether a statement is a loop that can be fused with others."""
    return _may_fuse(entry.statement) and entry.footprint.regular


def _join(done: list[_Measured], entry: _Measured, extents: Extents, known: Footprints) -> bool:
    """Fuse a loop with one of the last statements, if it may move up to it."""
    moving: list[_Measured] = []
    for k in range(len(done) - 1, max(-1, len(done) - 1 - WINDOW), -1):
        other = done[k]
        if (
            _fits(other)
            and _fusible(other, entry, extents)
            and all(m.footprint.commutes_with(other.footprint) for m in moving)
        ):
            first, second = other.statement, entry.statement
            assert isinstance(first, For) and isinstance(second, For)
            fused = _both(first, second)
            whole = _Measured(fused, footprint(fused, known))
            # In their original order: statements that the second loop needs now precede the first loop.
            kept = [e for e in done[k + 1 :] if all(e is not m for m in moving)]
            done[k:] = reversed(moving)
            # What the second loop reads may connect the first one with a loop before it.
            if not _join(done, whole, extents, known):
                done.append(whole)
            done += kept
            return True
        if all(m.footprint.commutes_with(other.footprint) for m in (entry, *moving)):
            continue
        if not (isinstance(other.statement, Let | Position | Load) or _fits(other)):
            return False
        moving.append(other)
    return False


def _fusible(first: _Measured, second: _Measured, extents: Extents) -> bool:
    """Whether fusing two adjacent loops is allowed and useful.

    A reduction and independent iterations are not fused, because the reduction would prevent vectorization.
    """
    a, b, one, two = first.statement, second.statement, first.footprint, second.footprint
    assert isinstance(a, For) and isinstance(b, For)
    if (
        a.extent != b.extent
        or a.order is not b.order
        or one.lines + two.lines > MAX_STATEMENTS
        or one.branches != two.branches
    ):
        return False
    if _sums(a) and _is_mathematics(b):
        return False
    if not one.sets.isdisjoint(two.reads) or one.buffers.isdisjoint(two.buffers):
        return False
    if len(one.buffers | two.buffers) > MAX_BUFFERS:
        return False
    inside = (one.inside | two.inside) - {a.index.number, b.index.number}
    pairs = 0
    for mine, its in ((one.stores, two.loads), (one.stores, two.stores), (one.loads, two.stores)):
        for number in mine.keys() & its.keys():
            others = {_renamed(at, b, a) for at in its[number]}
            for at in set(mine[number]):
                pairs += len(others)
                if pairs > MAX_PAIRS or any(meet_elsewhere(at, x, a.index, inside, extents) for x in others):
                    return False
    return True


def _sums(s: For) -> bool:
    """Whether an iteration contains sums along its own rows."""
    return any(isinstance(t, For) and t.carries for t in s.body)


def _is_mathematics(s: For) -> bool:
    """Whether iterations consist of elementary functions, which vectors compute much faster."""
    slow = any(isinstance(t, Let) and t.op.primitive.work >= SLOW for t in s.body)
    return slow and not any(blocks(t) for t in s.body)


def _renamed(at: Affine, of: For, to: For) -> Affine:
    by = at.coefficient(of.index)
    return at if by.__class__ is int and by == 0 else at - Affine.of(of.index) * by + Affine.of(to.index) * by


def _both(first: For, second: For) -> For:
    """The fused loop: each iteration of the first loop before that of the second."""
    body = substituted(second.body, {second.index.number: first.index})
    following = [first.index if c.following == second.index else c.following for c in second.carries]
    carries = [
        *first.carries, *[replace(c, following=v) for c, v in zip(second.carries, following, strict=True)]
    ]  # fmt: skip
    return For(first.index, first.extent, (*first.body, *body), tuple(carries), first.order)
