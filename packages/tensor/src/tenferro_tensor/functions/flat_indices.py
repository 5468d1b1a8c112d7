"""Flat and multidimensional indices, and the positions of nonzero elements.

``size=`` makes the extent of a result known: surplus positions are dropped, missing ones are filled.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tenferro_tensor import catalog
from tenferro_tensor.direct import direct
from tenferro_tensor.functions import _numpy_forms
from tenferro_tensor.functions._listed import listed
from tenferro_tensor.functions._span import span
from tenferro_tensor.functions.manipulation import ravel
from tenferro_tensor.functions.reading import take
from tenferro_tensor.functions.searching import nonzero
from tenferro_tensor.operands import converted, host_elements, number, positions, shape_of, size_of, truth
from tenferro_tensor_core import ArgumentError, AxisError, DimLike, ShapeError, dim_max, dim_min, int64

if TYPE_CHECKING:
    from tenferro_tensor._array import Array

__all__ = ["argwhere", "flatnonzero", "ravel_multi_index", "unravel_index"]


def __dir__() -> list[str]:
    return __all__.copy()


@direct(_numpy_forms.unravel_index)
def unravel_index(indices: Any, shape: Any, order: str = "C") -> tuple[Array, ...]:
    """Convert flat indices into indices along each axis.

    Args:
        indices: integer array; negative ones are errors if they are known.
        shape: extents of the array that the indices refer to.
        order: ``"C"`` for row-major order, ``"F"`` for column-major order.

    Returns:
        A tuple of int64 arrays of the shape of `indices`, one for each axis.

    Raises:
        AxisError: a known index is out of bounds.
        ArgumentError: `order` is another text.

    See also:
        `ravel_multi_index`, the inverse.

    >>> tr.unravel_index(tr.asarray([1, 5]), (2, 3))
    (Tensor([0, 1]), Tensor([1, 2]))
    """
    x = _integers("unravel_index", listed(indices))
    extents = shape_of(shape)
    total = math.prod(extents)
    known = host_elements(x)
    if known is not None and known.size and isinstance(total, int) and (known.min() < 0 or known.max() >= total):
        raise AxisError(
            f"unravel_index: a position is outside of shape {extents}, whose {total} elements have positions from 0",
            shape=extents,
        )
    found: list[Any] = []
    stride: DimLike = 1
    for axis, n in enumerate(extents[::-1] if _row_major("unravel_index", order) else extents):
        rest = x if axis == 0 else catalog.floor_divide(x, _divisor(stride, x))
        found.append(catalog.remainder(rest, _divisor(n, x)) if axis + 1 < len(extents) else rest)
        stride = stride * n
    if len(extents) == 1:
        found[0] = catalog.reshape(x, shape=x.spec.shape)
    return tuple(found[::-1] if order == "C" else found)


@direct(_numpy_forms.ravel_multi_index)
def ravel_multi_index(multi_index: Any, dims: Any, mode: Any = "raise", order: str = "C") -> Array:
    """Convert indices along each axis into flat indices.

    Args:
        multi_index: one integer array for each axis; they broadcast.
        dims: extents of the array that the indices refer to.
        mode: treatment of indices out of bounds: ``"raise"`` an error if they are known (unknown ones are clamped),
            ``"wrap"`` around, or ``"clip"``; one mode, or one for each axis.
        order: ``"C"`` for row-major order, ``"F"`` for column-major order.

    Returns:
        int64 array of the broadcast shape.

    Raises:
        AxisError: a known index is out of bounds.
        ShapeError: there is not one array for each axis.

    See also:
        `unravel_index`, the inverse.

    >>> tr.ravel_multi_index((tr.asarray([0, 1]), tr.asarray([1, 2])), (2, 3))
    Tensor([1, 5])
    """
    extents = shape_of(dims)
    parts = [_integers("ravel_multi_index", listed(i)) for i in multi_index]
    modes = (mode,) * len(extents) if isinstance(mode, str) else tuple(mode)
    if len(parts) != len(extents) or len(modes) != len(extents):
        raise ShapeError(
            f"ravel_multi_index needs one array of indices and one mode for each of the {len(extents)} extents, got "
            f"{len(parts)} arrays and {len(modes)} modes"
        )
    inside = [_inside(x, n, m, axis) for axis, (x, n, m) in enumerate(zip(parts, extents, modes, strict=True))]
    pairs = list(zip(inside, extents, strict=True))
    out: Any = None
    for x, n in pairs if _row_major("ravel_multi_index", order) else pairs[::-1]:
        out = x if out is None else catalog.add(catalog.mul(out, number(n, x.spec.place)), x)
    if out is None:
        raise ShapeError("ravel_multi_index needs at least one axis, got none")
    return catalog.reshape(out, shape=out.spec.shape)


def _integers(name: str, x: Any) -> Any:
    if x.spec.dtype.kind not in "iu":
        if x.spec.size == 0:
            return converted(x, int64)
        raise ArgumentError(f"{name} takes integers, got {x.spec!r}; convert with astype(int64)")
    return converted(x, int64)


def _row_major(name: str, order: str) -> bool:
    if order not in ("C", "F"):
        raise ArgumentError(f"{name} takes order='C' or order='F', got {order!r}", order=order)
    return order == "C"


def _divisor(n: DimLike, x: Any) -> Any:
    return max(n, 1) if isinstance(n, int) else number(dim_max(n, 1), x.spec.place)


def _inside(x: Any, n: DimLike, mode: Any, axis: int) -> Any:
    if mode not in ("raise", "wrap", "clip"):
        raise ArgumentError(f"ravel_multi_index takes mode 'raise', 'wrap' or 'clip', got {mode!r}", mode=mode)
    if mode == "wrap":
        return catalog.remainder(x, _divisor(n, x))
    known = host_elements(x)
    if mode == "raise" and known is not None and isinstance(n, int):
        if known.size and (known.min() < 0 or known.max() >= n):
            raise AxisError(f"ravel_multi_index: an index of axis {axis} is outside of its extent {n}", extent=n)
        return x
    last = n - 1 if isinstance(n, int) else number(n - 1, x.spec.place)
    return catalog.clamp(x, 0, last)


def first_true(mask: Any, size: Any, fill: Any) -> Any:
    """The positions of the first `size` true elements of a vector, padded with `fill`."""
    n = mask.spec.shape[0]
    size = size_of("size", "number of results", size)
    if isinstance(size, int) and size < 0:
        raise ArgumentError(f"a result has a size of at least 0, got size={size}", size=size)
    order = catalog.argsort(catalog.bitwise_not(mask), axis=0, descending=False)
    few = span(order, 0, 0, dim_min(size, n))
    if not (isinstance(size, int) and isinstance(n, int) and size <= n):
        few = catalog.pad(few, 0, low=(0,), high=(size - dim_min(size, n),), interior=(0,))
    count = catalog.reduce_sum(catalog.convert(mask, dtype=int64), axes=(0,))
    return catalog.select(catalog.lt(positions(few, 0), count), few, fill)


def flatnonzero(x: Any, /, *, size: Any = None, fill_value: Any = None) -> Array:
    """Flat indices of the nonzero elements, in row-major order.

    Args:
        x: array of any shape and dtype.
        size: number of results, which makes the extent known to a trace and to `vmap`; by default all.
        fill_value: fills missing results; 0 by default.

    Returns:
        int64 vector.

    Raises:
        TracingError: the elements are unknown, and there is no `size`.

    See also:
        `nonzero`, with indices for each axis.

    >>> tr.flatnonzero(tr.asarray([[0, 1], [2, 0]]))
    Tensor([1, 2])
    """
    flat = ravel(listed(x))
    if size is None:
        return nonzero(flat)[0]
    return first_true(truth(flat), size, 0 if fill_value is None else fill_value)


def argwhere(x: Any, /, *, size: Any = None, fill_value: Any = None) -> Array:
    """Indices of the nonzero elements, one row for each.

    Args:
        x: array of any shape and dtype.
        size: number of results, which makes the extent known to a trace and to `vmap`; by default all.
        fill_value: fills missing results; 0 by default.

    Returns:
        int64 array of shape (number of nonzero elements, number of axes).

    Raises:
        TracingError: the elements are unknown, and there is no `size`.

    See also:
        `nonzero`, with one vector for each axis.

    >>> tr.argwhere(tr.asarray([[0, 1], [2, 0]]))
    Tensor([[0, 1],
            [1, 0]])
    """
    x = listed(x)
    if not x.spec.ndim:
        at = flatnonzero(catalog.reshape(x, shape=(1,)), size=size)
        return catalog.reshape(take(at, np.zeros(0, np.int64)), shape=(at.spec.shape[0], 0))
    if size is None:
        found = nonzero(x)
    else:
        at = flatnonzero(x, size=size, fill_value=-1)
        missing = catalog.lt(at, 0)
        columns = (
            unravel_index(catalog.select(missing, 0, at), x.spec.shape) if x.spec.size != 0 else [at] * x.spec.ndim
        )
        found = tuple([catalog.select(missing, 0 if fill_value is None else fill_value, c) for c in columns])
    return catalog.concatenate(*[catalog.reshape(f, shape=(*f.spec.shape, 1)) for f in found], axis=1)
