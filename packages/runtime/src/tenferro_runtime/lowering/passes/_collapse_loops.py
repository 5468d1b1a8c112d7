"""`collapse_loops`: two loops that traverse memory contiguously become one loop.

Short rows then fill vectors, and a nest over a whole array can be divided anywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tenferro_runtime.lowering.passes._contents import Block, hands_on, reads, substituted, with_blocks
from tenferro_tensor.loop_ir import (
    INDEX,
    Carried,
    For,
    Let,
    Literal,
    Load,
    Order,
    Position,
    Statement,
    Store,
    blocks,
    everything,
)


def collapse_loops(statements: Sequence[Statement]) -> Block:
    """Collapse nested loops.

    Args:
        statements: the statements.

    Returns:
        Statements with equal bits and fewer loop levels.
    """
    return tuple([_collapsed(s) for s in statements])


def _collapsed(s: Statement) -> Statement:
    inner = blocks(s)
    if inner:
        s = with_blocks(s, [collapse_loops(b) for b in inner])
    if not isinstance(s, For) or len(s.body) != 1 or not isinstance(s.body[0], For):
        return s
    within = s.body[0]
    carries = _carries(s, within)
    if carries is None or not all(_goes_on(t, s, within) for t in everything(within.body)):
        return s
    body = substituted(within.body, {s.index.number: Literal(0, INDEX)})
    return For(within.index, s.extent * within.extent, body, carries, s.order)


def _carries(outer: For, inner: For) -> tuple[Carried, ...] | None:
    """The carries of the collapsed loop, or None if the orders of the loops differ."""
    if outer.order is Order.GIVEN or outer.order is not inner.order or len(outer.carries) != len(inner.carries):
        return None
    handed = {c.first: c for c in inner.carries}
    found = []
    for c in outer.carries:
        within = handed.get(c.inside)
        if within is None or c.following != within.result:
            return None
        found.append(replace(within, first=c.first, result=c.result))
    return tuple(found)


def _goes_on(s: Statement, outer: For, inner: For) -> bool:
    """Whether both indices are used for addresses only, with contiguous ranges of the inner loop."""
    both = (outer.index, inner.index)
    match s:
        case Load(at=at) | Store(at=at) | Position(index=at):
            far, step = (at.coefficient(index) for index in both)
            return far == step * inner.extent and not (isinstance(s, Store) and s.value in both)
        case Let(args=args):
            return not any(index in args for index in both)
    return not any(reg in both for reg in (*reads(s), *hands_on(s)))
