"""Positions of extrema, of nonzero elements, and in sorted order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tenferro_tensor import catalog
from tenferro_tensor.direct import ANY_SIZE, direct
from tenferro_tensor.operands import (
    AlongOps,
    alike,
    axis_of,
    host_elements,
    kept,
    own,
    require_concrete,
    truth,
    value,
)
from tenferro_tensor_core import ArgumentError, ShapeError, int64

if TYPE_CHECKING:
    from tenferro_tensor._array import Array

__all__ = ["argmax", "argmin", "nonzero", "searchsorted"]


def __dir__() -> list[str]:
    return __all__.copy()


_SEARCH: Final = {side: catalog.searchsorted.op(side=side) for side in ("left", "right")}
_ARGMAX: Final = AlongOps("argmax", catalog.argmax)
_ARGMIN: Final = AlongOps("argmin", catalog.argmin)


def _located(ops: AlongOps, x: Any, axis: int | None, keepdims: bool) -> Any:
    if not hasattr(x, "spec"):
        x = value(x)
    spec = x.spec
    if axis is None:
        out = ops(x if spec.ndim == 1 else catalog.reshape(x, shape=(spec.size,)), 0)
        return kept(out, spec, tuple(range(spec.ndim))) if keepdims else out
    out = ops(x, axis)
    return kept(out, spec, (axis_of(ops.name, axis, spec.ndim),)) if keepdims else out


def argmax(x: Any, /, axis: int | None = None, *, keepdims: bool = False) -> Array:
    """Index of the first largest element; NaN counts as the largest.

    Args:
        x: real array.
        axis: axis along which to search; by default the flattened array.
        keepdims: keep the reduced axes with extent 1.

    Returns:
        int64 array without the reduced axes.

    Raises:
        ShapeError: there are no elements to choose from.
        AxisError: the axis is out of range.
        DTypeError: `x` is complex.

    >>> tr.argmax(tr.asarray([[1, 5], [7, 2]]), axis=1)
    Tensor([1, 0])
    """
    return _located(_ARGMAX, x, axis, keepdims)


def argmin(x: Any, /, axis: int | None = None, *, keepdims: bool = False) -> Array:
    """Index of the first smallest element; NaN counts as the smallest.

    Args:
        x: real array.
        axis: axis along which to search; by default the flattened array.
        keepdims: keep the reduced axes with extent 1.

    Returns:
        int64 array without the reduced axes.

    Raises:
        ShapeError: there are no elements to choose from.
        AxisError: the axis is out of range.
        DTypeError: `x` is complex.

    >>> tr.argmin(tr.asarray([[1, 5], [7, 2]]), axis=1)
    Tensor([0, 1])
    """
    return _located(_ARGMIN, x, axis, keepdims)


@direct(np.ndarray.nonzero, ANY_SIZE)
def nonzero(x: Any, /) -> tuple[Array, ...]:
    """Indices of the nonzero elements, in row-major order.

    Args:
        x: array with at least one axis.

    Returns:
        A tuple of int64 vectors, one for each axis.

    Raises:
        TracingError: the elements, and with them the size of the result, are unknown while tracing.
        ShapeError: `x` has no axes.

    See also:
        `argwhere`, which returns one matrix and can take a size.

    >>> tr.nonzero(tr.asarray([[0, 1], [2, 0]]))
    (Tensor([0, 1]), Tensor([1, 0]))
    """
    x = value(x)
    if not x.spec.ndim:
        raise ShapeError("nonzero needs at least one axis, got a 0-d array; reshape it to (1,)", shape=())
    require_concrete(x, "nonzero", "count with count_nonzero, or select with where(mask, x, fill)")
    host = host_elements(x)
    if host is not None:
        return tuple([own(i, x.spec.place) for i in host.nonzero()])
    return _unravelled(_true_flat(catalog.reshape(truth(x), shape=(x.spec.size,))), x.spec.shape)


def _true_flat(mask: Any) -> Any:
    """Positions of the true elements of a vector, by primitives; only their number leaves the device."""
    n = int(catalog.reduce_sum(catalog.convert(mask, dtype=int64), axes=(0,)))
    first = catalog.argsort(catalog.bitwise_not(mask), axis=0, descending=False)
    return catalog.slice_(first, start=(0,), limit=(n,), stride=(1,))


def _unravelled(flat: Any, shape: tuple[int, ...]) -> tuple[Any, ...]:
    strides = [int(np.prod(shape[a + 1 :], dtype=np.int64)) for a in range(len(shape))]
    return tuple(
        [catalog.remainder(catalog.floor_divide(flat, s or 1), n or 1) for s, n in zip(strides, shape, strict=True)]
    )


def searchsorted(x1: Any, x2: Any, /, side: str = "left", *, sorter: Any = None) -> Array:
    """Indices at which to insert elements into an ascending vector.

    Args:
        x1: the sorted vector; with `sorter`, any vector.
        x2: the elements to insert, of any shape.
        side: ``"left"`` to insert before equal elements, ``"right"`` after them.
        sorter: indices that sort `x1`, as returned by `argsort`.

    Returns:
        int64 array of the shape of `x2`.

    Raises:
        ArgumentError: `side` is neither of these.
        ShapeError: `x1` is not a vector.
        DTypeError: an operand is complex.

    >>> tr.searchsorted(tr.asarray([1, 3, 5]), tr.asarray([3, 4]))
    Tensor([1, 2])
    """
    op = _SEARCH.get(side)
    if op is None:
        raise ArgumentError(f"searchsorted takes side='left' or side='right', got {side!r}", side=side)
    if not (hasattr(x1, "spec") and hasattr(x2, "spec") and x1.spec.dtype == x2.spec.dtype):
        x1, x2 = alike(value(x1), x2)
    return op(x1 if sorter is None else x1[sorter], x2)
