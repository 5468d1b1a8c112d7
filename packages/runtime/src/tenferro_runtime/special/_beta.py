"""The beta function, and binomial coefficients."""

from __future__ import annotations

from typing import Any

import numpy as np

from tenferro_runtime.special._declared import from_host, from_scipy
from tenferro_runtime.special._digamma import psi_increment
from tenferro_runtime.special._gamma import gamma, rgamma, rgamma_slope
from tenferro_runtime.special._increments import LARGE, log_beta
from tenferro_runtime.special._operands import real_floating
from tenferro_runtime.special._scipy import host_special
from tenferro_tensor import Array, catalog

__all__ = ["beta", "betaln", "binom", "comb"]


def beta(a: Any, b: Any, /) -> Array:
    """Beta function, ``gamma(a) gamma(b) / gamma(a + b)``.

    Definition: DLMF 5.12.

    Args:
        a: real array.
        b: real array.

    Returns:
        Values of the broadcast shape, in the promoted floating-point dtype (float64 for integers).

    >>> tr.special.beta(tr.asarray([1.0, 0.5]), 2.0)
    Tensor([0.5       , 1.33333333])
    """
    return beta_(a, b)  # type: ignore[no-any-return]


def betaln(a: Any, b: Any, /) -> Array:
    """Logarithm of the absolute value of the beta function.

    Args:
        a: real array.
        b: real array.

    Returns:
        Values of the broadcast shape, in the promoted floating-point dtype (float64 for integers).

    >>> tr.special.betaln(tr.asarray([1.0, 0.5]), 2.0)
    Tensor([-0.69314718,  0.28768207])
    """
    return betaln_(a, b)  # type: ignore[no-any-return]


def binom(n: Any, k: Any, /) -> Array:
    """Binomial coefficient of real numbers, ``gamma(n + 1) / (gamma(k + 1) gamma(n - k + 1))``.

    Definition: DLMF 1.2.

    Args:
        n: real array.
        k: real array.

    Returns:
        Values of the broadcast shape, in the promoted floating-point dtype (float64 for integers).

    >>> tr.special.binom(tr.asarray([4.0, 0.5]), 2.0)
    Tensor([ 6.   , -0.125])
    """
    return binom_(n, k)  # type: ignore[no-any-return]


def comb(n: Any, k: Any, /, *, repetition: bool = False) -> Array:
    """Number of ways to choose `k` of `n` things: `binom`, and 0 unless ``0 <= k <= n``.

    Args:
        n: number of things, a real array.
        k: number taken, a real array.
        repetition: whether a thing may be taken several times.

    Returns:
        Values of the broadcast shape, in the promoted floating-point dtype (float64 for integers).

    >>> tr.special.comb(tr.asarray([4, 1]), 2)
    Tensor([6., 0.])
    """
    n, k = real_floating("comb", n), real_floating("comb", k)
    if repetition:
        n = n + k - 1.0
    valid = catalog.bitwise_and(catalog.ge(k, 0), catalog.le(k, n))
    return catalog.select(valid, binom(n, k), 0.0)  # type: ignore[no-any-return]


def _regular(n: Any, k: Any) -> Any:
    return catalog.bitwise_and(catalog.gt(k, -1), catalog.gt(n - k, -1))


def _binom_by_n(n: Any, k: Any, out: Any) -> Any:
    rest = n - k + 1.0
    regular = _regular(n, k)
    slope = out * psi_increment(catalog.select(regular, rest, 1.0), catalog.select(regular, k, 1.0))
    return catalog.select(regular, slope, _at_poles(n, k, regular)[0])


def _binom_by_k(n: Any, k: Any, out: Any) -> Any:
    regular = _regular(n, k)
    below, above = catalog.select(regular, k + 1.0, 1.0), catalog.select(regular, n - k + 1.0, 1.0)
    slope = out * (catalog.digamma(above) - catalog.digamma(below))
    return catalog.select(regular, slope, _at_poles(n, k, regular)[1])


def _at_poles(n: Any, k: Any, regular: Any) -> tuple[Any, Any]:
    """Derivatives by way of the reciprocal gamma function, where the coefficient may be 0."""
    n, k = catalog.select(regular, 1.0, n), catalog.select(regular, 0.5, k)
    factor, lower, upper = gamma(n + 1.0), rgamma(k + 1.0), rgamma(n - k + 1.0)
    lower_slope, upper_slope = rgamma_slope(k + 1.0, lower), rgamma_slope(n - k + 1.0, upper)
    by_n = factor * lower * (catalog.digamma(n + 1.0) * upper + upper_slope)
    return by_n, factor * (lower_slope * upper - lower * upper_slope)


def _expand_binom(n: Any, k: Any) -> Any:
    regular = _regular(n, k)
    rest, m = catalog.select(regular, n - k, 1.0), catalog.select(regular, k, 1.0)
    found = catalog.exp(-betaln(rest + 1.0, m + 1.0)) / catalog.select(regular, n + 1.0, 1.0)
    return catalog.select(regular, found, gamma(n + 1.0) * rgamma(k + 1.0) * rgamma(n - k + 1.0))


def _beta(a: Any, b: Any) -> Any:
    special = host_special()
    found = special.beta(a, b)
    large = (np.maximum(a, b) > LARGE) & (np.minimum(a, b) > 0)
    if large.any():
        found[large] = np.exp(log_beta(special, a[large], b[large]))
    return found


beta_ = from_host(
    "beta",
    "a b",
    "Beta function.",
    _beta,
    jax="beta",
    a=lambda a, b, out: -out * psi_increment(a, b),
    b=lambda a, b, out: -out * psi_increment(b, a),
)
betaln_ = from_host(
    "betaln",
    "a b",
    "Logarithm of the absolute value of the beta function.",
    lambda a, b: log_beta(host_special(), a, b),
    expansion=lambda a, b: catalog.lgamma(a) + catalog.lgamma(b) - catalog.lgamma(a + b),
    a=lambda a, b: -psi_increment(a, b),
    b=lambda a, b: -psi_increment(b, a),
)
binom_ = from_scipy(
    "binom", "n k", "Binomial coefficient of real numbers.", expansion=_expand_binom, n=_binom_by_n, k=_binom_by_k
)
