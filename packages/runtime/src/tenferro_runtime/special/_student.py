"""Student's distribution, with derivatives by the degrees of freedom."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any, Final

import numpy as np

from tenferro_runtime.special._declared import from_host, from_scipy
from tenferro_runtime.special._increments import LARGE, log_beta, polygamma
from tenferro_runtime.special._quadrature import DECAY, in_blocks, legendre
from tenferro_runtime.special._recurrences import bell_polynomials, horner
from tenferro_runtime.special._removable import removable
from tenferro_runtime.special._scipy import host_special
from tenferro_tensor import Array, catalog

__all__ = ["stdtr", "stdtrit"]

NODES: Final = 40
PANELS: Final = (0.0, 0.08, 0.4, 1.0)
"""Parts of the tail, in its logarithm: powers of it live in the first ones where it is long."""


def stdtr(df: Any, t: Any, /) -> Array:
    """Distribution function of Student's t distribution.

    Args:
        df: degrees of freedom, a positive real array.
        t: real array.

    Returns:
        Values of the broadcast shape, in the promoted floating-point dtype (float64 for integers).

    >>> tr.special.stdtr(tr.asarray([1.0, 5.0]), 1.0)
    Tensor([0.75      , 0.81839127])
    """
    return stdtr_(df, t)  # type: ignore[no-any-return]


def stdtrit(df: Any, p: Any, /) -> Array:
    """Quantile of Student's t distribution: the t for which ``stdtr(df, t)`` is `p`.

    Args:
        df: degrees of freedom, a positive real array.
        p: probability, a real array.

    Returns:
        Values of the broadcast shape, in the promoted floating-point dtype (float64 for integers).

    >>> tr.special.stdtrit(tr.asarray([1.0, 5.0]), 0.75)
    Tensor([1.        , 0.72668684])
    """
    return stdtrit_(df, p)  # type: ignore[no-any-return]


def _log_derivatives(df: Any, share: Any, excess: Any, order: int, scale: Callable[[int], Any]) -> list[Any]:
    """Derivatives by `df` of the logarithm of the density, of order 1 on, as sums that do not cancel.

    Args:
        df: degrees of freedom.
        share: ``t**2 / (df + t**2)``.
        excess: ``-log(1 - share) - share``.
        order: the highest order.
        scale: derivatives of the logarithm of the density in the middle.
    """
    rest, derivatives = 1.0 - share, []
    for m in range(1, order + 1):
        sign, factorial = (-1.0) ** m, float(math.factorial(m - 1))
        last = 0.5 * sign * factorial * share * sum(rest**i for i in range(m)) / df**m
        if m == 1:
            power = -0.5 * excess
        else:
            series = sum((i + 1) * rest**i for i in range(m - 1))
            power = 0.5 * sign * math.factorial(m - 2) * (share * share) * series / df ** (m - 1.0)
        derivatives.append(scale(m) + power - last)
    return derivatives


_EXCESS: Final = [0.0, 0.0, *[1 / j for j in range(2, 30)]]
"""Coefficients of powers of a share in its excess."""


def _scale_derivative(df: Any, order: int, psi: Callable[[int, Any], Any]) -> Any:
    """The derivative of the logarithm of the density in the middle, for few degrees of freedom."""
    change = psi(order - 1, 0.5 * (df + 1.0)) - psi(order - 1, 0.5 * df)
    return 0.5 * (-1.0) ** order * math.factorial(order - 1) / df**order + 0.5**order * change


def _far_scale_derivative(df: Any, order: int) -> Any:
    """The same for many, by the asymptotic series."""
    z = 0.5 * df
    total: Any = 0.0
    for k, c in zip(range(1, 14, 2), _HALF_STEP, strict=True):
        total = total + c * float(math.prod(range(k, k + order))) * z ** -float(k + order)
    return (-0.5) ** order * total


_HALF_STEP: Final = (-1 / 8, 1 / 192, -1 / 640, 17 / 14336, -31 / 18432, 691 / 180224, -5461 / 425984)
"""Coefficients of odd powers of ``1 / z`` in the logarithm of ``gamma(z + 1/2) / gamma(z) / sqrt(z)``."""


def _log_scale(df: Any) -> Any:
    """The logarithm of the density in the middle."""
    large = catalog.gt(df, 2 * LARGE)
    few, many = catalog.select(large, 1.0, 0.5 * df), catalog.select(large, 0.5 * df, LARGE)
    plain = catalog.lgamma(few + 0.5) - catalog.lgamma(few) - 0.5 * catalog.log(few)
    series = horner(1.0 / (many * many), _HALF_STEP)
    return catalog.select(large, series / many, plain) - 0.5 * math.log(2 * math.pi)


def _over_density(logs: list[Any]) -> Any:
    """A derivative of the density over it, by those of its logarithm."""
    orders = len(logs), 0
    return bell_polynomials({(k, 0): log for k, log in enumerate(logs, 1)}, orders)[orders]


def _density(df: Any, t: Any, order: int = 0) -> Any:
    """The derivative by `df` of the density, in core operations."""
    square = t * t
    log = catalog.log1p(square / df)
    density = catalog.exp(_log_scale(df) - 0.5 * (df + 1.0) * log)
    if not order:
        return density
    share = square / (df + square)
    excess = removable(share, 0.25, _EXCESS, lambda r: -catalog.log1p(-r) - r)
    large = catalog.gt(df, 2 * LARGE)
    few, many = catalog.select(large, 1.0, df), catalog.select(large, df, 2 * LARGE)

    def scale(m: int) -> Any:
        near = _scale_derivative(few, m, lambda n, a: catalog.polygamma(a, order=n))
        return catalog.select(large, _far_scale_derivative(many, m), near)

    return density * _over_density(_log_derivatives(df, share, excess, order, scale))


def _derivative(df: Any, t: Any, order: int) -> Any:
    special = host_special()
    return in_blocks(lambda df, t: _of_block(special, df, t, order), (df, t))


def _of_block(special: Any, df: Any, t: Any, order: int) -> Any:
    """Integrals from the middle, where the derivative vanishes, or over the tail."""
    out = np.where(df > 0, 0.0, np.nan)
    places = np.flatnonzero((df > 0) & np.isfinite(df) & np.isfinite(t) & (t != 0))
    if not places.size:
        return out
    df, t = df[places, None], t[places, None]
    size = np.abs(t)

    scale = -0.5 * np.log(df) - log_beta(special, 0.5 * df, np.full_like(df, 0.5))

    large = df > 2 * LARGE
    few, many = np.where(large, 1.0, df), np.where(large, df, 2 * LARGE)
    scales = [
        np.where(
            large,
            _far_scale_derivative(many, m),
            _scale_derivative(few, m, lambda n, a: polygamma(special, n, a)),
        )
        for m in range(1, order + 1)
    ]

    def integrand(log_t: Any) -> Any:
        """Times t, for integrals over its logarithm: the tail of few degrees of freedom leaves the range of numbers."""
        log_ratio = 2 * log_t - np.log(df)
        log, share = np.logaddexp(0.0, log_ratio), 1 / (1 + np.exp(-log_ratio))
        series = np.polynomial.polynomial.polyval(np.minimum(share, 0.25), _EXCESS)
        excess = np.where(share < 0.25, series, log - share)
        logs = _log_derivatives(df, share, excess, order, lambda m: scales[m - 1])
        return np.exp(scale - 0.5 * (df + 1) * log + log_t) * _over_density(logs)

    s, w = legendre(NODES)
    inner = np.minimum(size, 2 * np.sqrt(np.minimum(df, 1.0)))
    middle = size <= inner
    found = np.where(middle[:, 0], (integrand(np.log(inner * s)) / s) @ w, 0.0)
    if not middle.all():
        far = np.log(np.where(middle, 1.0, size))
        length = np.maximum(DECAY / df, 4.0) + 1.0
        tail = 0.0
        for start, end in pairwise(PANELS):
            v = length * (start + (end - start) * s)
            tail = tail + (integrand(far + v) @ w) * (length * (end - start))[:, 0]
        found = np.where(middle[:, 0], found, -tail)
    out[places] = np.sign(t[:, 0]) * found
    return out


stdtr_ = from_host(
    "stdtr",
    "df t",
    "A derivative of Student's distribution function by the degrees of freedom.",
    _derivative,
    {"df": "order"},
    refusal="stdtr has derivatives of order at least 0",
    value="stdtr",
    t=lambda df, t, order: _density(df, t, order),
)
stdtrit_ = from_scipy(
    "stdtrit",
    "df p",
    "Quantile of Student's distribution.",
    df=lambda df, out: -stdtr_(df, out, order=1) / _density(df, out),
    p=lambda df, out: 1.0 / _density(df, out),
)
