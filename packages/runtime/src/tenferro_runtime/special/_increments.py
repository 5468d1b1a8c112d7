"""Differences of polygamma functions, and of logarithms of gamma functions, that do not cancel."""

from __future__ import annotations

from math import factorial
from typing import Any, Final

import numpy as np

from tenferro_runtime.special._quadrature import legendre
from tenferro_runtime.special._recurrences import STIRLING, horner

LARGE: Final = 16.0
"""Least arguments for which Stirling's series is exact."""

NEAR: Final = 0.25
"""Relative steps below which the difference is an integral of the derivative."""


def polygamma(special: Any, order: int, a: Any) -> Any:
    """The polygamma function of an order of at least 0."""
    if order == 0:
        return special.psi(a)
    return (-1) ** (order + 1) * factorial(order) * special.zeta(order + 1.0, a)


def increment(special: Any, order: int, a: Any, step: Any) -> Any:
    """``polygamma(order, a + step) - polygamma(order, a)`` for positive a, as accurate for small steps as for large."""
    plain = polygamma(special, order, a + step) - polygamma(special, order, a)
    near = (np.abs(step) < NEAR * a) & np.isfinite(a)
    if not near.any():
        return plain
    s, w = legendre(10)
    from_, by = np.broadcast_arrays(a, step)
    slopes = polygamma(special, order + 1, from_[near][:, None] + by[near][:, None] * s)
    plain = np.array(np.broadcast_to(plain, near.shape))
    plain[near] = by[near] * (slopes @ w)
    return plain


def stirling_error(a: Any) -> Any:
    """The error of Stirling's formula for the logarithm of the gamma function, for arguments of at least `LARGE`."""
    return horner(1.0 / (a * a), STIRLING) / a


def log_beta(special: Any, a: Any, b: Any) -> Any:
    """The logarithm of the beta function."""
    large, small = np.maximum(a, b), np.minimum(a, b)
    found, far = special.betaln(a, b), (large > LARGE) & (small > 0)
    if not far.any():
        return found
    p, q = large[far], small[far]
    ratio = (p - 0.5) * np.log1p(q / p) + q * (np.log(p + q) - 1) + stirling_error(p + q) - stirling_error(p)
    found[far] = special.gammaln(q) - ratio
    return found
