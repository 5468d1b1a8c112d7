"""The kernel form of a nest: which work items run its iterations, and which statements run beside it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tenferro_gpu.rendering import _sharing, chain, parallel_work, rows
from tenferro_tensor import catalog
from tenferro_tensor.loop_ir import (
    Call,
    For,
    Foreign,
    Let,
    Load,
    Order,
    Position,
    Role,
    Statement,
    Store,
    everything,
    swapped,
)
from tenferro_tensor_core import UnsupportedError

MAX_GROUP_WORK: Final = 1 << 12
"""Maximum iterations that one group runs instead of a separate kernel: a launch takes as long."""

MAX_HOST_ROWS: Final = 8
"""Maximum outer iterations that the host runs if inner loops are large."""

MIN_GRID_WORK: Final = 1 << 16
"""Minimum iterations of a loop that justify a separate kernel instead of one group."""

MAX_BEFORE: Final = 32
"""Maximum statements that every work item runs before a nest, instead of one in a previous kernel."""


def require_kernels(statements: Sequence[Statement]) -> None:
    """Check that kernels support every statement of a function.

    Raises:
        UnsupportedError: they do not; the text gives the reason.
    """
    for s in everything(statements):
        if isinstance(s, Foreign) or (isinstance(s, Call) and s.op.primitive is catalog.transfer):
            what = s.symbol if isinstance(s, Foreign) else s.op.primitive.name
            raise UnsupportedError(f"{what} is nothing that one GPU does by itself", primitive=what)
        if isinstance(s, For) and s.order is not Order.GIVEN and _is_controlled(s.body):
            raise UnsupportedError(
                "iterations in any order call libraries or swap buffers, which has no form in a kernel of a GPU"
            )


def _is_controlled(statements: Sequence[Statement]) -> bool:
    """Whether only the host can run statements, because they call libraries or swap buffers."""
    return any(isinstance(s, Call) for s in everything(statements)) or any(True for _ in swapped(statements))


def fits_group(s: Statement) -> bool:
    """Whether one group runs a statement: it has little parallel work, and no swaps."""
    work = parallel_work([s])
    return work is not None and work <= MAX_GROUP_WORK and not _is_controlled([s])


def runs_before(statements: Sequence[Statement]) -> bool:
    """Whether every work item of a nest may run statements first: they are few, and read nothing that is written."""
    return len(statements) <= MAX_BEFORE and all(
        isinstance(s, Let | Position) or (isinstance(s, Load) and s.buffer.role in (Role.INPUT, Role.CONSTANT))
        for s in statements
    )


def split_of(nest: For) -> For | None:
    """The loop whose parts several groups run, if the surrounding loops have few iterations.

    Args:
        nest: a parallel nest.
    """
    axes, inner = chain(nest)
    count = rows(axes)
    if count is None or count >= _sharing.FEW_ROWS:
        return None
    for s in inner.body:
        if isinstance(s, For) and s.order is Order.GROUPED and s.carries and not fits_group(s):
            return None if _stores([s]) else s
        if _stores([s]):
            return None
    return None


def is_for_host(nest: For) -> bool:
    """Whether the host runs the outer loops of a nest: few iterations, each with several large loops.

    One group per iteration would leave most of a GPU idle.
    """
    axes, inner = chain(nest)
    count = rows(axes)
    if count is None or count > MAX_HOST_ROWS:
        return False
    loops = [s for s in inner.body if isinstance(s, For) and s.order is not Order.GIVEN]
    large = [s for s in loops if (parallel_work([s]) or 0) >= MIN_GRID_WORK]
    return len(large) > 1 or any(s.order is Order.ANY for s in large)


def _stores(statements: Sequence[Statement]) -> bool:
    return any(isinstance(s, Store) for s in everything(statements))
