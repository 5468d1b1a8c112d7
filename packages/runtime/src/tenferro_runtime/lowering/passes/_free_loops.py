"""`free_loops`: a loop around loops that end on their own may run in any order where iterations cannot meet in memory.

So a loop over the lanes of a batch, each of which goes on for as long as it has to, becomes one for vectors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from tenferro_runtime.lowering.passes._contents import Block, with_blocks
from tenferro_tensor.loop_ir import (
    Bounds,
    Call,
    For,
    Foreign,
    LoopFunction,
    Order,
    Statement,
    While,
    blocks,
    dependent,
    everything,
    touches,
)

MOST_ACCESSES: Final = 32
"""Accesses of the largest loop that is looked at: each is compared with each."""


def free_loops(function: LoopFunction) -> LoopFunction:
    """The function with independent iterations marked as such."""
    bounds = Bounds.of(everything(function.body))
    body = _freed(function.body, bounds)
    return replace(function, body=body)


def _freed(statements: Sequence[Statement], bounds: Bounds) -> Block:
    return tuple([_one(s, bounds) for s in statements])


def _one(s: Statement, bounds: Bounds) -> Statement:
    if isinstance(s, For) and s.order is Order.GIVEN and not s.carries and _is_free(s, bounds):
        return replace(s, order=Order.ANY)
    inner = blocks(s)
    return with_blocks(s, [_freed(b, bounds) for b in inner]) if inner else s


def _is_free(s: For, bounds: Bounds) -> bool:
    inside = list(everything(s.body))
    if s.swaps or not any(isinstance(t, While) for t in inside):
        return False
    if any(isinstance(t, Call | Foreign) or getattr(t, "swaps", ()) for t in inside):
        return False
    return len(list(touches(s.body))) <= MOST_ACCESSES and dependent(s, bounds) is None
