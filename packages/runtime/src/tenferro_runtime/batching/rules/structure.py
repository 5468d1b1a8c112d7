"""Shape and order of axes: the lane axis stays in front, unchanged."""

from __future__ import annotations

from typing import Any

import numpy as np

from tenferro_runtime.batching._records import Flags, Shape, Values, all_with_lanes, on_stacks, shifting, with_lanes
from tenferro_tensor import Registry, catalog, tensor
from tenferro_tensor_core import DimLike


def _reshape(size: DimLike, values: Values, batched: Flags, *, shape: Shape) -> Any:
    return catalog.reshape(values[0], shape=(size, *shape))


def _broadcast(size: DimLike, values: Values, batched: Flags, *, shape: Shape, dims: tuple[int, ...]) -> Any:
    return catalog.broadcast_in_dim(values[0], shape=(size, *shape), dims=(0, *[d + 1 for d in dims]))


def _transpose(size: DimLike, values: Values, batched: Flags, *, permutation: tuple[int, ...]) -> Any:
    return catalog.transpose(values[0], permutation=(0, *[p + 1 for p in permutation]))


def _slice(size: DimLike, values: Values, batched: Flags, *, start: Shape, limit: Shape, stride: Shape) -> Any:
    return catalog.slice_(values[0], start=(0, *start), limit=(size, *limit), stride=(1, *stride))


def _update_slice(size: DimLike, values: Values, batched: Flags, *, start: Shape, stride: Shape, mode: str) -> Any:
    x, update = all_with_lanes(size, values, batched)
    return catalog.update_slice(x, update, start=(0, *start), stride=(1, *stride), mode=mode)


def _pad(size: DimLike, values: Values, batched: Flags, *, low: Shape, high: Shape, interior: Shape) -> Any:
    x, value = values
    how: dict[str, Any] = {"low": (0, *low), "high": (0, *high), "interior": (0, *interior)}
    if not batched[1]:
        return catalog.pad(x, value, **how)
    # Each lane has its own padding value: pad with zeros, then select by the positions of the elements.
    x = x if batched[0] else with_lanes(size, x)
    shape, device = x.spec.shape, x.spec.place.device
    zero, outside, here = (tensor(np.asarray(v), device=device) for v in (x.spec.dtype.type(0), False, True))
    padded = catalog.pad(x, zero, **how)
    inside = catalog.pad(catalog.broadcast_in_dim(here, shape=shape, dims=()), outside, **how)
    return catalog.select(inside, padded, catalog.broadcast_in_dim(value, shape=padded.spec.shape, dims=(0,)))


def _concatenate(size: DimLike, values: Values, batched: Flags, *, axis: int) -> Any:
    return catalog.concatenate(*all_with_lanes(size, values, batched), axis=axis + 1)


def register(registry: Registry) -> None:
    """Register them."""
    registry.batching(catalog.reshape, _reshape)
    registry.batching(catalog.broadcast_in_dim, _broadcast)
    registry.batching(catalog.transpose, _transpose)
    registry.batching(catalog.slice_, _slice)
    registry.batching(catalog.update_slice, _update_slice)
    registry.batching(catalog.pad, _pad)
    registry.batching(catalog.concatenate, _concatenate)
    registry.batching(catalog.reverse, shifting(catalog.reverse, "axes"))
    registry.batching(catalog.transfer, on_stacks(catalog.transfer))
