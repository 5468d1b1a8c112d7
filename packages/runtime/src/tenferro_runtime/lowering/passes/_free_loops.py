"""`free_loops`: marks a loop around while-loops as independent if its iterations cannot access the same memory.

A loop over the lanes of a batch, each with its own number of steps, can then be vectorized.
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

MAX_ACCESSES: Final = 32
"""Largest number of accesses in a loop that is analyzed, pair by pair."""


def free_loops(function: LoopFunction) -> LoopFunction:
    """Mark independent iterations.

    Args:
        function: the function.

    Returns:
        The function.
    """
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
    return len(list(touches(s.body))) <= MAX_ACCESSES and dependent(s, bounds) is None
