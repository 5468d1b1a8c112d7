"""Means, variances and normalised exponentials over axes; narrow floats are computed in float32."""

from __future__ import annotations

from math import inf, nan
from typing import TYPE_CHECKING, Any

from tenferro_tensor import catalog
from tenferro_tensor.calls import state
from tenferro_tensor.functions._floating import in_float32
from tenferro_tensor.functions.arithmetic import abs2
from tenferro_tensor.functions.reductions import max as _max
from tenferro_tensor.functions.reductions import sum as _sum
from tenferro_tensor.identity import aliased
from tenferro_tensor.operands import axes_of, converted, count, empty_extent, host_elements, value
from tenferro_tensor_core import inexact_of

if TYPE_CHECKING:
    from tenferro_tensor._array import Array

__all__ = ["log_softmax", "logsumexp", "mean", "softmax", "std", "var"]


def __dir__() -> list[str]:
    return __all__.copy()


def _floating(x: Any) -> Any:
    x = value(x)
    return converted(x, inexact_of(x.spec.dtype))


def _divided(total: Any, x: Any, axis: Any, correction: float = 0.0) -> Any:
    """A sum over axes divided by the number of its terms minus the correction; NaN if that is not positive."""
    n = converted_like(count(x, axes_of("mean", axis, x.spec.ndim)), total)
    if isinstance(correction, (int, float)) and not correction:
        return catalog.div(total, n)
    left = n - correction
    if isinstance(left, float):
        return catalog.div(total, left if left > 0 else nan)
    return catalog.div(total, catalog.select(catalog.gt(left, 0), left, nan))


def converted_like(n: Any, x: Any) -> Any:
    """A number of terms as a float for use with `x`: weak if it is a Python integer."""
    return float(n) if n.__class__ is int else converted(n, catalog.real.infer(x.spec).dtype)  # type: ignore[union-attr]


def mean(x: Any, /, axis: Any = None, *, keepdims: bool = False) -> Array:
    """Arithmetic mean over axes; NaN for no elements.

    Args:
        x: array of any shape; integers are computed in float64.
        axis: axis or axes to reduce; by default all.
        keepdims: keep the reduced axes with extent 1.

    Returns:
        Array without the reduced axes, in the floating-point dtype of `x`.

    Raises:
        AxisError: an axis is out of range or repeated.

    See also:
        `average`, which takes weights; `nanmean`, which ignores NaN.

    >>> tr.mean(tr.asarray([[1.0, 2.0], [3.0, 4.0]]), axis=0)
    Tensor([2., 3.])
    """
    x = _floating(x)
    if x.spec.narrow:
        return in_float32(mean, x, axis, keepdims=keepdims)
    return _divided(_sum(x, axis, keepdims=keepdims), x, axis)


def var(
    x: Any, /, axis: Any = None, *, correction: float = 0.0, keepdims: bool = False, ddof: float | None = None
) -> Array:
    """Variance over axes: ``sum(abs(x - mean(x))**2) / (n - correction)``.

    NaN where `correction` is not less than the number of elements.

    Args:
        x: array of any shape; integers are computed in float64.
        axis: axis or axes to reduce; by default all.
        correction: degrees of freedom to subtract: 0 for the variance of a population, 1 for the unbiased estimate from
            a sample.
        keepdims: keep the reduced axes with extent 1.
        ddof: another name for `correction`, NumPy's.

    Returns:
        Array without the reduced axes, real.

    Raises:
        AxisError: an axis is out of range or repeated.

    See also:
        `std`, its square root; `nanvar`, which ignores NaN.

    >>> tr.var(tr.asarray([1.0, 2.0, 3.0]), correction=1)
    Tensor(1.)
    """
    correction = correction if ddof is None else ddof
    x = _floating(x)
    if x.spec.narrow:
        return in_float32(var, x, axis, correction=correction, keepdims=keepdims)
    spread = abs2(x - mean(x, axis, keepdims=True))
    return _divided(_sum(spread, axis, keepdims=keepdims), x, axis, correction)


def std(
    x: Any, /, axis: Any = None, *, correction: float = 0.0, keepdims: bool = False, ddof: float | None = None
) -> Array:
    """Standard deviation over axes, the square root of `var`.

    Where all elements are equal, its derivatives of every order are 0, like those of a norm at 0.

    Args:
        x: array of any shape; integers are computed in float64.
        axis: axis or axes to reduce; by default all.
        correction: degrees of freedom to subtract: 0 for the variance of a population, 1 for the unbiased estimate from
            a sample.
        keepdims: keep the reduced axes with extent 1.
        ddof: another name for `correction`, NumPy's.

    Returns:
        Array without the reduced axes, real.

    Raises:
        AxisError: an axis is out of range or repeated.

    >>> tr.std(tr.asarray([1.0, 2.0, 3.0]), correction=1)
    Tensor(1.)
    """
    correction = correction if ddof is None else ddof
    x = _floating(x)
    if x.spec.narrow:
        return in_float32(std, x, axis, correction=correction, keepdims=keepdims)
    spread = var(x, axis, correction=correction, keepdims=keepdims)
    if spread.__class__ is state.tensor:  # a concrete value without derivatives
        return catalog.sqrt(spread)
    equal = catalog.eq(spread, 0.0)
    return catalog.select(equal, 0.0, catalog.sqrt(catalog.select(equal, 1.0, spread)))


def _below_peak(x: Any, axes: Any) -> Any:
    """The elements minus the largest one; results do not depend on this shift, so it has no derivative.

    If the largest is infinite: 0 for the elements that attain it and minus infinity for all others, without derivative.
    """
    peak = catalog.stop_gradient(_max(x, axes, keepdims=True))
    infinite = catalog.is_inf(peak)
    known = host_elements(infinite)
    if known is not None and not known.any():
        return x - peak
    attained = catalog.eq(x, catalog.select(infinite, peak, nan))
    below = catalog.select(infinite, -inf, x - catalog.select(infinite, 0.0, peak))
    return catalog.select(attained, 0.0, below)


def _below_real_peak(x: Any, axes: Any) -> tuple[Any, Any]:
    """Complex elements minus the largest real part if that is finite, and the subtrahend, without derivative."""
    peak = catalog.stop_gradient(_max(catalog.real(x), axes, keepdims=True))
    peak = catalog.select(catalog.is_inf(peak), 0.0, peak)
    return x - peak, peak


def logsumexp(x: Any, /, axis: Any = None, *, keepdims: bool = False) -> Array:
    """``log(sum(exp(x)))`` over axes, without intermediate overflow; minus infinity for no elements.

    Where the largest element is infinite, the result is that element, and all elements that attain it share the
    derivative equally, as in `logaddexp`. For complex elements, the result is the principal logarithm, shifted by the
    largest real part.

    Args:
        x: array of any shape; integers are computed in float64.
        axis: axis or axes to reduce; by default all.
        keepdims: keep the reduced axes with extent 1.

    Returns:
        Array without the reduced axes, in the floating-point dtype of `x`.

    Raises:
        AxisError: an axis is out of range or repeated.

    See also:
        `logaddexp`, elementwise.

    >>> tr.logsumexp(tr.asarray([1000.0, 1000.0]))
    Tensor(1000.69314718)
    """
    x = _floating(x)
    if x.spec.narrow:
        return in_float32(logsumexp, x, axis, keepdims=keepdims)
    axes = axes_of("logsumexp", axis, x.spec.ndim)
    if any(empty_extent(x.spec.shape[a]) for a in axes):
        return catalog.log(_sum(x, axes, keepdims=keepdims))
    if x.spec.cplx:
        below, peak = _below_real_peak(x, axes)
        return _reduced(catalog.log(_sum(catalog.exp(below), axes, keepdims=True)) + peak, axes, keepdims)
    largest = _max(x, axes, keepdims=True)
    infinite = catalog.is_inf(largest)
    known = host_elements(infinite)
    if known is not None and not known.any():
        peak = catalog.stop_gradient(largest)
        out = catalog.log(_sum(catalog.exp(x - peak), axes, keepdims=True)) + peak
    else:
        peak = catalog.stop_gradient(catalog.select(infinite, 0.0, largest))
        total = catalog.select(infinite, 1.0, _sum(catalog.exp(x - peak), axes, keepdims=True))
        out = catalog.select(infinite, largest, catalog.log(total) + peak)
    return _reduced(out, axes, keepdims)


def _reduced(kept: Any, axes: Any, keepdims: bool) -> Any:
    rest = tuple([d for a, d in enumerate(kept.spec.shape) if a not in axes])
    return kept if keepdims else catalog.reshape(kept, shape=rest)


def softmax(x: Any, /, axis: Any = -1) -> Array:
    """``exp(x) / sum(exp(x))`` over axes, without intermediate overflow.

    Where the largest element is infinite, all elements that attain it have equal shares, and derivatives are 0.

    Args:
        x: array of any shape; integers are computed in float64.
        axis: axis or axes to normalise over.

    Returns:
        Array of the shape of `x`, in its floating-point dtype.

    Raises:
        AxisError: an axis is out of range or repeated.

    See also:
        `log_softmax`, its logarithm.

    >>> tr.softmax(tr.asarray([0.0, 0.0]))
    Tensor([0.5, 0.5])
    """
    x = _floating(x)
    if x.spec.narrow:
        return in_float32(softmax, x, axis)
    axes = axes_of("softmax", axis, x.spec.ndim)
    if any(empty_extent(x.spec.shape[a]) for a in axes):
        return aliased(x)
    e = catalog.exp(_below_real_peak(x, axes)[0] if x.spec.cplx else _below_peak(x, axes))
    return e / _sum(e, axes, keepdims=True)


def log_softmax(x: Any, /, axis: Any = -1) -> Array:
    """Logarithm of `softmax`, accurate for tiny shares.

    Where the largest element is infinite, all elements that attain it have equal shares, and derivatives are 0.

    Args:
        x: array of any shape; integers are computed in float64.
        axis: axis or axes to normalise over.

    Returns:
        Array of the shape of `x`, in its floating-point dtype.

    Raises:
        AxisError: an axis is out of range or repeated.

    >>> tr.log_softmax(tr.asarray([0.0, 0.0]))
    Tensor([-0.69314718, -0.69314718])
    """
    x = _floating(x)
    if x.spec.narrow:
        return in_float32(log_softmax, x, axis)
    axes = axes_of("log_softmax", axis, x.spec.ndim)
    if any(empty_extent(x.spec.shape[a]) for a in axes):
        return aliased(x)
    shifted = _below_real_peak(x, axes)[0] if x.spec.cplx else _below_peak(x, axes)
    return shifted - catalog.log(_sum(catalog.exp(shifted), axes, keepdims=True))
