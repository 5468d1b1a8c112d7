"""Which kernel a nest becomes: who runs its iterations, and what runs beside it."""

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
"""Iterations that one group runs rather than a kernel of their own: a launch takes as long."""

MIN_GROUP_EXTENT: Final = 32
"""Iterations of an inner loop that a group shares; fewer are left to one work item."""

FEW_ROWS: Final = 64
"""Iterations of outer loops below which groups run them, for there would be too few work items."""

MAX_HOST_ROWS: Final = 8
"""Iterations of outer loops that the host runs where inner loops are large."""

MIN_GRID_WORK: Final = 1 << 16
"""Iterations of a loop that are worth a kernel of their own rather than one group."""

MAX_BEFORE: Final = 32
"""Statements that every work item runs before a nest, rather than one in a kernel before."""


def require_kernels(statements: Sequence[Statement]) -> None:
    """Check that a function consists of what kernels can do.

    Raises:
        UnsupportedError: it does not; the text says why.
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
    """Whether only the host can run statements: they call libraries, or swap buffers."""
    return any(isinstance(s, Call) for s in everything(statements)) or any(True for _ in swapped(statements))


def fits_group(s: Statement) -> bool:
    """Whether one group runs a statement: what may run at once in it is little, and nothing is swapped."""
    work = parallel_work([s])
    return work is not None and work <= MAX_GROUP_WORK and not _is_controlled([s])


def runs_before(statements: Sequence[Statement]) -> bool:
    """Whether every work item of a nest may run statements before it: they are few, and read what nobody writes."""
    return len(statements) <= MAX_BEFORE and all(
        isinstance(s, Let | Position) or (isinstance(s, Load) and s.buffer.role in (Role.INPUT, Role.CONSTANT))
        for s in statements
    )


def sharing_of(nest: For) -> Sharing:
    """Who runs the iterations of a parallel nest.

    Work items beside each other should touch elements beside each other: a work item alone for iterations of the outer
    loops where the index of the last one moves by one element, a group where that of the inner loops does.
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


def split_of(nest: For, wanted: bool = False) -> For | None:
    """The loop of which several groups run parts, where there are few iterations of the loops around it.

    Args:
        nest: a parallel nest.
        wanted: whether it is known that there are few.
    """
    axes, inner = chain(nest)
    count = rows(axes)
    if not wanted and (count is None or count >= FEW_ROWS):
        return None
    for s in inner.body:
        if isinstance(s, For) and s.order is Order.GROUPED and s.carries and not fits_group(s):
            return None if _stores([s]) else s
        if _stores([s]):
            return None
    return None


def is_for_host(nest: For) -> bool:
    """Whether the host runs the outer loops of a nest: there are few iterations, each with several large loops.

    A group for each iteration would leave most of a GPU idle.
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
    """The outermost loops inside of statements that a group would share, with their bodies."""
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
    """Whether a place stays, or moves by one element, with an index."""
    by: DimLike = at.coefficient(index)
    return isinstance(by, int) and abs(by) <= 1
