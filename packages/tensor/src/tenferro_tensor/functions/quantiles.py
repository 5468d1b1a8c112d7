"""Medians, percentiles and quantiles over axes, of all elements or of those that are not NaN."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from tenferro_tensor import catalog
from tenferro_tensor.direct import direct
from tenferro_tensor.functions import _statistic_forms
from tenferro_tensor.functions._floating import floating
from tenferro_tensor.functions._listed import listed, listed_beside
from tenferro_tensor.functions._positions import METHODS, as_float, neighbours
from tenferro_tensor.functions._span import span
from tenferro_tensor.functions.averages import beside
from tenferro_tensor.functions.creation import full
from tenferro_tensor.functions.manipulation import moveaxis
from tenferro_tensor.functions.reading import take, take_along_axis
from tenferro_tensor.operands import (
    alike,
    axes_of,
    converted,
    count,
    host_elements,
    number,
)
from tenferro_tensor_core import (
    ArgumentError,
    DimLike,
    DTypeError,
    ShapeError,
    ask,
    bool_,
    float64,
    floordiv,
    inexact_of,
    int64,
)

if TYPE_CHECKING:
    from tenferro_tensor._array import Array

__all__ = ["median", "nanmedian", "nanpercentile", "nanquantile", "percentile", "quantile"]


def __dir__() -> list[str]:
    return __all__.copy()


@direct(_statistic_forms.median)
def median(x: Any, /, axis: Any = None, *, keepdims: bool = False) -> Array:
    """Median over axes; NaN if an element is NaN, or for no elements.

    Args:
        x: real array of any shape; integers are computed in float64.
        axis: axis or axes to reduce; by default all.
        keepdims: keep the reduced axes with extent 1.

    Returns:
        Array without the reduced axes, in the floating-point dtype of `x`.

    Raises:
        AxisError: an axis is out of range or repeated.

    See also:
        `nanmedian`, which ignores NaN; `quantile`.

    >>> tr.median(tr.asarray([7, 1, 2, 4]))
    Tensor(3.)
    """
    return _median(listed(x), axis, keepdims, ignore=False)


@direct(_statistic_forms.nanmedian)
def nanmedian(x: Any, /, axis: Any = None, *, keepdims: bool = False) -> Array:
    """Median over axes, ignoring NaN; NaN for no elements.

    Args:
        x: real array of any shape; integers are computed in float64.
        axis: axis or axes to reduce; by default all.
        keepdims: keep the reduced axes with extent 1.

    Returns:
        Array without the reduced axes, in the floating-point dtype of `x`.

    Raises:
        AxisError: an axis is out of range or repeated.

    >>> tr.nanmedian(tr.asarray([7.0, float("nan"), 2.0]))
    Tensor(4.5)
    """
    x = listed(x)
    return _median(x, axis, keepdims, ignore=x.spec.inexact)


def _median(x: Any, axis: Any, keepdims: bool, ignore: bool) -> Any:
    x = converted(x, float64) if x.spec.dtype is bool_ else x
    axes = axes_of("median", axis, x.spec.ndim)
    dtype = inexact_of(x.spec.dtype)
    rows = _rows(x, axes)
    n = rows.spec.shape[-1]
    if not ask(n, ">=", 1):
        return _reshaped(full(rows.spec.shape[:-1], math.nan, dtype=dtype), x, axes, keepdims)
    last = rows.spec.ndim - 1
    ordered = catalog.sort(rows, axis=last, descending=False)
    if ignore:
        ordered, known = _without_nan(ordered)
        low = catalog.floor_divide(catalog.maximum(known - 1, 0), 2)
        high = catalog.floor_divide(known, 2)
        parts = [take_along_axis(ordered, i, axis=last) for i in (low, catalog.maximum(high, low))]
        unknown = catalog.eq(known, 0)
    else:
        starts = [floordiv(n - 1, 2), floordiv(n, 2)]
        parts = [_entry(ordered, s) for s in (starts if starts[0] != starts[1] else starts[:1])]
        unknown = catalog.is_nan(span(ordered, last, n - 1, n)) if x.spec.inexact else None
    parts = [converted(p, dtype) for p in parts]
    out = parts[0] if len(parts) == 1 else catalog.div(catalog.add(*parts), 2.0)
    out = out if unknown is None else catalog.select(unknown, math.nan, out)
    return _reshaped(catalog.reshape(out, shape=rows.spec.shape[:-1]), x, axes, keepdims)


def _entry(rows: Any, at: DimLike) -> Any:
    """The element of each row at a position that is always inside, even if this is not provable for a symbolic size."""
    last = rows.spec.ndim - 1
    if isinstance(at, int):
        return span(rows, last, at, at + 1)
    return take(rows, catalog.reshape(number(at, rows.spec.place), shape=(1,)), axis=last)


@direct(_statistic_forms.quantile)
def quantile(
    x: Any, /, q: Any, axis: Any = None, *, method: str = "linear", keepdims: bool = False, weights: Any = None
) -> Array:
    """Quantiles over axes; NaN if an element is NaN.

    Derivatives pass to the neighbouring elements, and to `q` if the method interpolates.

    Args:
        x: real array of any shape.
        q: probabilities between 0 and 1, of any shape.
        axis: axis or axes to reduce; by default all.
        method: NumPy's name of the estimator (R. J. Hyndman and Y. Fan, 1996).
        keepdims: keep the reduced axes with extent 1.
        weights: array of the shape of `x`, or of the extents of the axes; for the method ``"inverted_cdf"`` only.

    Returns:
        Array with the axes of `q` first, then those of `x` that are not reduced.

    Raises:
        ArgumentError: `q` is out of range, or the method is unknown or takes no weights.
        DTypeError: `x` is complex.
        AxisError: an axis is out of range or repeated.

    See also:
        `percentile`; `nanquantile`, which ignores NaN.

    >>> tr.quantile(tr.asarray([1.0, 2.0, 4.0]), 0.75)
    Tensor(3.)
    """
    return _quantile(x, q, 1.0, axis, method, keepdims, weights, ignore=False)


def percentile(
    x: Any, /, q: Any, axis: Any = None, *, method: str = "linear", keepdims: bool = False, weights: Any = None
) -> Array:
    """Percentiles over axes; NaN if an element is NaN.

    Args:
        x: real array of any shape.
        q: percentages between 0 and 100, of any shape.
        axis: axis or axes to reduce; by default all.
        method: NumPy's name of the estimator (R. J. Hyndman and Y. Fan, 1996).
        keepdims: keep the reduced axes with extent 1.
        weights: array of the shape of `x`, or of the extents of the axes; for the method ``"inverted_cdf"`` only.

    Returns:
        Array with the axes of `q` first, then those of `x` that are not reduced.

    Raises:
        ArgumentError: `q` is out of range, or the method is unknown or takes no weights.
        DTypeError: `x` is complex.
        AxisError: an axis is out of range or repeated.

    See also:
        `quantile`, with probabilities.

    >>> tr.percentile(tr.asarray([1.0, 2.0, 4.0]), 75)
    Tensor(3.)
    """
    return _quantile(x, q, 100.0, axis, method, keepdims, weights, ignore=False)


def nanquantile(
    x: Any, /, q: Any, axis: Any = None, *, method: str = "linear", keepdims: bool = False, weights: Any = None
) -> Array:
    """Quantiles over axes, ignoring NaN; NaN for no elements.

    Args:
        x: real array of any shape.
        q: probabilities between 0 and 1, of any shape.
        axis: axis or axes to reduce; by default all.
        method: NumPy's name of the estimator (R. J. Hyndman and Y. Fan, 1996).
        keepdims: keep the reduced axes with extent 1.
        weights: array of the shape of `x`, or of the extents of the axes; for the method ``"inverted_cdf"`` only.

    Returns:
        Array with the axes of `q` first, then those of `x` that are not reduced.

    Raises:
        ArgumentError: `q` is out of range, or the method is unknown or takes no weights.
        DTypeError: `x` is complex.
        AxisError: an axis is out of range or repeated.

    >>> tr.nanquantile(tr.asarray([1.0, float("nan"), 2.0]), 0.5)
    Tensor(1.5)
    """
    return _quantile(x, q, 1.0, axis, method, keepdims, weights, ignore=True)


def nanpercentile(
    x: Any, /, q: Any, axis: Any = None, *, method: str = "linear", keepdims: bool = False, weights: Any = None
) -> Array:
    """Percentiles over axes, ignoring NaN; NaN for no elements.

    Args:
        x: real array of any shape.
        q: percentages between 0 and 100, of any shape.
        axis: axis or axes to reduce; by default all.
        method: NumPy's name of the estimator (R. J. Hyndman and Y. Fan, 1996).
        keepdims: keep the reduced axes with extent 1.
        weights: array of the shape of `x`, or of the extents of the axes; for the method ``"inverted_cdf"`` only.

    Returns:
        Array with the axes of `q` first, then those of `x` that are not reduced.

    Raises:
        ArgumentError: `q` is out of range, or the method is unknown or takes no weights.
        DTypeError: `x` is complex.
        AxisError: an axis is out of range or repeated.

    >>> tr.nanpercentile(tr.asarray([1.0, float("nan"), 2.0]), 50)
    Tensor(1.5)
    """
    return _quantile(x, q, 100.0, axis, method, keepdims, weights, ignore=True)


def _probabilities(q: Any, most: float, x: Any) -> Any:
    """The probabilities as fractions in float64."""
    q = listed_beside(q, x)
    if q.spec.cplx:
        raise DTypeError(f"quantile takes real probabilities, got {q.spec!r}")
    known = host_elements(q)
    if known is not None and not ((known >= 0) & (known <= most)).all():
        raise ArgumentError(f"quantile takes probabilities from 0 to {most:g}, got {known.tolist()}")
    q = converted(q, float64)
    return q if most == 1.0 else catalog.div(q, most)


def _quantile(x: Any, q: Any, most: float, axis: Any, method: str, keepdims: bool, weights: Any, ignore: bool) -> Any:
    x = listed(x)
    weak = q.__class__ in (int, float)  # a Python number: the result has the dtype of `x`
    q = _probabilities(q, most, x)
    if x.spec.cplx:
        raise DTypeError(f"quantile orders its elements and takes real numbers, got {x.spec!r}; take real(x) first")
    if method not in METHODS:
        raise ArgumentError(f"quantile knows the methods {', '.join(METHODS)}, got {method!r}", method=method)
    if weights is not None and method != "inverted_cdf":
        raise ArgumentError(f"weights are for the method 'inverted_cdf', got {method!r}", method=method)
    x = converted(x, float64) if x.spec.dtype is bool_ else x
    axes = axes_of("quantile", axis, x.spec.ndim)
    rows = _rows(x, axes)
    flat = catalog.reshape(q, shape=(q.spec.size,))
    shape = (*rows.spec.shape[:-1], flat.spec.shape[0])
    n = rows.spec.shape[-1]
    if not ask(n, ">=", 1):
        if not x.spec.inexact and method in ("inverted_cdf", "closest_observation", "lower", "higher", "nearest"):
            raise ShapeError(f"quantile with method {method!r} has no element to choose from in {x.spec!r}")
        out = full(shape, math.nan, dtype=inexact_of(x.spec.dtype))
    elif weights is not None:
        out = _weighted(rows, flat, _rows(beside("quantile", x, listed_beside(weights, x), axis), axes), ignore)
    else:
        out = _interpolated(rows, flat, method, weak, ignore)
    out = moveaxis(out, -1, 0)
    out = catalog.reshape(out, shape=(*q.spec.shape, *rows.spec.shape[:-1]))
    return _reshaped(out, x, axes, keepdims, q.spec.shape)


def _interpolated(rows: Any, q: Any, method: str, weak: bool, ignore: bool) -> Any:
    """Quantiles along the last axis, which enumerates the probabilities in the result."""
    last = rows.spec.ndim - 1
    n = rows.spec.shape[last]
    ordered = catalog.sort(rows, axis=last, descending=False)
    unknown = None
    if ignore and rows.spec.inexact:
        ordered, known = _without_nan(ordered)
        unknown = catalog.eq(known, 0)
        first, second, weight = neighbours(method, converted(known, float64), q)
        low, high = (take_along_axis(ordered, i, axis=last) for i in (first, second))
    else:
        first, second, weight = neighbours(method, as_float(count(rows, (last,))), q)
        low, high = take(ordered, first, axis=last), take(ordered, second, axis=last)
        if rows.spec.inexact:
            unknown = catalog.is_nan(span(ordered, last, n - 1, n))
            low, high = (catalog.select(catalog.is_nan(v), 0.0, v) for v in (low, high))
    out = low if weight is None else _between(floating(low), floating(high), weight, weak)
    return out if unknown is None else catalog.select(unknown, math.nan, out)


def _between(low: Any, high: Any, weight: Any, weak: bool) -> Any:
    """Interpolate exactly at both ends, also next to an infinity and between equal infinities."""
    if weak:
        weight = converted(weight, low.spec.dtype)
    else:
        low, high, weight = alike(low, high, weight)
    stays = catalog.bitwise_or(catalog.eq(weight, 0.0), catalog.bitwise_and(catalog.is_inf(low), catalog.eq(low, high)))
    start = catalog.select(stays, 0.0, low)
    step = catalog.sub(catalog.select(stays, 0.0, high), start)
    finite = catalog.is_finite(step)
    upwards = catalog.add(low, catalog.mul(step, weight))
    downwards = catalog.sub(high, catalog.mul(catalog.select(finite, step, 0.0), catalog.sub(1.0, weight)))
    return catalog.select(catalog.bitwise_and(catalog.ge(weight, 0.5), finite), downwards, upwards)


def _weighted(rows: Any, q: Any, weights: Any, ignore: bool) -> Any:
    """The first element of each row up to which the weights sum to at least the fraction `q` of all weights."""
    last = rows.spec.ndim - 1
    n = rows.spec.shape[last]
    order = catalog.argsort(rows, axis=last, descending=False)
    ordered = take_along_axis(rows, order, axis=last)
    weights = converted(take_along_axis(weights, order, axis=last), float64)
    unknown = None
    top = listed(n - 1) if n.__class__ is int else converted(count(rows, (last,)), int64) - 1
    if rows.spec.inexact:
        unknown = catalog.is_nan(span(ordered, last, n - 1, n))
        if ignore:
            weights = catalog.select(catalog.is_nan(ordered), 0.0, weights)
            ordered, known = _without_nan(ordered)
            unknown, top = catalog.eq(known, 0), catalog.maximum(known - 1, 0)
    sums = catalog.cumsum(catalog.stop_gradient(weights), axis=last, reverse=False)
    share = catalog.div(sums, span(sums, last, n - 1, n))
    share = catalog.select(catalog.eq(share, 0.0), -1.0, share)  # never choose an element of weight 0, even if q = 0
    each = catalog.reshape(share, shape=(*share.spec.shape, 1))
    below = catalog.reduce_sum(converted(catalog.lt(each, catalog.stop_gradient(q)), int64), axes=(last,))
    out = take_along_axis(ordered, catalog.minimum(below, top), axis=last)
    return out if unknown is None else catalog.select(unknown, math.nan, out)


def _without_nan(ordered: Any) -> tuple[Any, Any]:
    """Sorted rows with the NaNs at their ends replaced by 0, and the number of other elements in each row."""
    none = catalog.is_nan(ordered)
    last = ordered.spec.ndim - 1
    known = catalog.reduce_sum(converted(catalog.bitwise_not(none), int64), axes=(last,))
    return catalog.select(none, 0.0, ordered), catalog.reshape(known, shape=(*known.spec.shape, 1))


def _rows(x: Any, axes: tuple[int, ...]) -> Any:
    """`x` with the axes to reduce merged into the last axis."""
    rest = [a for a in range(x.spec.ndim) if a not in axes]
    order = (*rest, *axes)
    moved = x if order == tuple(range(x.spec.ndim)) else catalog.transpose(x, permutation=order)
    shape = moved.spec.shape
    return catalog.reshape(moved, shape=(*shape[: len(rest)], math.prod(shape[len(rest) :])))


def _reshaped(out: Any, x: Any, axes: tuple[int, ...], keepdims: bool, lead: tuple[Any, ...] = ()) -> Any:
    """A result in its final shape: without the reduced axes, or with extent 1 for each of them."""
    if not keepdims:
        return out
    return catalog.reshape(out, shape=(*lead, *[1 if a in axes else d for a, d in enumerate(x.spec.shape)]))
