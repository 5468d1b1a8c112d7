"""Quantiles of distributions, the Voigt profile, and numbers of permutations, composed of other functions."""

from __future__ import annotations

import math
from typing import Any, Final

from tenferro_runtime.special._error_functions import wofz
from tenferro_runtime.special._gamma import poch
from tenferro_runtime.special._incomplete_beta import betainccinv, betaincinv, negative_binomial
from tenferro_runtime.special._incomplete_gamma import gammainccinv
from tenferro_runtime.special._operands import both, counted, probable, real_floating, within
from tenferro_tensor import Array, catalog

__all__ = ["bdtri", "fdtri", "nbdtri", "pdtri", "perm", "voigt_profile"]

_HALF: Final = math.sqrt(0.5)


def fdtri(dfn: Any, dfd: Any, p: Any, /) -> Array:
    """Quantile of the F distribution: the x for which ``fdtr(dfn, dfd, x)`` is `p`.

    Args:
        dfn: numerator degrees of freedom.
        dfd: denominator degrees of freedom.
        p: probability, a real array.

    Returns:
        Values of the broadcast shape, in the promoted floating-point dtype (float64 for integers).

    >>> tr.special.fdtri(2.0, tr.asarray([2.0, 4.0]), 0.5)
    Tensor([1.        , 0.82842712])
    """
    dfn, dfd = real_floating("fdtri", dfn), real_floating("fdtri", dfd)
    share, rest = betaincinv(0.5 * dfn, 0.5 * dfd, p), betainccinv(0.5 * dfd, 0.5 * dfn, p)
    return within(both(catalog.is_finite(dfn), catalog.is_finite(dfd)), (dfd * share) / (dfn * rest))  # type: ignore[no-any-return]


def pdtri(k: Any, y: Any, /) -> Array:
    """Mean of the Poisson distribution for which ``pdtr(k, mean)`` is `y`.

    Args:
        k: count, rounded down.
        y: probability, a real array.

    Returns:
        Values of the broadcast shape, in the promoted floating-point dtype (float64 for integers).

    >>> tr.special.pdtri(tr.asarray([0, 1]), 0.5)
    Tensor([0.69314718, 1.67834699])
    """
    k, y = counted("pdtri", k), real_floating("pdtri", y)
    inside = both(catalog.ge(k, 0), catalog.is_finite(k), catalog.ge(y, 0), catalog.lt(y, 1))
    return within(inside, gammainccinv(k + 1.0, y))  # type: ignore[no-any-return]


def bdtri(k: Any, n: Any, y: Any, /) -> Array:
    """Probability p of a success for which ``bdtr(k, n, p)`` is `y`.

    Args:
        k: number of successes, rounded down.
        n: number of trials, rounded towards 0.
        y: probability, a real array.

    Returns:
        Values of the broadcast shape, in the promoted floating-point dtype (float64 for integers).

    >>> tr.special.bdtri(tr.asarray([0, 1]), 2, 0.75)
    Tensor([0.1339746, 0.5      ])
    """
    k, n, y = catalog.floor(real_floating("bdtri", k)), counted("bdtri", n), real_floating("bdtri", y)
    inside = both(probable(y), catalog.ge(k, 0), catalog.gt(n, k), catalog.is_finite(n))
    return within(inside, betainccinv(k + 1.0, n - k, y))  # type: ignore[no-any-return]


def nbdtri(k: Any, n: Any, y: Any, /) -> Array:
    """Probability p of a success for which ``nbdtr(k, n, p)`` is `y`.

    Args:
        k: number of failures, rounded down.
        n: number of successes, rounded down.
        y: probability, a real array.

    Returns:
        Values of the broadcast shape, in the promoted floating-point dtype (float64 for integers).

    >>> tr.special.nbdtri(tr.asarray([0, 1]), 2, 0.25)
    Tensor([0.5       , 0.32635182])
    """
    k, n, inside = negative_binomial("nbdtri", k, n)
    return within(inside, betaincinv(n, k + 1.0, y))  # type: ignore[no-any-return]


def perm(n: Any, k: Any, /) -> Array:
    """Number of ordered choices of `k` of `n` things, ``n! / (n - k)!``; 0 unless ``0 <= k <= n``.

    Args:
        n: number of things, a real array.
        k: number taken, a real array.

    Returns:
        Values of the broadcast shape, in the promoted floating-point dtype (float64 for integers).

    >>> tr.special.perm(tr.asarray([4, 1]), 2)
    Tensor([12.,  0.])
    """
    n, k = real_floating("perm", n), real_floating("perm", k)
    valid = catalog.bitwise_and(catalog.ge(k, 0), catalog.le(k, n))
    start, count = catalog.select(valid, n - k + 1.0, 1.0), catalog.select(valid, k, 1.0)
    return catalog.select(valid, poch(start, count), 0.0)  # type: ignore[no-any-return]


def voigt_profile(x: Any, sigma: Any, gamma: Any, /) -> Array:
    """Voigt profile: density of the sum of a normal and a Cauchy variable.

    Definition: DLMF 7.19.

    Args:
        x: real array.
        sigma: standard deviation of the normal variable, positive.
        gamma: half width at half maximum of the Cauchy variable, at least 0.

    Returns:
        Values of the broadcast shape, in the promoted floating-point dtype (float64 for integers).

    >>> tr.special.voigt_profile(tr.asarray([0.0, 2.0]), 1.0, 1.0)
    Tensor([0.20870928, 0.0907152 ])
    """
    x, sigma, gamma = (real_floating("voigt_profile", v) for v in (x, sigma, gamma))
    scale = _HALF / sigma
    z = catalog.complex(x * scale, gamma * scale)
    return catalog.real(wofz(z)) * (scale / math.sqrt(math.pi))  # type: ignore[no-any-return]
