"""Counts of small integers, and the bins that numbers fall into."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tenferro_tensor import catalog
from tenferro_tensor.direct import ANY_SIZE, direct
from tenferro_tensor.functions import _statistic_forms
from tenferro_tensor.functions._listed import listed, listed_beside
from tenferro_tensor.functions.creation import full
from tenferro_tensor.functions.manipulation import flip
from tenferro_tensor.operands import alike, converted, empty_extent, host_elements, number, size_of
from tenferro_tensor_core import ArgumentError, DimLike, DTypeError, ShapeError, ask, dim_max, float64, int64

if TYPE_CHECKING:
    from tenferro_tensor._array import Array

__all__ = ["bincount", "digitize"]


def __dir__() -> list[str]:
    return __all__.copy()


@direct(_statistic_forms.bincount, ANY_SIZE)
def bincount(x: Any, /, weights: Any = None, minlength: Any = 0, *, length: Any = None) -> Array:
    """Number of occurrences of each nonnegative integer, or sums of weights.

    Without `length`, the result extends to the largest integer: in a compiled program its extent is data-dependent. The
    result is differentiable with respect to the weights.

    Args:
        x: vector of nonnegative integers.
        weights: one for each element of `x`; integers are summed in float64.
        minlength: smallest extent of the result.
        length: extent of the result; larger integers are not counted.

    Returns:
        int64 vector, or one of the dtype of the weights.

    Raises:
        ArgumentError: an integer is known to be negative; unknown negative ones are not counted.
        ShapeError: `x` is not a vector, or the weights have another length.
        DTypeError: `x` is not an integer array.

    See also:
        `histogram`, for real numbers.

    >>> tr.bincount(tr.asarray([1, 3, 1]))
    Tensor([0, 2, 0, 1])
    """
    x = listed(x)
    if x.spec.ndim != 1:
        raise ShapeError(f"bincount counts the elements of a vector, got {x.spec!r}; ravel it first")
    if x.spec.dtype.kind not in "biu":
        raise DTypeError(f"bincount counts integers, got {x.spec!r}; convert them with cast(x, int64)")
    x = converted(x, int64)
    known = host_elements(x)
    if known is not None and known.size and known.min() < 0:
        raise ArgumentError(f"bincount counts integers from 0 on, got {known.min()}", least=int(known.min()))
    if weights is not None:
        weights = listed_beside(weights, x)
        if weights.spec.ndim != 1 or not ask(weights.spec.shape[0], "==", x.spec.shape[0]):
            raise ShapeError(f"bincount needs a weight for each element of {x.spec!r}, got {weights.spec!r}")
        weights = weights if weights.spec.inexact else converted(weights, float64)
    n = _length(x, known, minlength) if length is None else size_of("bincount", "length", length)
    return counted_into(catalog.select(catalog.lt(x, 0), number(n, x.spec.place), x), n, weights)


def _length(x: Any, known: np.ndarray[Any, Any] | None, minlength: Any) -> DimLike:
    least = size_of("bincount", "minlength", minlength)
    if not ask(least, ">=", 0):
        raise ArgumentError(f"bincount needs a minlength of at least 0, got {least}")
    if empty_extent(x.spec.shape[0]):
        return least
    if known is not None:
        return dim_max(int(known.max()) + 1, least)
    top = catalog.maximum(catalog.reduce_max(x, axes=(0,)), -1) + 1
    return dim_max(top._as_extent(None), least)


def counted_into(index: Any, n: DimLike, weights: Any) -> Any:
    """Count each index below `n`, or sum its weights; indices out of range are dropped."""
    device = index.spec.place.device
    if weights is None:
        weights = full(index.spec.shape, 1, dtype=int64, device=device)
    out = full((n,), 0, dtype=weights.spec.dtype, device=device)
    if empty_extent(index.spec.shape[0]) or empty_extent(n):
        return out
    return catalog.scatter(
        out,
        catalog.reshape(index, shape=(*index.spec.shape, 1)),
        weights,
        update_window_dims=(),
        inserted_dims=(0,),
        scatter_dims=(0,),
        mode="add",
    )


@direct(_statistic_forms.digitize, ANY_SIZE)
def digitize(x: Any, /, bins: Any, right: bool = False) -> Array:
    """Index of the bin of each element: the number of edges below it; above it if the edges descend.

    Args:
        x: real array of any shape.
        bins: vector of edges in ascending or descending order.
        right: whether a bin includes its upper edge instead of its lower one.

    Returns:
        int64 array of the shape of `x`.

    Raises:
        ArgumentError: the edges are known and not monotonic.
        ShapeError: the edges are not a vector.

    See also:
        `searchsorted`, for ascending edges.

    >>> tr.digitize(tr.asarray([0.2, 6.4, 3.0]), tr.asarray([0.0, 1.0, 2.5, 4.0, 10.0]))
    Tensor([1, 4, 3])
    """
    x = listed(x)
    x, edges = alike(x, listed_beside(bins, x))
    if edges.spec.ndim != 1:
        raise ShapeError(f"digitize needs edges as a vector, got {edges.spec!r}")
    x, edges = catalog.stop_gradient(x), catalog.stop_gradient(edges)
    n = edges.spec.shape[0]
    known = host_elements(edges)
    if known is not None:
        up = bool((known[:-1] <= known[1:]).all())
        if not up and not (known[:-1] >= known[1:]).all():
            raise ArgumentError("digitize needs edges in ascending or descending order; sort them first")
        return _upwards(edges, x, right) if up else _downwards(edges, x, right)
    if empty_extent(n):
        return _upwards(edges, x, right)
    return catalog.select(catalog.le(edges[0], edges[-1]), _upwards(edges, x, right), _downwards(edges, x, right))


def _upwards(edges: Any, x: Any, right: bool) -> Any:
    return catalog.searchsorted(edges, x, side="left" if right else "right")


def _downwards(edges: Any, x: Any, right: bool) -> Any:
    """Bins of descending edges, by a search in the ascending edges with the opposite side, as in NumPy."""
    found = catalog.searchsorted(flip(edges), x, side="left" if right else "right")
    return catalog.sub(number(edges.spec.shape[0], edges.spec.place), found)
