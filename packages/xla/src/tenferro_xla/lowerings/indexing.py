"""Gather, scatter and dynamic slices, which are StableHLO operations, and binary search."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from tenferro_tensor import Primitive, catalog
from tenferro_xla._emitter import HloEmitter, HloValue
from tenferro_xla._text import i64s, listed
from tenferro_xla.lowerings.elementwise import scalar_of
from tenferro_xla.lowerings.reduction import joined


def _gather(
    e: HloEmitter, xs: Any, outs: Any, *, offset_dims: Any, collapsed_dims: Any, start_index_map: Any, slice_sizes: Any
) -> HloValue:
    numbers = (
        f"#stablehlo.gather<offset_dims = {listed(offset_dims)}, collapsed_slice_dims = {listed(collapsed_dims)}, "
        f"start_index_map = {listed(start_index_map)}, index_vector_dim = {xs[1].spec.ndim - 1}>"
    )
    return e.op(
        "gather",
        xs,
        outs[0],
        f"dimension_numbers = {numbers}, slice_sizes = {i64s(slice_sizes)}, indices_are_sorted = false",
    )


_JOINS: Final = {"add": "add", "mul": "multiply", "min": "minimum", "max": "maximum"}


def _scatter(
    e: HloEmitter, xs: Any, outs: Any, *, update_window_dims: Any, inserted_dims: Any, scatter_dims: Any, mode: str
) -> HloValue:
    numbers = (
        f"#stablehlo.scatter<update_window_dims = {listed(update_window_dims)}, "
        f"inserted_window_dims = {listed(inserted_dims)}, scatter_dims_to_operand_dims = {listed(scatter_dims)}, "
        f"index_vector_dim = {xs[1].spec.ndim - 1}>"
    )
    s = scalar_of(xs[0].spec)
    region = e.region((s, s), lambda inner, a, b: (b,)) if mode == "set" else joined(e, _JOINS[mode], s)
    return e.op(
        "scatter",
        xs,
        outs[0],
        f"scatter_dimension_numbers = {numbers}, indices_are_sorted = false, unique_indices = false",
        (region,),
    )


def _dynamic_slice(e: HloEmitter, xs: Any, outs: Any, *, sizes: Any) -> HloValue:
    return e.op("dynamic_slice", xs, outs[0], f"slice_sizes = {i64s(sizes)}")


def _dynamic_update_slice(e: HloEmitter, xs: Any, outs: Any) -> HloValue:
    return e.op("dynamic_update_slice", xs, outs[0])


def _binary_search(library: Any, vector: Any, values: Any, *, side: str) -> Any:
    """Return the positions to insert values into an ascending vector, with NaN after all numbers."""
    xp = library("numpy")
    if not vector.size:
        return xp.zeros(values.shape, "int64")
    if vector.dtype == bool:
        vector, values = vector.astype("int8"), values.astype("int8")
    return xp.searchsorted(vector, values, side=side).astype("int64")


def _searchsorted(e: HloEmitter, xs: Any, outs: Any, *, side: str) -> HloValue:
    return e.traced(_binary_search, xs, outs, side=side)[0]


INDEXING: Final[dict[Primitive, Callable[..., HloValue]]] = {
    catalog.gather: _gather,
    catalog.scatter: _scatter,
    catalog.dynamic_slice: _dynamic_slice,
    catalog.dynamic_update_slice: _dynamic_update_slice,
    catalog.searchsorted: _searchsorted,
}
"""Lowerings of indexed reads and writes."""
