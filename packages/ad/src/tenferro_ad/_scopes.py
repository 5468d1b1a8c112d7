"""Dispatch of ops on differentiated values inside scopes that change their behaviour."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tenferro_ad._limits_at_degeneracy import moved
from tenferro_ad._modes import silent
from tenferro_runtime.tracing import stage_above
from tenferro_tensor import Op


def by_scope(level: int, op: Op, operands: tuple[Any, ...], values: Sequence[Any]) -> Any:
    """Run an op as the open scopes require; ``None`` if no scope applies.

    Args:
        level: the highest level among the operands.
        op: the op.
        operands: its operands.
        values: the operands, with those of this level replaced by their inner values.
    """
    if silent(level):
        return op(*values)
    inner = stage_above(level)
    return moved(op, operands) if inner is None else inner.bind(op, operands)
