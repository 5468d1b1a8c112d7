"""Quotients with a removable singularity at 0, differentiable there to every order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import factorial
from typing import Any, Final

from tenferro_runtime.special._declared import composed, from_scipy
from tenferro_runtime.special._recurrences import horner
from tenferro_tensor import Array, catalog, functions

__all__ = ["exprel", "sinc"]


def removable(x: Any, radius: float, coefficients: Sequence[float], closed: Callable[[Any], Any]) -> Any:
    """A power series for small `x`, a closed form for all others; each is evaluated only where it is valid.

    Args:
        x: where.
        radius: where the closed form begins.
        coefficients: those of the power series, of order 0 first.
        closed: the closed form.
    """
    small = catalog.lt(catalog.abs(x), radius)
    near = catalog.select(small, x, 0.0)
    series = horner(near, coefficients)
    return catalog.select(small, series, closed(catalog.select(small, radius, x)))


def exprel(x: Any, /) -> Array:
    """``(exp(x) - 1) / x``, which is 1 at 0.

    Args:
        x: real array.

    Returns:
        Values of the shape of `x`, in its floating-point dtype (float64 for integers).

    >>> tr.special.exprel(tr.asarray([0.0, 1.0]))
    Tensor([1.        , 1.71828183])
    """
    return exprel_(x)  # type: ignore[no-any-return]


def sinc(x: Any, /) -> Array:
    """``sin(pi * x) / (pi * x)``, which is 1 at 0.

    Args:
        x: real array.

    Returns:
        Values of the shape of `x`, in its floating-point dtype (float64 for integers).

    >>> tr.special.sinc(tr.asarray([0.0, 0.5]))
    Tensor([1.        , 0.63661977])
    """
    return functions.sinc(x)


_EXPREL_SLOPE: Final = [1 / ((k + 2) * factorial(k)) for k in range(22)]


def _exprel_slope(x: Any) -> Any:
    def closed(x: Any) -> Any:
        # Divided twice: the square overflows before the quotient does.
        return (catalog.exp(x) - catalog.expm1(x) / x) / x

    return removable(x, 1.0, _EXPREL_SLOPE, closed)


_LOG1P: Final = [(-1) ** k / (k + 1) for k in range(36)]


def _expand_log1p_quotient(x: Any) -> Any:
    return removable(x, 0.25, _LOG1P, lambda x: catalog.log1p(x) / x)


_SINHC: Final = [0.0 if k % 2 else 1 / factorial(k + 1) for k in range(21)]


def sinh_quotient(x: Any) -> Any:
    """``sinh(x) / x``."""
    return removable(x, 1.0, _SINHC, lambda x: catalog.sinh(x) / x)


_SINC: Final = [0.0 if k % 2 else (-1) ** (k // 2) / factorial(k + 1) for k in range(21)]


def sin_quotient(x: Any) -> Any:
    """``sin(x) / x``."""
    return removable(x, 1.0, _SINC, lambda x: catalog.sin(x) / x)


def _expand_exprel(x: Any) -> Any:
    return removable(x, 1e-8, [1.0, 0.5], lambda x: catalog.expm1(x) / x)


exprel_ = from_scipy("exprel", "x", "``(exp(x) - 1) / x``.", expansion=_expand_exprel, singular=False, x=_exprel_slope)
log1p_quotient = composed("log1p_quotient", "x", "``log(1 + x) / x``.", _expand_log1p_quotient)
