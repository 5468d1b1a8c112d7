"""Reads and writes at computed positions."""

from __future__ import annotations

from typing import Any, Final

from tenferro_runtime.extension import HOST, catalog
from tenferro_xla.importing._bodies import monoid_of, returned_argument
from tenferro_xla.importing._reader import Handler, ModuleReader, ValueScope, on_arrays, unknown
from tenferro_xla.importing._values import Value, arrays
from tenferro_xla.importing.structure import integers


def _vectors_last(indices: Any, axis: int) -> Any:
    """Move the index vectors to the last axis."""
    if axis == indices.spec.ndim:
        return catalog.reshape(indices, shape=(*indices.spec.shape, 1))
    order = (*[a for a in range(indices.spec.ndim) if a != axis], axis)
    return indices if order == tuple(range(len(order))) else catalog.transpose(indices, permutation=order)


def _with_batches(indices: Any, of_indices: list[int], vector_axis: int) -> Any:
    """Prepend the positions along the batch axes to the index vectors.

    The batch axes are numbered as before the vectors were moved to the last axis.
    """
    shape = (*indices.spec.shape[:-1], 1)
    axes = [a - (a > vector_axis) for a in of_indices]
    own = [catalog.iota(shape=shape, dtype=indices.spec.dtype, axis=a, place=HOST) for a in axes]
    return catalog.concatenate(*own, indices, axis=indices.spec.ndim - 1) if own else indices


def _gather(op: Any, x: Any, indices: Any) -> Any:
    from jax.extend.mlir.dialects import stablehlo

    numbers = stablehlo.GatherDimensionNumbers(op.attributes["dimension_numbers"])
    batch, own = list(numbers.operand_batching_dims), list(numbers.start_indices_batching_dims)
    indices = _with_batches(_vectors_last(indices, numbers.index_vector_dim), own, numbers.index_vector_dim)
    return catalog.gather(
        x,
        indices,
        offset_dims=tuple(numbers.offset_dims),
        collapsed_dims=tuple(sorted([*numbers.collapsed_slice_dims, *batch])),
        start_index_map=(*batch, *numbers.start_index_map),
        slice_sizes=integers(op, "slice_sizes"),
    )


_MODES: Final = {"add": "add", "multiply": "mul", "minimum": "min", "maximum": "max"}


def _scatter(reader: ModuleReader, op: Any, xs: list[Value], scope: ValueScope) -> Value:
    from jax.extend.mlir.dialects import stablehlo

    if len(xs) != 3:
        raise unknown(op, "it writes several arrays at once")
    x, indices, updates = arrays(xs)
    body = op.regions[0].blocks[0]
    found = monoid_of(body, x.spec.dtype)
    mode = "set" if returned_argument(body) == 1 else _MODES.get(found) if found is not None else None
    if mode is None:
        raise unknown(op, "its body neither returns the update nor is add, multiply, minimum or maximum")
    numbers = stablehlo.ScatterDimensionNumbers(op.attributes["scatter_dimension_numbers"])
    batch, own = list(numbers.input_batching_dims), list(numbers.scatter_indices_batching_dims)
    indices = _with_batches(_vectors_last(indices, numbers.index_vector_dim), own, numbers.index_vector_dim)
    return catalog.scatter(  # type: ignore[no-any-return]
        x,
        indices,
        updates,
        update_window_dims=tuple(numbers.update_window_dims),
        inserted_dims=tuple(sorted([*numbers.inserted_window_dims, *batch])),
        scatter_dims=(*batch, *numbers.scattered_dims_to_operand_dims),
        mode=mode,
    )


def _dynamic_slice(op: Any, x: Any, *starts: Any) -> Any:
    return catalog.dynamic_slice(x, *starts, sizes=integers(op, "slice_sizes"))


def _dynamic_update_slice(op: Any, x: Any, update: Any, *starts: Any) -> Any:
    return catalog.dynamic_update_slice(x, update, *starts)


INDEXING: Final[dict[str, Handler]] = {
    "stablehlo.gather": on_arrays(_gather),
    "stablehlo.scatter": _scatter,
    "stablehlo.dynamic_slice": on_arrays(_dynamic_slice),
    "stablehlo.dynamic_update_slice": on_arrays(_dynamic_update_slice),
}
"""Indexed reads and writes."""
