"""Reductions, cumulative operations, sorting and searching, along axes after the lane axis."""

from __future__ import annotations

from typing import Any

from tenferro_runtime.batching._lanes import lane_by_lane
from tenferro_runtime.batching._records import Flags, Values, shifting
from tenferro_tensor import Registry, catalog
from tenferro_tensor_core import DimLike

_OVER_AXES = (
    catalog.reduce_sum, catalog.reduce_prod, catalog.reduce_max, catalog.reduce_min, catalog.reduce_all,
    catalog.reduce_any,
)  # fmt: skip
_ALONG_AN_AXIS = (
    catalog.argmax, catalog.argmin, catalog.cumsum, catalog.cumprod, catalog.cummax, catalog.cummin,
    catalog.cumlogsumexp, catalog.sort, catalog.argsort,
)  # fmt: skip


def _searchsorted(size: DimLike, values: Values, batched: Flags, *, side: str) -> Any:
    if batched[0]:  # a vector for each lane
        return lane_by_lane(catalog.searchsorted.op(side=side), size, values, batched)
    return catalog.searchsorted(*values, side=side)


def register(registry: Registry) -> None:
    """Register them."""
    for p in _OVER_AXES:
        registry.batching(p, shifting(p, "axes"))
    for p in _ALONG_AN_AXIS:
        registry.batching(p, shifting(p, "axis"))
    registry.batching(catalog.searchsorted, _searchsorted)
