"""Shapes, concatenation, creation and contraction."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from tenferro_tensor import Primitive, Spec, catalog
from tenferro_xla._emitter import HloEmitter, HloValue
from tenferro_xla._text import i64s, listed


def _broadcast_in_dim(e: HloEmitter, xs: Any, outs: Any, *, shape: Any, dims: Any) -> HloValue:
    return e.broadcast(xs[0], shape, dims)


def _reshape(e: HloEmitter, xs: Any, outs: Any, *, shape: Any) -> HloValue:
    return e.op("reshape", xs, outs[0])


def _transpose(e: HloEmitter, xs: Any, outs: Any, *, permutation: Any) -> HloValue:
    return e.transpose(xs[0], permutation)


def _slice(e: HloEmitter, xs: Any, outs: Any, *, start: Any, limit: Any, stride: Any) -> HloValue:
    return e.op(
        "slice", xs, outs[0], f"start_indices = {i64s(start)}, limit_indices = {i64s(limit)}, strides = {i64s(stride)}"
    )


def _pad(e: HloEmitter, xs: Any, outs: Any, *, low: Any, high: Any, interior: Any) -> HloValue:
    return e.op(
        "pad",
        xs,
        outs[0],
        f"edge_padding_low = {i64s(low)}, edge_padding_high = {i64s(high)}, interior_padding = {i64s(interior)}",
    )


def _update_slice(e: HloEmitter, xs: Any, outs: Any, *, start: Any, stride: Any, mode: str) -> HloValue:
    """A contiguous update is a block; a strided update is padded and selected by a mask."""
    x, update = xs
    if mode == "add":
        limit = tuple([a + (n - 1) * s + 1 if n else a for a, n, s in zip(start, update.spec.shape, stride)])
        there = _slice(e, (x,), (update.spec,), start=start, limit=limit, stride=stride)
        update = e.op("add", (there, update), update.spec)
    if all(s == 1 for s in stride):
        at = [e.constant(a, Spec((), np.dtype("int64"))) for a in start]
        return e.op("dynamic_update_slice", (x, update, *at), outs[0])
    inside = e.constant(True, update.spec.with_(dtype=np.dtype(np.bool_)))
    ends = [a + max(0, (n - 1) * s + 1) for a, n, s in zip(start, update.spec.shape, stride)]
    around = {
        "low": start,
        "high": tuple([n - end for n, end in zip(x.spec.shape, ends)]),
        "interior": tuple([s - 1 for s in stride]),
    }
    where, what = [
        _pad(e, (v, e.constant(0, v.spec.with_(shape=()))), (x.spec.with_(dtype=v.spec.dtype),), **around)
        for v in (inside, update)
    ]
    return e.op("select", (where, what, x), outs[0])


def _concatenate(e: HloEmitter, xs: Any, outs: Any, *, axis: int) -> HloValue:
    return e.op("concatenate", xs, outs[0], f"dimension = {axis} : i64")


def _reverse(e: HloEmitter, xs: Any, outs: Any, *, axes: Any) -> HloValue:
    return e.op("reverse", xs, outs[0], f"dimensions = {i64s(axes)}")


def _iota(e: HloEmitter, xs: Any, outs: Any, *, shape: Any, dtype: Any, axis: int, place: Any) -> HloValue:
    return e.iota(outs[0], axis)


def _dim_value(e: HloEmitter, xs: Any, outs: Any, *, size: int, place: Any) -> HloValue:
    return e.constant(size, outs[0])


def _dot_general(e: HloEmitter, xs: Any, outs: Any, *, contract: Any, batch: Any) -> HloValue:
    """XLA has no dot product of booleans: it is computed in integers and compared with 0."""
    numbers = (
        f"#stablehlo.dot<lhs_batching_dimensions = {listed(batch[0])}, rhs_batching_dimensions = {listed(batch[1])}, "
        f"lhs_contracting_dimensions = {listed(contract[0])}, rhs_contracting_dimensions = {listed(contract[1])}>"
    )
    exact = "[#stablehlo<precision HIGHEST>, #stablehlo<precision HIGHEST>]"
    attributes = f"dot_dimension_numbers = {numbers}, precision_config = {exact}"
    if outs[0].dtype != np.bool_:
        return e.op("dot_general", xs, outs[0], attributes)
    counted = outs[0].with_(dtype=np.dtype("int32"))
    count = e.op("dot_general", [e.convert(x, np.int32) for x in xs], counted, attributes)
    return e.compare("NE", count, e.constant(0, counted))


STRUCTURE: Final[dict[Primitive, Callable[..., HloValue]]] = {
    catalog.broadcast_in_dim: _broadcast_in_dim,
    catalog.reshape: _reshape,
    catalog.transpose: _transpose,
    catalog.slice_: _slice,
    catalog.pad: _pad,
    catalog.update_slice: _update_slice,
    catalog.concatenate: _concatenate,
    catalog.reverse: _reverse,
    catalog.dim_value: _dim_value,
    catalog.iota: _iota,
    catalog.dot_general: _dot_general,
}
"""Lowerings of the structural, creating and contracting primitives."""
