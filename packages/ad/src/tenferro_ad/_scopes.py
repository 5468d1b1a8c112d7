"""Scopes that change what an op on differentiated values does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tenferro_ad._beside import moved
from tenferro_ad._modes import silent
from tenferro_runtime.tracing import stage_above
from tenferro_tensor import Op


def by_scope(level: int, op: Op, operands: tuple[Any, ...], values: Sequence[Any]) -> Any:
    """Run an op as an open scope has it; ``None`` where no scope says how.

    Args:
        level: the highest level among the operands.
        op: the op.
        operands: its operands.
        values: the operands, with the values inside of those of this level.
    """
    if silent(level):
        return op(*values)
    inner = stage_above(level)
    return moved(op, operands) if inner is None else inner.bind(op, operands)
