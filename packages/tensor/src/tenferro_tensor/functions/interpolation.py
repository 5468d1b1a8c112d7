"""Piecewise linear interpolation."""

from __future__ import annotations

from math import nan
from typing import TYPE_CHECKING, Any

from tenferro_tensor import catalog
from tenferro_tensor.direct import ANY_SIZE, direct
from tenferro_tensor.functions import _numpy_forms
from tenferro_tensor.functions._listed import listed
from tenferro_tensor.functions._span import span
from tenferro_tensor.functions.reading import take
from tenferro_tensor.operands import alike, converted, number
from tenferro_tensor_core import ArgumentError, DTypeError, ShapeError, ask, inexact_of

if TYPE_CHECKING:
    from tenferro_tensor._array import Array

__all__ = ["interp"]


def __dir__() -> list[str]:
    return __all__.copy()


@direct(_numpy_forms.interp, ANY_SIZE)
def interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None) -> Array:
    """Piecewise linear interpolation, differentiable with respect to every argument.

    At a data point, the derivative with respect to `x` is the slope to its right; beyond the last point it is 0.

    Args:
        x: real array of points to evaluate at.
        xp: ascending vector of the coordinates of the data; with `period`, in any order.
        fp: vector of the data, real or complex.
        left: value for ``x < xp[0]``; by default ``fp[0]``.
        right: value for ``x > xp[-1]``; by default ``fp[-1]``.
        period: period of the function; `left` and `right` are then ignored.

    Returns:
        Array of the shape of `x`, in the floating-point dtype of `fp`.

    Raises:
        ShapeError: `xp` and `fp` are not vectors of equal extent, at least 1.
        ArgumentError: the period is 0.
        DTypeError: `x` or `xp` is complex.

    >>> tr.interp(tr.asarray([0.5, 2.0, 9.0]), tr.asarray([0.0, 1.0, 3.0]), tr.asarray([0.0, 2.0, 4.0]))
    Tensor([1., 3., 4.])
    """
    x, xp, fp = listed(x), listed(xp), listed(fp)
    if xp.spec.ndim != 1 or fp.spec.ndim != 1 or not ask(xp.spec.shape[0], "==", fp.spec.shape[0]):
        raise ShapeError(f"interp needs vectors xp and fp of one extent, got {xp.spec!r} and {fp.spec!r}")
    if ask(xp.spec.shape[0], "==", 0):
        raise ShapeError("interp needs at least one point, got none")
    if x.spec.cplx or xp.spec.cplx:
        raise DTypeError(f"interp takes real places, got {x.spec!r} and {xp.spec!r}; take real parts first")
    x, xp = alike(x, xp)
    real = inexact_of(xp.spec.dtype)
    x, xp, fp = converted(x, real), converted(xp, real), converted(fp, inexact_of(fp.spec.dtype))
    if period is not None:
        x, xp, fp = _periodic(x, xp, fp, period)
        left = right = None
    return _interpolated(x, xp, fp, left, right)


def _periodic(x: Any, xp: Any, fp: Any, period: Any) -> tuple[Any, Any, Any]:
    """Coordinates reduced to one period, and sorted data with a point of the neighbouring period at each end."""
    if not hasattr(period, "spec"):
        if period == 0:
            raise ArgumentError("interp needs a period other than 0, got 0", period=period)
        period = abs(period)
    else:
        period = catalog.abs(period)
    x, xp = catalog.remainder(x, period), catalog.remainder(xp, period)
    order = catalog.argsort(xp, axis=0, descending=False)
    xp, fp = take(xp, order), take(fp, order)
    n = xp.spec.shape[0]
    before, after = span(xp, 0, n - 1, n), span(xp, 0, 0, 1)
    xp = catalog.concatenate(catalog.sub(before, period), xp, catalog.add(after, period), axis=0)
    return x, xp, catalog.concatenate(span(fp, 0, n - 1, n), fp, span(fp, 0, 0, 1), axis=0)


def _interpolated(x: Any, xp: Any, fp: Any, left: Any, right: Any) -> Any:
    n = xp.spec.shape[0]
    first, last = span(fp, 0, 0, 1), span(fp, 0, n - 1, n)
    ends = [catalog.reshape(e, shape=()) for e in (first, last)]
    low, high = (catalog.reshape(span(xp, 0, i, i + 1), shape=()) for i in (0, n - 1))
    last_index = n - 1 if isinstance(n, int) else number(n - 1, x.spec.place)
    after = catalog.searchsorted(catalog.stop_gradient(xp), catalog.stop_gradient(x), side="right")
    upper = catalog.minimum(catalog.maximum(after, 1), last_index)
    lower = catalog.maximum(catalog.sub(upper, 1), 0)
    x0, x1, f0, f1 = take(xp, lower), take(xp, upper), take(fp, lower), take(fp, upper)
    width = catalog.sub(x1, x0)
    flat = catalog.eq(width, 0)  # points with equal coordinates, or a single point
    slope = catalog.div(catalog.sub(f1, f0), catalog.select(flat, 1, width))
    inside = catalog.select(flat, f1, catalog.add(f0, catalog.mul(slope, catalog.sub(x, x0))))
    inside = catalog.select(catalog.eq(x, high), ends[1], inside)
    # NaN is neither below nor above the data.
    inside = catalog.select(catalog.ne(x, x), nan, inside)
    out = catalog.select(catalog.lt(x, low), *alike(ends[0] if left is None else left, inside))
    return catalog.select(catalog.gt(x, high), *alike(ends[1] if right is None else right, out))
