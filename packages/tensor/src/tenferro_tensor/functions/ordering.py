"""Sorting by several keys, partitioning, and the largest elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tenferro_tensor import catalog
from tenferro_tensor.calls import state
from tenferro_tensor.direct import ANY_SIZE, direct
from tenferro_tensor.functions import _numpy_forms
from tenferro_tensor.functions._listed import listed
from tenferro_tensor.functions._span import span
from tenferro_tensor.functions.manipulation import ravel
from tenferro_tensor.functions.reading import take_along_axis
from tenferro_tensor.operands import axis_of, own, size_of, whole
from tenferro_tensor_core import ArgumentError, AxisError, Dim, ShapeError, ask

if TYPE_CHECKING:
    from tenferro_tensor._array import Array

__all__ = ["argpartition", "lexsort", "partition", "top_k"]


def __dir__() -> list[str]:
    return __all__.copy()


class TopK(NamedTuple):
    """The result of `top_k`."""

    values: Array
    indices: Array


@direct(_numpy_forms.lexsort, ANY_SIZE)
def lexsort(keys: Any, /, axis: int = -1) -> Array:
    """Indices that sort by several keys; the last key is the primary one.

    Args:
        keys: sequence of arrays of one shape, or an array whose first axis enumerates them.
        axis: axis along which to sort.

    Returns:
        int64 array of the shape of a key.

    Raises:
        ShapeError: there is no key, or the shapes differ.
        AxisError: the axis is out of range.

    >>> tr.lexsort((tr.asarray([1, 2, 0]), tr.asarray([5, 3, 3])))
    Tensor([2, 1, 0])
    """
    values = [listed(k) for k in keys]
    if not values:
        raise ShapeError("lexsort needs at least one key, got none")
    first = values[0].spec
    if any(v.spec.ndim != first.ndim or not all(map(_same, v.spec.shape, first.shape)) for v in values):
        raise ShapeError(f"lexsort needs keys of one shape, got {[v.spec for v in values]!r}")
    values = [catalog.reshape(v, shape=(1,)) if not v.spec.ndim else v for v in values]
    axis = axis_of("lexsort", axis, values[0].spec.ndim)
    order = catalog.argsort(values[0], axis=axis, descending=False)
    for v in values[1:]:
        again = catalog.argsort(take_along_axis(v, order, axis=axis), axis=axis, descending=False)
        order = take_along_axis(order, again, axis=axis)
    return order if first.ndim else catalog.reshape(order, shape=())


def _same(a: Any, b: Any) -> bool:
    return ask(a, "==", b)


def partition(x: Any, /, kth: int | Sequence[int], axis: int | None = -1) -> Array:
    """Rearrange elements along an axis such that those at `kth` are where sorting would put them.

    Elements before them are not larger, elements after them not smaller; their order is unspecified.

    Args:
        x: array of any shape.
        kth: index or indices into the sorted order; negative ones count from the end.
        axis: axis to partition along; None for the flattened array.

    Returns:
        Array of the dtype of `x`.

    Raises:
        AxisError: an index is out of bounds.

    See also:
        `argpartition`, which returns indices; `top_k`.

    >>> tr.partition(tr.asarray([3, 1, 2]), 1)[1]
    Tensor(2)
    """
    x, axis = _line("partition", x, axis, kth)
    if x.__class__ is state.tensor and x.spec.place.on_host:
        return own(np.partition(x._concrete(), kth, axis), x.spec.place)
    return catalog.sort(x, axis=axis, descending=False)


def argpartition(x: Any, /, kth: int | Sequence[int], axis: int | None = -1) -> Array:
    """Indices that rearrange elements along an axis as `partition` does.

    Args:
        x: array of any shape.
        kth: index or indices into the sorted order; negative ones count from the end.
        axis: axis to partition along; None for the flattened array.

    Returns:
        int64 array.

    Raises:
        AxisError: an index is out of bounds.

    >>> tr.argpartition(tr.asarray([3, 1, 2]), 0)[0]
    Tensor(1)
    """
    x, axis = _line("argpartition", x, axis, kth)
    if x.__class__ is state.tensor and x.spec.place.on_host:
        return own(np.argpartition(x._concrete(), kth, axis), x.spec.place)
    return catalog.argsort(x, axis=axis, descending=False)


def _line(name: str, x: Any, axis: int | None, kth: Any) -> tuple[Any, int]:
    x = listed(x)
    x, axis = (ravel(x), 0) if axis is None else (x, axis_of(name, axis, x.spec.ndim))
    n = x.spec.shape[axis]
    for k in kth if isinstance(kth, (tuple, list)) else (kth,):
        k = whole(name, "kth", k)
        if not isinstance(n, Dim) and not -n <= k < n:
            raise AxisError(f"{name}: place {k} is out of bounds for axis {axis} with extent {n}", axis=axis)
    return x, axis


def top_k(x: Any, k: Any, /, *, axis: int = -1) -> TopK:
    """The `k` largest elements along an axis in descending order, and their indices.

    Equal elements keep their order. Derivatives pass to the selected elements.

    Args:
        x: array with at least one axis.
        k: number of elements.
        axis: axis to select along.

    Returns:
        A named tuple of the values and their indices, int64, with extent `k` along the axis.

    Raises:
        ArgumentError: there are fewer than `k` elements.
        AxisError: the axis is out of range.

    >>> tr.top_k(tr.asarray([3, 9, 5]), 2)
    TopK(values=Tensor([9, 5]), indices=Tensor([1, 2]))
    """
    x = listed(x)
    axis = axis_of("top_k", axis, x.spec.ndim)
    k, n = size_of("top_k", "k", k), x.spec.shape[axis]
    if not (ask(k, ">=", 0) and ask(k, "<=", n)):
        raise ArgumentError(f"top_k finds from 0 to {n} elements along axis {axis} of {x.spec!r}, got k={k}", k=str(k))
    indices = span(catalog.argsort(x, axis=axis, descending=True), axis, 0, k)
    return TopK(take_along_axis(x, indices, axis=axis), indices)
