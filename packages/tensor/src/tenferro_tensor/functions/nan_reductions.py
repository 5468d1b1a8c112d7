"""Sums, means, extrema and cumulative sums of the elements that are not NaN.

NaNs are replaced before the computation, so that derivatives are 0 there and exact elsewhere.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from tenferro_tensor import catalog
from tenferro_tensor.direct import ANY_SIZE, direct
from tenferro_tensor.functions import _statistic_forms
from tenferro_tensor.functions._floating import floating, in_float32
from tenferro_tensor.functions._listed import listed
from tenferro_tensor.functions.arithmetic import abs2
from tenferro_tensor.functions.numpy_forms import cumprod, cumsum
from tenferro_tensor.functions.reductions import all as _all
from tenferro_tensor.functions.reductions import max as _max
from tenferro_tensor.functions.reductions import min as _min
from tenferro_tensor.functions.reductions import prod as _prod
from tenferro_tensor.functions.reductions import sum as _sum
from tenferro_tensor.functions.searching import argmax, argmin
from tenferro_tensor.functions.statistics import mean
from tenferro_tensor.operands import converted, host_elements
from tenferro_tensor_core import ArgumentError, real_of
from tenferro_tensor_core import dtype as known_dtype

if TYPE_CHECKING:
    from tenferro_tensor._array import Array

__all__ = [
    "nanargmax", "nanargmin", "nancumprod", "nancumsum", "nanmax", "nanmean", "nanmin", "nanprod", "nanstd", "nansum",
    "nanvar",
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__.copy()


def _filled(x: Any, fill: float) -> tuple[Any, Any]:
    """`x` with NaNs replaced by a number, and the mask of NaNs: ``None`` for a dtype without NaN."""
    x = listed(x)
    if not x.spec.inexact:
        return x, None
    none = catalog.is_nan(x)
    return catalog.select(none, fill, x), none


def nansum(x: Any, /, axis: Any = None, *, dtype: Any = None, keepdims: bool = False) -> Array:
    """Sum over axes, ignoring NaN; 0 for no elements.

    Args:
        x: array of any shape and dtype.
        axis: axis or axes to reduce; by default all.
        dtype: dtype of the result; by default that of `x`, int64 or uint64 for integers and booleans.
        keepdims: keep the reduced axes with extent 1.

    Returns:
        Array without the reduced axes.

    Raises:
        AxisError: an axis is out of range or repeated.

    >>> tr.nansum(tr.asarray([1.0, float("nan"), 2.0]))
    Tensor(3.)
    """
    return _sum(_filled(x, 0.0)[0], axis, dtype=dtype, keepdims=keepdims)


def nanprod(x: Any, /, axis: Any = None, *, dtype: Any = None, keepdims: bool = False) -> Array:
    """Product over axes, ignoring NaN; 1 for no elements.

    Args:
        x: array of any shape and dtype.
        axis: axis or axes to reduce; by default all.
        dtype: dtype of the result; by default that of `x`, int64 or uint64 for integers and booleans.
        keepdims: keep the reduced axes with extent 1.

    Returns:
        Array without the reduced axes.

    Raises:
        AxisError: an axis is out of range or repeated.

    >>> tr.nanprod(tr.asarray([3.0, float("nan"), 2.0]))
    Tensor(6.)
    """
    return _prod(_filled(x, 1.0)[0], axis, dtype=dtype, keepdims=keepdims)


def nancumsum(x: Any, /, axis: Any = None, *, dtype: Any = None) -> Array:
    """Cumulative sum, with NaN counted as 0.

    Args:
        x: array of any shape and dtype.
        axis: axis to accumulate along; by default the flattened array.
        dtype: dtype of the result; by default that of `x`, int64 or uint64 for integers and booleans.

    Returns:
        Array of the shape of `x`, or a vector.

    Raises:
        AxisError: the axis is out of range.

    >>> tr.nancumsum(tr.asarray([1.0, float("nan"), 2.0]))
    Tensor([1., 1., 3.])
    """
    return cumsum(_filled(x, 0.0)[0], axis, dtype=dtype)


def nancumprod(x: Any, /, axis: Any = None, *, dtype: Any = None) -> Array:
    """Cumulative product, with NaN counted as 1.

    Args:
        x: array of any shape and dtype.
        axis: axis to accumulate along; by default the flattened array.
        dtype: dtype of the result; by default that of `x`, int64 or uint64 for integers and booleans.

    Returns:
        Array of the shape of `x`, or a vector.

    Raises:
        AxisError: the axis is out of range.

    >>> tr.nancumprod(tr.asarray([3.0, float("nan"), 2.0]))
    Tensor([3., 3., 6.])
    """
    return cumprod(_filled(x, 1.0)[0], axis, dtype=dtype)


def nanmean(x: Any, /, axis: Any = None, *, dtype: Any = None, keepdims: bool = False) -> Array:
    """Mean over axes, ignoring NaN; NaN for no elements.

    Args:
        x: array of any shape; integers are computed in float64.
        axis: axis or axes to reduce; by default all.
        dtype: dtype of the result, and of the computation; by default that of `x`.
        keepdims: keep the reduced axes with extent 1.

    Returns:
        Array without the reduced axes, in the floating-point dtype.

    Raises:
        AxisError: an axis is out of range or repeated.

    >>> tr.nanmean(tr.asarray([1.0, float("nan"), 2.0]))
    Tensor(1.5)
    """
    x = _counted_in(listed(x), dtype)
    if x.spec.narrow:
        return in_float32(nanmean, x, axis, keepdims=keepdims)
    x, none = _filled(x, 0.0)
    if none is None:
        return mean(x, axis, keepdims=keepdims)
    return _quotient(_sum(x, axis, keepdims=keepdims), _known(x, none, axis, keepdims))


def _counted_in(x: Any, dtype: Any) -> Any:
    """`x` in the dtype requested for the mean, if any."""
    return x if dtype is None else converted(listed(x), known_dtype(dtype))


def _known(x: Any, none: Any, axis: Any, keepdims: bool) -> Any:
    """The number of elements that are not NaN, in the real dtype of `x`."""
    dtype = real_of(x.spec.dtype)
    return _sum(converted(catalog.bitwise_not(none), dtype), axis, keepdims=keepdims)


def _quotient(total: Any, n: Any) -> Any:
    """A sum divided by a number of terms; NaN without derivative where this number is not positive."""
    some = catalog.gt(n, 0.0)
    return catalog.select(some, catalog.div(total, catalog.select(some, n, 1.0)), math.nan)


def nanvar(
    x: Any,
    /,
    axis: Any = None,
    *,
    dtype: Any = None,
    ddof: float | None = None,
    keepdims: bool = False,
    correction: float = 0.0,
) -> Array:
    """Variance over axes, ignoring NaN; NaN where `correction` is not less than the number of elements.

    Args:
        x: array of any shape; integers are computed in float64.
        axis: axis or axes to reduce; by default all.
        dtype: dtype of the result, and of the computation; by default that of `x`.
        ddof: another name for `correction`.
        keepdims: keep the reduced axes with extent 1.
        correction: degrees of freedom to subtract: 0 for the variance of a population, 1 for the unbiased estimate from
            a sample.

    Returns:
        Array without the reduced axes, real.

    Raises:
        AxisError: an axis is out of range or repeated.

    >>> tr.nanvar(tr.asarray([1.0, float("nan"), 3.0]))
    Tensor(1.)
    """
    x = floating(_counted_in(x, dtype))
    if x.spec.narrow:
        return in_float32(nanvar, x, axis, ddof=ddof, keepdims=keepdims, correction=correction)
    x, none = _filled(x, 0.0)
    centre = _quotient(_sum(x, axis, keepdims=True), _known(x, none, axis, True))
    spread = abs2(catalog.select(none, 0.0, catalog.sub(x, centre)))
    n = _known(x, none, axis, keepdims) - (correction if ddof is None else ddof)
    return _quotient(_sum(spread, axis, keepdims=keepdims), n)


def nanstd(
    x: Any,
    /,
    axis: Any = None,
    *,
    dtype: Any = None,
    ddof: float | None = None,
    keepdims: bool = False,
    correction: float = 0.0,
) -> Array:
    """Standard deviation over axes, ignoring NaN; the square root of `nanvar`.

    As for `std`, derivatives are 0 where all elements are equal.

    Args:
        x: array of any shape; integers are computed in float64.
        axis: axis or axes to reduce; by default all.
        dtype: dtype of the result, and of the computation; by default that of `x`.
        ddof: another name for `correction`.
        keepdims: keep the reduced axes with extent 1.
        correction: degrees of freedom to subtract: 0 for the variance of a population, 1 for the unbiased estimate from
            a sample.

    Returns:
        Array without the reduced axes, real.

    Raises:
        AxisError: an axis is out of range or repeated.

    >>> tr.nanstd(tr.asarray([1.0, float("nan"), 3.0]))
    Tensor(1.)
    """
    x = floating(_counted_in(x, dtype))
    if x.spec.narrow:
        return in_float32(nanstd, x, axis, ddof=ddof, keepdims=keepdims, correction=correction)
    spread = nanvar(x, axis, ddof=ddof, keepdims=keepdims, correction=correction)
    equal = catalog.eq(spread, 0.0)
    return catalog.select(equal, 0.0, catalog.sqrt(catalog.select(equal, 1.0, spread)))


@direct(_statistic_forms.nanmax, ANY_SIZE)
def nanmax(x: Any, /, axis: Any = None, *, keepdims: bool = False) -> Array:
    """Largest element over axes, ignoring NaN; NaN if all are NaN.

    Args:
        x: real array of any shape.
        axis: axis or axes to reduce; by default all.
        keepdims: keep the reduced axes with extent 1.

    Returns:
        Array without the reduced axes, in the dtype of `x`.

    Raises:
        ShapeError: there are no elements to choose from.
        AxisError: an axis is out of range or repeated.
        DTypeError: `x` is complex.

    >>> tr.nanmax(tr.asarray([1.0, float("nan"), 2.0]))
    Tensor(2.)
    """
    x, none = _filled(x, -math.inf)
    return _unless_all(none, _max(x, axis, keepdims=keepdims), axis, keepdims)


@direct(_statistic_forms.nanmin, ANY_SIZE)
def nanmin(x: Any, /, axis: Any = None, *, keepdims: bool = False) -> Array:
    """Smallest element over axes, ignoring NaN; NaN if all are NaN.

    Args:
        x: real array of any shape.
        axis: axis or axes to reduce; by default all.
        keepdims: keep the reduced axes with extent 1.

    Returns:
        Array without the reduced axes, in the dtype of `x`.

    Raises:
        ShapeError: there are no elements to choose from.
        AxisError: an axis is out of range or repeated.
        DTypeError: `x` is complex.

    >>> tr.nanmin(tr.asarray([1.0, float("nan"), 2.0]))
    Tensor(1.)
    """
    x, none = _filled(x, math.inf)
    return _unless_all(none, _min(x, axis, keepdims=keepdims), axis, keepdims)


def _unless_all(none: Any, out: Any, axis: Any, keepdims: bool) -> Any:
    return out if none is None else catalog.select(_all(none, axis, keepdims=keepdims), math.nan, out)


def nanargmax(x: Any, /, axis: int | None = None, *, keepdims: bool = False) -> Array:
    """Index of the first largest element, ignoring NaN.

    If all elements are NaN, this is an error if they are known; otherwise, as in a compiled program, the index is -1.

    Args:
        x: real array of any shape.
        axis: axis along which to search; by default the flattened array.
        keepdims: keep the reduced axes with extent 1.

    Returns:
        int64 array without the reduced axes.

    Raises:
        ArgumentError: all elements along the axis are known to be NaN.
        ShapeError: there are no elements to choose from.
        AxisError: the axis is out of range.

    >>> tr.nanargmax(tr.asarray([1.0, float("nan"), 2.0]))
    Tensor(2)
    """
    x, none = _filled(x, -math.inf)
    return _located("nanargmax", none, argmax(x, axis, keepdims=keepdims), axis, keepdims)


def nanargmin(x: Any, /, axis: int | None = None, *, keepdims: bool = False) -> Array:
    """Index of the first smallest element, ignoring NaN.

    If all elements are NaN, this is an error if they are known; otherwise, as in a compiled program, the index is -1.

    Args:
        x: real array of any shape.
        axis: axis along which to search; by default the flattened array.
        keepdims: keep the reduced axes with extent 1.

    Returns:
        int64 array without the reduced axes.

    Raises:
        ArgumentError: all elements along the axis are known to be NaN.
        ShapeError: there are no elements to choose from.
        AxisError: the axis is out of range.

    >>> tr.nanargmin(tr.asarray([1.0, float("nan"), 2.0]))
    Tensor(0)
    """
    x, none = _filled(x, math.inf)
    return _located("nanargmin", none, argmin(x, axis, keepdims=keepdims), axis, keepdims)


def _located(name: str, none: Any, out: Any, axis: int | None, keepdims: bool) -> Any:
    if none is None:
        return out
    nowhere = _all(none, axis, keepdims=keepdims)
    known = host_elements(nowhere)
    if known is None:
        return catalog.select(nowhere, -1, out)
    if known.any():
        raise ArgumentError(f"{name} found only NaN{'' if axis is None else f' along axis {axis}'}; replace it first")
    return out
