"""`memory_budget`: the number of bytes that the reverse mode of a loop may store."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

from tenferro_runtime.control_flow.primitives import budgeted
from tenferro_runtime.ir._source import here
from tenferro_runtime.tracing._staged import staged
from tenferro_runtime.tracing.effects._recording import apply_here
from tenferro_tensor import Op
from tenferro_tensor_core import ArgumentError


def budget_of(what: str, memory_budget: Any) -> int | None:
    """Check the argument `memory_budget` of a loop.

    Raises:
        ArgumentError: it is neither ``None`` nor a positive integer.
    """
    if memory_budget is None:
        return None
    try:
        found = operator.index(memory_budget)
    except TypeError:
        found = 0
    if found < 1 or isinstance(memory_budget, bool):
        raise ArgumentError(
            f"{what} takes a positive number of bytes as memory_budget{here()}, got {memory_budget!r}; 64 MiB are 2**26"
        )
    return found


def within_budget(op: Op, operands: Sequence[Any], memory_budget: int | None) -> tuple[Any, ...]:
    """The results of a loop whose reverse mode stores at most a given number of bytes.

    Args:
        op: the op of the loop.
        operands: its operands.
        memory_budget: number of bytes, or ``None``.

    Returns:
        The results.
    """
    if memory_budget is None:
        return apply_here(op, operands)  # type: ignore[no-any-return]
    program = staged(op, [x.spec for x in operands]).program
    held = budgeted.op(program=program, memory_budget=memory_budget)
    return apply_here(held, operands)  # type: ignore[no-any-return]
