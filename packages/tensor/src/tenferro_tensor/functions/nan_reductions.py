"""Sums, means, extrema and cumulative sums of the elements that are not NaN.

NaNs are replaced before anything is computed from them, so that derivatives are 0 there and exact elsewhere.
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


def _filled(x: Any, fill: float) -> tuple[Any, Any]:
    """`x` with a number for each NaN, and where NaNs were: ``None`` for a dtype that has none."""
    x = listed(x)
    if not x.spec.inexact:
        return x, None
    none = catalog.is_nan(x)
    return catalog.select(none, fill, x), none


def nansum(x: Any, /, axis: Any = None, *, dtype: Any = None, keepdims: bool = False) -> Array:
    """Sum over axes of the elements that are not NaN; 0 where there are none.

    >>> tr.nansum(tr.asarray([1.0, float("nan"), 2.0]))
    Tensor(3.)
    """
    return _sum(_filled(x, 0.0)[0], axis, dtype=dtype, keepdims=keepdims)


def nanprod(x: Any, /, axis: Any = None, *, dtype: Any = None, keepdims: bool = False) -> Array:
    """Product over axes of the elements that are not NaN; 1 where there are none.

    >>> tr.nanprod(tr.asarray([3.0, float("nan"), 2.0]))
    Tensor(6.)
    """
    return _prod(_filled(x, 1.0)[0], axis, dtype=dtype, keepdims=keepdims)


def nancumsum(x: Any, /, axis: Any = None, *, dtype: Any = None) -> Array:
    """Cumulative sum along an axis, or of all elements, where NaN counts as 0.

    >>> tr.nancumsum(tr.asarray([1.0, float("nan"), 2.0]))
    Tensor([1., 1., 3.])
    """
    return cumsum(_filled(x, 0.0)[0], axis, dtype=dtype)


def nancumprod(x: Any, /, axis: Any = None, *, dtype: Any = None) -> Array:
    """Cumulative product along an axis, or of all elements, where NaN counts as 1.

    >>> tr.nancumprod(tr.asarray([3.0, float("nan"), 2.0]))
    Tensor([3., 3., 6.])
    """
    return cumprod(_filled(x, 1.0)[0], axis, dtype=dtype)


def nanmean(x: Any, /, axis: Any = None, *, dtype: Any = None, keepdims: bool = False) -> Array:
    """Mean over axes of the elements that are not NaN; NaN where there are none.

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
    """`x` in the dtype that a mean is asked for in, if one is."""
    return x if dtype is None else converted(listed(x), known_dtype(dtype))


def _known(x: Any, none: Any, axis: Any, keepdims: bool) -> Any:
    """How many elements are not NaN, in the real dtype of `x`."""
    dtype = real_of(x.spec.dtype)
    return _sum(converted(catalog.bitwise_not(none), dtype), axis, keepdims=keepdims)


def _quotient(total: Any, n: Any) -> Any:
    """A sum divided by a number of terms; NaN, without derivative, where that is not positive."""
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
    """Variance over axes of the elements that are not NaN; NaN where there are not more than `correction` of them.

    Args:
        x: the array.
        axis: one axis, a tuple of axes, or ``None`` for all.
        dtype: dtype of the variance, and of the elements that it is computed of; by default that of `x`.
        ddof: another name for `correction`.
        keepdims: leave the reduced axes with extent 1.
        correction: 0 for the variance of a population, 1 for the unbiased estimate from a sample.

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
    """Standard deviation over axes of the elements that are not NaN, the square root of `nanvar`.

    As for `std`, derivatives are 0 where all of these elements are equal.

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
    """Largest element over axes of those that are not NaN; NaN where there are none.

    >>> tr.nanmax(tr.asarray([1.0, float("nan"), 2.0]))
    Tensor(2.)
    """
    x, none = _filled(x, -math.inf)
    return _unless_all(none, _max(x, axis, keepdims=keepdims), axis, keepdims)


@direct(_statistic_forms.nanmin, ANY_SIZE)
def nanmin(x: Any, /, axis: Any = None, *, keepdims: bool = False) -> Array:
    """Smallest element over axes of those that are not NaN; NaN where there are none.

    >>> tr.nanmin(tr.asarray([1.0, float("nan"), 2.0]))
    Tensor(1.)
    """
    x, none = _filled(x, math.inf)
    return _unless_all(none, _min(x, axis, keepdims=keepdims), axis, keepdims)


def _unless_all(none: Any, out: Any, axis: Any, keepdims: bool) -> Any:
    return out if none is None else catalog.select(_all(none, axis, keepdims=keepdims), math.nan, out)


def nanargmax(x: Any, /, axis: int | None = None, *, keepdims: bool = False) -> Array:
    """Index of the first largest element that is not NaN, along an axis or among all elements.

    Where all are NaN: an error if that is known, else, as in a compiled program, -1.

    Raises:
        ArgumentError: all elements along the axis are known to be NaN.

    >>> tr.nanargmax(tr.asarray([1.0, float("nan"), 2.0]))
    Tensor(2)
    """
    x, none = _filled(x, -math.inf)
    return _located("nanargmax", none, argmax(x, axis, keepdims=keepdims), axis, keepdims)


def nanargmin(x: Any, /, axis: int | None = None, *, keepdims: bool = False) -> Array:
    """Index of the first smallest element that is not NaN, along an axis or among all elements.

    Where all are NaN: an error if that is known, else, as in a compiled program, -1.

    Raises:
        ArgumentError: all elements along the axis are known to be NaN.

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
