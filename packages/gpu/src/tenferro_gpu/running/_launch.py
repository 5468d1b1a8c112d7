"""Arguments of a launch: work groups, and the numbers that follow the buffers."""

from __future__ import annotations

from math import prod
from typing import Final, NamedTuple

from tenferro_gpu.rendering import BLOCK
from tenferro_gpu.running._layout import IterationSpace
from tenferro_tensor.device_model import Access, Over

MAX_WORK_GROUPS: Final = 1 << 16
"""Work groups of one launch at most; more elements are taken in several rounds."""

SATURATING_WORK_GROUPS: Final = 512
"""Work groups that keep a large device busy; reductions to fewer results are split into parts."""

SINGLE_ITEM_MAX_ELEMENTS: Final = 32
"""Reductions of at most this many elements per result use one work item; a group would mostly wait for itself."""


class LaunchArguments(NamedTuple):
    """One launch of a kernel.

    Attributes:
        groups: work groups.
        numbers: the integer arguments.
        parts: into which what goes into a result is split; 1 where nothing is.
    """

    groups: int
    numbers: tuple[int, ...]
    parts: int = 1


def over_of(layout: IterationSpace) -> Over:
    """Whether a group of work items computes one result of a reduction, or each work item one.

    A work item alone reads neighbouring results' elements beside its neighbours, which pays where these lie beside
    each other in memory.
    """
    if prod(layout.reduced) <= SINGLE_ITEM_MAX_ELEMENTS:
        return Over.LEADING
    for own, access in zip(layout.strides, layout.accesses):
        if access is not Access.FIXED:
            inner, kept = own[-1], own[len(layout.kept) - 1] if layout.kept else 0
            return Over.LEADING if kept == 1 and inner != 1 else Over.TRAILING
    return Over.TRAILING


def launch_of(layout: IterationSpace, over: Over | None = None) -> LaunchArguments:
    """The launch of a kernel on operands with this layout.

    Args:
        layout: the iteration space and the strides of the operands.
        over: how the results of a reduction are distributed over work items.

    >>> from tenferro_gpu.running import laid
    >>> launch_of(laid((5, 300), ((300, 1), (0, 1))))
    LaunchArguments(groups=6, numbers=(1500, 300, 0, 1), parts=1)
    """
    strides = [s for own, access in zip(layout.strides, layout.accesses) if access is Access.STRIDED for s in own]
    rows = prod(layout.kept)
    if over is None:
        return LaunchArguments(_groups(rows), (rows, *layout.kept[1:], *strides))
    length = prod(layout.reduced)
    at_once = rows if over is Over.TRAILING else _groups(rows)
    least = 4 * BLOCK if over is Over.TRAILING else SINGLE_ITEM_MAX_ELEMENTS
    parts = max(1, min(SATURATING_WORK_GROUPS // at_once, length // least))
    groups = min(rows * parts, MAX_WORK_GROUPS) if over is Over.TRAILING else _groups(rows * parts)
    return LaunchArguments(groups, (rows, length, parts, *layout.kept[1:], *layout.reduced[1:], *strides), parts)


def _groups(items: int) -> int:
    return min(-(-items // BLOCK), MAX_WORK_GROUPS)
