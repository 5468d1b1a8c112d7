"""Quantiles of distributions, Voigt's profile, and numbers of permutations: compositions of other pages."""

from __future__ import annotations

import math
from typing import Any, Final

from tenferro_runtime.special._error_functions import wofz
from tenferro_runtime.special._gamma import poch
from tenferro_runtime.special._incomplete_beta import betainccinv, betaincinv
from tenferro_runtime.special._incomplete_gamma import gammainccinv
from tenferro_runtime.special._operands import real_floating
from tenferro_tensor import Array, catalog

__all__ = ["bdtri", "fdtri", "nbdtri", "pdtri", "perm", "voigt_profile"]

_HALF: Final = math.sqrt(0.5)


def fdtri(dfn: Any, dfd: Any, p: Any, /) -> Array:
    """The x for which ``fdtr(dfn, dfd, x)`` is `p`.

    >>> tr.special.fdtri(2.0, tr.asarray([2.0, 4.0]), 0.5)
    Tensor([1.        , 0.82842712])
    """
    dfn, dfd = real_floating("fdtri", dfn), real_floating("fdtri", dfd)
    share, rest = betaincinv(0.5 * dfn, 0.5 * dfd, p), betainccinv(0.5 * dfd, 0.5 * dfn, p)
    return (dfd * share) / (dfn * rest)  # type: ignore[no-any-return]


def pdtri(k: Any, y: Any, /) -> Array:
    """The mean for which ``pdtr(k, mean)`` is `y`; `k` is rounded down.

    >>> tr.special.pdtri(tr.asarray([0, 1]), 0.5)
    Tensor([0.69314718, 1.67834699])
    """
    return gammainccinv(catalog.floor(real_floating("pdtri", k)) + 1.0, y)


def bdtri(k: Any, n: Any, y: Any, /) -> Array:
    """The probability for which ``bdtr(k, n, probability)`` is `y`; `k` and `n` are rounded down.

    >>> tr.special.bdtri(tr.asarray([0, 1]), 2, 0.75)
    Tensor([0.1339746, 0.5      ])
    """
    k, n = (catalog.floor(real_floating("bdtri", x)) for x in (k, n))
    return betainccinv(k + 1.0, n - k, y)


def nbdtri(k: Any, n: Any, y: Any, /) -> Array:
    """The probability for which ``nbdtr(k, n, probability)`` is `y`; `k` and `n` are rounded down.

    >>> tr.special.nbdtri(tr.asarray([0, 1]), 2, 0.25)
    Tensor([0.5       , 0.32635182])
    """
    k, n = (catalog.floor(real_floating("nbdtri", x)) for x in (k, n))
    return betaincinv(n, k + 1.0, y)


def perm(n: Any, k: Any, /) -> Array:
    """The number of ordered choices of `k` of `n` things, ``n! / (n - k)!``; 0 where ``0 <= k <= n`` does not hold.

    >>> tr.special.perm(tr.asarray([4, 1]), 2)
    Tensor([12.,  0.])
    """
    n, k = real_floating("perm", n), real_floating("perm", k)
    valid = catalog.bitwise_and(catalog.ge(k, 0), catalog.le(k, n))
    start, count = catalog.select(valid, n - k + 1.0, 1.0), catalog.select(valid, k, 1.0)
    return catalog.select(valid, poch(start, count), 0.0)  # type: ignore[no-any-return]


def voigt_profile(x: Any, sigma: Any, gamma: Any, /) -> Array:
    """Voigt's profile: the density of the sum of a normal and of a Cauchy variable.

    Args:
        x: where.
        sigma: standard deviation of the normal one, positive.
        gamma: half width at half maximum of the Cauchy one, at least 0.

    >>> tr.special.voigt_profile(tr.asarray([0.0, 2.0]), 1.0, 1.0)
    Tensor([0.20870928, 0.0907152 ])
    """
    x, sigma, gamma = (real_floating("voigt_profile", v) for v in (x, sigma, gamma))
    scale = _HALF / sigma
    z = catalog.complex(x * scale, gamma * scale)
    return catalog.real(wofz(z)) * (scale / math.sqrt(math.pi))  # type: ignore[no-any-return]
