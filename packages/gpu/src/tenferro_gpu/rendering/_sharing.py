"""Which work items run the iterations of a parallel nest."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from tenferro_gpu.rendering._loops import Axes, chain, rows
from tenferro_gpu.rendering._nest_kernels import Sharing
from tenferro_tensor.loop_ir import Affine, For, Load, Order, Reg, Statement, Store, blocks, everything
from tenferro_tensor_core import DimLike

MIN_GROUP_EXTENT: Final = 32
"""Minimum iterations of an inner loop that a group shares; shorter loops are left to one work item."""

FEW_ROWS: Final = 64
"""Outer iterations below which groups run them, because there would be too few work items."""


def sharing_of(nest: For) -> Sharing:
    """Which work items run the iterations of a parallel nest.

    Adjacent work items should access adjacent elements: one work item per outer iteration if the last outer index moves
    by one element, one group if an inner index does.

    Args:
        nest: the nest, of parallel loops.

    Returns:
        Who runs them.
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
