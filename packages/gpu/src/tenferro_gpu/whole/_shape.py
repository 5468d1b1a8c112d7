"""The kernel form of a nest: which work items run its iterations, and which statements run beside it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from tenferro_gpu.rendering import Axes, Sharing, chain, parallel_work, rows
from tenferro_tensor import catalog
from tenferro_tensor.loop_ir import (
    Affine,
    Call,
    For,
    Foreign,
    Let,
    Load,
    Order,
    Position,
    Reg,
    Role,
    Statement,
    Store,
    blocks,
    everything,
    swapped,
)
from tenferro_tensor_core import DimLike, UnsupportedError

MAX_GROUP_WORK: Final = 1 << 12
"""Maximum iterations that one group runs instead of a separate kernel: a launch takes as long."""

MIN_GROUP_EXTENT: Final = 32
"""Minimum iterations of an inner loop that a group shares; shorter loops are left to one work item."""

FEW_ROWS: Final = 64
"""Outer iterations below which groups run them, because there would be too few work items."""

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


def sharing_of(nest: For) -> Sharing:
    """Which work items run the iterations of a parallel nest.

    Adjacent work items should access adjacent elements: one work item per outer iteration if the last outer index moves
    by one element, one group if an inner index does.
    """
    axes, inner = chain(nest)
    loops = list(_inner_parallel(inner.body))
    if not loops:
        return Sharing.ITEMS
    count = rows(axes)
    if count is not None and count < FEW_ROWS:
        return Sharing.GROUPS
    last, item, group = axes[-1][0], 0, 0
    for own, body in loops:
        for s in everything(body):
            if isinstance(s, Load | Store):
                item += not _adjacent(s.at, last)
                group += not _adjacent(s.at, own[-1][0])
    return Sharing.GROUPS if item > group or item == group > 0 else Sharing.ITEMS


def split_of(nest: For) -> For | None:
    """The loop whose parts several groups run, if the surrounding loops have few iterations.

    Args:
        nest: a parallel nest.
    """
    axes, inner = chain(nest)
    count = rows(axes)
    if count is None or count >= FEW_ROWS:
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


def _inner_parallel(statements: Sequence[Statement]) -> Iterator[tuple[Axes, Sequence[Statement]]]:
    """The outermost inner loops that a group would share, with their bodies."""
    for s in statements:
        if isinstance(s, For) and s.order is not Order.GIVEN:
            axes, inner = chain(s)
            count = rows(axes)
            if count is None or count >= MIN_GROUP_EXTENT:
                yield axes, inner.body
                continue
        for block in blocks(s):
            yield from _inner_parallel(block)


def _adjacent(at: Affine, index: Reg) -> bool:
    """Whether a position is constant, or moves by one element, with an index."""
    by: DimLike = at.coefficient(index)
    return isinstance(by, int) and abs(by) <= 1
