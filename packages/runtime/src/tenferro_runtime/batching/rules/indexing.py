"""Indexing at computed positions: if positions differ between lanes, the lane becomes an index component."""

from __future__ import annotations

from typing import Any

import numpy as np

from tenferro_runtime.batching._records import Flags, Shape, Values, all_with_lanes, shifted
from tenferro_tensor import Registry, catalog, tensor
from tenferro_tensor.operands import number
from tenferro_tensor_core import DimLike, int64

Axes = tuple[int, ...]


def _gather(
    size: DimLike,
    values: Values,
    batched: Flags,
    *,
    offset_dims: Axes,
    collapsed_dims: Axes,
    start_index_map: Axes,
    slice_sizes: Shape,
) -> Any:
    x, indices = values
    offsets, collapsed, starts = shifted(offset_dims), shifted(collapsed_dims), shifted(start_index_map)
    if not batched[0]:
        return catalog.gather(
            x, indices, offset_dims=offsets, collapsed_dims=collapsed_dims, start_index_map=start_index_map,
            slice_sizes=slice_sizes,
        )  # fmt: skip
    if not batched[1]:
        return catalog.gather(
            x, indices, offset_dims=(0, *offsets), collapsed_dims=collapsed, start_index_map=starts,
            slice_sizes=(size, *slice_sizes),
        )  # fmt: skip
    return catalog.gather(
        x, _with_lane(size, indices), offset_dims=offsets, collapsed_dims=(0, *collapsed),
        start_index_map=(0, *starts), slice_sizes=(1, *slice_sizes),
    )  # fmt: skip


def _scatter(
    size: DimLike,
    values: Values,
    batched: Flags,
    *,
    update_window_dims: Axes,
    inserted_dims: Axes,
    scatter_dims: Axes,
    mode: str,
) -> Any:
    window, inserted, starts = shifted(update_window_dims), shifted(inserted_dims), shifted(scatter_dims)
    if not batched[1]:
        x, updates = all_with_lanes(size, (values[0], values[2]), (batched[0], batched[2]))
        return catalog.scatter(
            x, values[1], updates, update_window_dims=(0, *window), inserted_dims=inserted, scatter_dims=starts,
            mode=mode,
        )  # fmt: skip
    x, indices, updates = all_with_lanes(size, values, batched)
    return catalog.scatter(
        x, _with_lane(size, indices), updates, update_window_dims=window, inserted_dims=(0, *inserted),
        scatter_dims=(0, *starts), mode=mode,
    )  # fmt: skip


def _with_lane(size: DimLike, indices: Any) -> Any:
    """Prepend the number of the lane to index vectors."""
    dtype = indices.spec.dtype
    if dtype.itemsize < int64.itemsize:  # the largest number of lanes
        indices, dtype = catalog.convert(indices, dtype=int64), int64
    shape = (size, *indices.spec.shape[1:-1], 1)
    return catalog.concatenate(
        catalog.iota(shape=shape, dtype=dtype, axis=0, place=indices.spec.place), indices, axis=len(shape) - 1
    )


def _dynamic_slice(size: DimLike, values: Values, batched: Flags, *, sizes: Shape) -> Any:
    x, *starts = values
    if not any(batched[1:]):
        return catalog.dynamic_slice(x, _zero(starts, x), *starts, sizes=(size, *sizes))
    axes = tuple(range(len(starts)))
    indices = _positions(size, tuple(starts), batched[1:])
    how: dict[str, Any] = {"offset_dims": axes, "collapsed_dims": (), "start_index_map": axes, "slice_sizes": sizes}
    return _gather(size, (x, indices), (batched[0], True), **how)


def _dynamic_update_slice(size: DimLike, values: Values, batched: Flags) -> Any:
    x, update, *starts = values
    if not any(batched[2:]):
        x, update = all_with_lanes(size, (x, update), batched[:2])
        return catalog.dynamic_update_slice(x, update, _zero(starts, x), *starts)
    lane = x.spec.shape[1:] if batched[0] else x.spec.shape
    extents = update.spec.shape[1:] if batched[1] else update.spec.shape
    # A scatter drops a window that is out of bounds; here it is clamped.
    inside = tuple([catalog.clamp(s, 0, _last(s, n - m)) for s, n, m in zip(starts, lane, extents, strict=True)])
    axes = tuple(range(len(starts)))
    indices = _positions(size, inside, batched[2:])
    how: dict[str, Any] = {"update_window_dims": axes, "inserted_dims": (), "scatter_dims": axes, "mode": "set"}
    return _scatter(size, (x, indices, update), (batched[0], True, batched[1]), **how)


def _last(start: Any, room: DimLike) -> Any:
    """The largest start, in the dtype of the starts."""
    value = number(room, start.spec.place)
    return value if value.__class__ is int else catalog.convert(value, dtype=start.spec.dtype)


def _zero(starts: list[Any], x: Any) -> Any:
    """The start along the axis of the lanes."""
    dtype = starts[0].spec.dtype if starts else int64
    return tensor(np.zeros((), dtype), device=x.spec.place.device)


def _positions(size: DimLike, starts: Values, batched: Flags) -> Any:
    """Starts along each axis as one index vector for each lane."""
    columns = [catalog.reshape(s, shape=(size, 1)) for s in all_with_lanes(size, starts, batched)]
    return catalog.concatenate(*columns, axis=1)


def register(registry: Registry) -> None:
    """Register them."""
    registry.batching(catalog.gather, _gather)
    registry.batching(catalog.scatter, _scatter)
    registry.batching(catalog.dynamic_slice, _dynamic_slice)
    registry.batching(catalog.dynamic_update_slice, _dynamic_update_slice)
