"""The gamma function and related functions."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, Final

import numpy as np

from tenferro_runtime.special._declared import from_scipy
from tenferro_runtime.special._digamma import digamma, psi_increment
from tenferro_runtime.special._operands import is_complex, real_floating
from tenferro_tensor import Array, catalog
from tenferro_tensor.functions import asarray
from tenferro_tensor.operands import whole
from tenferro_tensor_core import ArgumentError

POLE: Final = math.nan
"""The sign of the gamma function at a pole below 0."""

__all__ = ["bernoulli", "factorial", "gamma", "gammaln", "gammasgn", "loggamma", "multigammaln", "poch", "rgamma"]


def gamma(x: Any, /) -> Array:
    """Gamma function; NaN at its poles below 0.

    Definition: DLMF 5.2.

    Args:
        x: real or complex array.

    Returns:
        Values of the shape of `x`, in its floating-point dtype (float64 for integers).

    >>> tr.special.gamma(tr.asarray([0.5, 5.0]))
    Tensor([ 1.77245385, 24.        ])
    """
    return gamma_(x)  # type: ignore[no-any-return]


def loggamma(x: Any, /) -> Array:
    """Principal branch of the logarithm of the gamma function; NaN for negative real numbers.

    The branch cut runs along the negative real axis.

    Args:
        x: real or complex array.

    Returns:
        Values of the shape of `x`, in its floating-point dtype (float64 for integers).

    >>> tr.special.loggamma(tr.asarray([3.0, 10.0]))
    Tensor([ 0.69314718, 12.80182748])
    """
    return loggamma_(x)  # type: ignore[no-any-return]


def gammaln(x: Any, /) -> Array:
    """Logarithm of the absolute value of the gamma function.

    Args:
        x: real array.

    Returns:
        Values of the shape of `x`, in its floating-point dtype (float64 for integers).

    >>> tr.special.gammaln(tr.asarray([3.0, -0.5]))
    Tensor([0.69314718, 1.26551212])
    """
    return catalog.lgamma(x)  # type: ignore[no-any-return]


def gammasgn(x: Any, /) -> Array:
    """Sign of the gamma function: that of `x` at 0, NaN at the other poles and at minus infinity.

    Args:
        x: real array.

    Returns:
        Values of the shape of `x`, in its floating-point dtype (float64 for integers).

    >>> tr.special.gammasgn(tr.asarray([2.0, -0.5, -1.5]))
    Tensor([ 1., -1.,  1.])
    """
    x = real_floating("gammasgn", x)
    right = catalog.copysign(1.0, x)
    below = catalog.bitwise_and(catalog.lt(x, 0), catalog.is_finite(x))
    left = catalog.select(below, x, -0.5)
    floor = catalog.floor(left)
    odd = catalog.ne(catalog.remainder(floor, 2.0), 0.0)
    sign = catalog.select(catalog.eq(floor, left), POLE, catalog.select(odd, right, catalog.neg(right)))
    sign = catalog.select(below, sign, right)
    lost = catalog.bitwise_or(catalog.is_nan(x), catalog.eq(x, -math.inf))
    return catalog.select(lost, math.nan, sign)  # type: ignore[no-any-return]


def rgamma(x: Any, /) -> Array:
    """Reciprocal of the gamma function, an entire function.

    Definition: DLMF 5.2.

    Args:
        x: real or complex array.

    Returns:
        Values of the shape of `x`, in its floating-point dtype (float64 for integers).

    >>> tr.special.rgamma(tr.asarray([0.5, -1.0]))
    Tensor([0.56418958, 0.        ])
    """
    return rgamma_(x)  # type: ignore[no-any-return]


def rgamma_slope(x: Any, out: Any) -> Any:
    """The derivative of `rgamma`, whose value is given."""
    left = catalog.lt(catalog.real(x) if is_complex(x) else x, 0.5)
    right = -digamma(catalog.select(left, 1.0, x)) * out
    # By reflection, 1 / gamma(x) is sin(pi x) / pi times gamma(1 - x).
    y = catalog.select(left, 1.0 - x, 1.0)
    sine, cosine = _sine_and_cosine(catalog.select(left, x, 0.0))
    return catalog.select(left, gamma(y) * (cosine - sine * (1 / math.pi) * digamma(y)), right)


def _sine_and_cosine(x: Any) -> tuple[Any, Any]:
    """``sin(pi x)`` and ``cos(pi x)``, computed from the distance to the nearest integer."""
    if is_complex(x):
        return catalog.sin(x * math.pi), catalog.cos(x * math.pi)
    nearest = catalog.round(x)
    sign = 1.0 - 2.0 * catalog.remainder(nearest, 2.0)
    angle = (x - nearest) * math.pi
    return sign * catalog.sin(angle), sign * catalog.cos(angle)


def _expand_rgamma(x: Any) -> Any:
    left = catalog.lt(catalog.real(x) if is_complex(x) else x, 0.5)
    sine, _ = _sine_and_cosine(catalog.select(left, x, 0.0))
    right = catalog.select(left, 1.0 - x, x)
    return catalog.select(left, sine * (1 / math.pi) * gamma(right), 1.0 / gamma(right))


def poch(z: Any, m: Any, /) -> Array:
    """Rising factorial (Pochhammer's symbol), ``gamma(z + m) / gamma(z)``.

    Definition: DLMF 5.2.

    Args:
        z: real array.
        m: real array.

    Returns:
        Values of the broadcast shape, in the promoted floating-point dtype (float64 for integers).

    >>> tr.special.poch(tr.asarray([1.0, 0.5]), 3.0)
    Tensor([6.   , 1.875])
    """
    return poch_(z, m)  # type: ignore[no-any-return]


def _poch_first_slope(z: Any, m: Any, out: Any) -> Any:
    regular = catalog.bitwise_and(catalog.gt(z, 0), catalog.gt(z + m, 0))
    quotient = out * psi_increment(catalog.select(regular, z, 1.0), catalog.select(regular, m, 1.0))
    pole = catalog.select(regular, -0.5, z)
    total = pole + catalog.select(regular, 1.0, m)
    slope = rgamma_slope(pole, rgamma(pole))
    return catalog.select(regular, quotient, gamma(total) * (digamma(total) * rgamma(pole) + slope))


def factorial(n: Any, /) -> Array:
    """Factorial, ``gamma(n + 1)``; 0 below 0.

    Definition: DLMF 5.4.

    Args:
        n: real array.

    Returns:
        Values of the shape of `n`, in its floating-point dtype (float64 for integers).

    >>> tr.special.factorial(tr.asarray([0, 3, 5]))
    Tensor([  1.,   6., 120.])
    """
    n = real_floating("factorial", n)
    below = catalog.lt(n, 0)
    return catalog.select(below, 0.0, gamma(catalog.select(below, 1.0, n + 1.0)))  # type: ignore[no-any-return]


def multigammaln(a: Any, d: int, /) -> Array:
    """Logarithm of the multivariate gamma function.

    The sum of ``lgamma(a - j / 2)`` over j from 0 to ``d - 1``, plus ``d (d - 1) / 4 log(pi)``.

    Definition: DLMF 35.3.

    Args:
        a: real array above ``(d - 1) / 2``.
        d: dimension.

    Returns:
        Values of the shape of `a`, in its floating-point dtype (float64 for integers).

    Raises:
        ArgumentError: the dimension is not a positive integer.

    >>> tr.special.multigammaln(tr.asarray([2.0, 5.0]), 2)
    Tensor([0.45158271, 6.20415534])
    """
    d = whole("multigammaln", "d", d)
    if d < 1:
        raise ArgumentError(f"multigammaln needs a dimension of at least 1, got {d}", d=d)
    a = real_floating("multigammaln", a)
    total = d * (d - 1) / 4 * math.log(math.pi) + catalog.lgamma(a)
    for j in range(1, d):
        total = total + catalog.lgamma(a - j / 2)
    return total  # type: ignore[no-any-return]


def bernoulli(n: int, /) -> Array:
    """Bernoulli numbers of order 0 to `n`; that of order 1 is -1/2.

    Definition: DLMF 24.2.

    Args:
        n: highest order.

    Returns:
        Bernoulli numbers of order 0 to `n`, of shape (n + 1,), float64.

    >>> tr.special.bernoulli(4)
    Tensor([ 1.        , -0.5       ,  0.16666667,  0.        , -0.03333333])
    """
    n = whole("bernoulli", "n", n)
    if n < 0:
        raise ArgumentError(f"bernoulli needs an order of at least 0, got {n}", n=n)
    numbers = [Fraction(1)]
    for m in range(1, n + 1):
        numbers.append(-sum(math.comb(m + 1, k) * b for k, b in enumerate(numbers)) / Fraction(m + 1))
    return asarray(np.array([float(b) for b in numbers]))


gamma_ = from_scipy("gamma", "x", "Gamma function.", domain="inexact", jax="gamma", x=lambda x, out: out * digamma(x))
loggamma_ = from_scipy(
    "loggamma",
    "x",
    "Principal branch of the logarithm of the gamma function.",
    domain="inexact",
    jax="loggamma",
    x=lambda x: digamma(x),
)
rgamma_ = from_scipy(
    "rgamma", "x", "Reciprocal of the gamma function.", domain="inexact", expansion=_expand_rgamma, x=rgamma_slope
)
poch_ = from_scipy(
    "poch", "z m", "Rising factorial.", jax="poch", z=_poch_first_slope, m=lambda z, m, out: out * digamma(z + m)
)
