"""Contractions and convolutions."""

from __future__ import annotations

from math import prod
from typing import Any, Final

import numpy as np

from tenferro_runtime.extension import catalog, promote, tensor
from tenferro_xla.importing._reader import Handler, on_arrays, out_spec, unknown
from tenferro_xla.importing.structure import integer, integers


def _dot_general(op: Any, x: Any, y: Any) -> Any:
    from jax.extend.mlir.dialects import stablehlo

    numbers = stablehlo.DotDimensionNumbers(op.attributes["dot_dimension_numbers"])
    contract = (tuple(numbers.lhs_contracting_dimensions), tuple(numbers.rhs_contracting_dimensions))
    batch = (tuple(numbers.lhs_batching_dimensions), tuple(numbers.rhs_batching_dimensions))
    return _contracted(op, x, y, contract, batch)


def _dot(op: Any, x: Any, y: Any) -> Any:
    return _contracted(op, x, y, ((x.spec.ndim - 1,), (0,)), ((), ()))


def _contracted(op: Any, x: Any, y: Any, contract: Any, batch: Any) -> Any:
    """Contract in the dtype of the result, or in the promoted dtype of the operands if it is wider."""
    out = out_spec(op).dtype
    dtype = promote(promote(x.spec.dtype, y.spec.dtype), out)
    x, y = (v if v.spec.dtype == dtype else catalog.convert(v, dtype=dtype) for v in (x, y))
    found = catalog.dot_general(x, y, contract=contract, batch=batch)
    return found if dtype == out else catalog.convert(found, dtype=out)


def _convolution(op: Any, x: Any, kernel: Any) -> Any:
    """Concatenate the windows of the operand and contract them with the kernel.

    Axes are first permuted to (batch, feature, space...) and (output feature, input feature, space...).
    """
    from jax.extend.mlir.dialects import stablehlo

    numbers = stablehlo.ConvDimensionNumbers(op.attributes["dimension_numbers"])
    space = len(numbers.input_spatial_dimensions)
    groups, batches = integer(op, "feature_group_count"), integer(op, "batch_group_count")
    x = _ordered(x, numbers.input_batch_dimension, numbers.input_feature_dimension, numbers.input_spatial_dimensions)
    kernel = _ordered(
        kernel,
        numbers.kernel_output_feature_dimension,
        numbers.kernel_input_feature_dimension,
        numbers.kernel_spatial_dimensions,
    )
    strides, into, apart = (_each(op, name, space) for name in ("window_strides", "lhs_dilation", "rhs_dilation"))
    padding = _padding(op, space)
    if "window_reversal" in op.attributes:
        reversed_ = [2 + i for i, flag in enumerate(op.attributes["window_reversal"]) if flag]
        kernel = catalog.reverse(kernel, axes=tuple(reversed_)) if reversed_ else kernel
    zero = tensor(np.zeros((), x.spec.dtype))
    x = catalog.pad(
        x,
        zero,
        low=(0, 0, *[a for a, _ in padding]),
        high=(0, 0, *[b for _, b in padding]),
        interior=(0, 0, *[n - 1 for n in into]),
    )
    out = _windows_times_kernel(x, kernel, strides, apart, groups, batches)
    order: list[int] = [0] * (2 + space)
    for mine, theirs in enumerate(
        (numbers.output_batch_dimension, numbers.output_feature_dimension, *numbers.output_spatial_dimensions)
    ):
        order[theirs] = mine
    out = catalog.transpose(out, permutation=tuple(order))
    if out.spec.shape != out_spec(op).shape:
        raise unknown(op, f"its result is {out_spec(op)!r}, but its windows imply {out.spec!r}")
    return out if out.spec.dtype == out_spec(op).dtype else catalog.convert(out, dtype=out_spec(op).dtype)


def _windows_times_kernel(x: Any, kernel: Any, strides: Any, apart: Any, groups: int, batches: int) -> Any:
    n, features, *extents = x.spec.shape
    made, taken, *window = kernel.spec.shape
    span = [(w - 1) * d + 1 for w, d in zip(window, apart, strict=True)]
    found = [max(0, (e - s) // t + 1) for e, s, t in zip(extents, span, strides, strict=True)]
    pieces = []
    for offset in _offsets(window):
        start = [o * d for o, d in zip(offset, apart, strict=True)]
        limit = [a + (m - 1) * t + 1 if m else a for a, m, t in zip(start, found, strides, strict=True)]
        piece = catalog.slice_(x, start=(0, 0, *start), limit=(n, features, *limit), stride=(1, 1, *strides))
        pieces.append(catalog.reshape(piece, shape=(n, features, 1, *found)))
    if not pieces:
        return catalog.broadcast_in_dim(tensor(np.zeros((), x.spec.dtype)), shape=(n // batches, made, *found), dims=())
    windows = catalog.concatenate(*pieces, axis=2)
    # The groups of features or of batches become an axis; one of both counts is 1.
    parts = groups * batches
    if groups > 1:
        windows = catalog.reshape(windows, shape=(n, groups, features // groups, len(pieces), *found))
        windows = catalog.transpose(windows, permutation=(1, 0, *range(2, windows.spec.ndim)))
    else:
        windows = catalog.reshape(windows, shape=(batches, n // batches, features, len(pieces), *found))
    weights = catalog.reshape(kernel, shape=(parts, made // parts, taken, prod(window)))
    out = catalog.dot_general(windows, weights, contract=((2, 3), (2, 3)), batch=((0,), (0,)))
    # (parts, batch, space..., features of the part) -> (batch, parts, features, space...)
    last = out.spec.ndim - 1
    out = catalog.transpose(out, permutation=(1, 0, last, *range(2, last)))
    return catalog.reshape(out, shape=(n // batches, made, *found))


def _ordered(x: Any, first: int, second: int, rest: Any) -> Any:
    return catalog.transpose(x, permutation=(first, second, *rest))


def _each(op: Any, name: str, count: int) -> tuple[int, ...]:
    return integers(op, name) if name in op.attributes else (1,) * count


def _padding(op: Any, count: int) -> list[tuple[int, int]]:
    if "padding" not in op.attributes:
        return [(0, 0)] * count
    return [(int(a), int(b)) for a, b in np.array(op.attributes["padding"]).reshape(count, 2)]


def _offsets(window: Any) -> list[tuple[int, ...]]:
    """Return all positions in a window, in row-major order."""
    found: list[tuple[int, ...]] = [()]
    for n in window:
        found = [(*o, i) for o in found for i in range(n)]
    return found


CONTRACTION: Final[dict[str, Handler]] = {
    "stablehlo.dot": on_arrays(_dot),
    "stablehlo.dot_general": on_arrays(_dot_general),
    "stablehlo.convolution": on_arrays(_convolution),
}
"""Sums of products."""
