"""Derivatives of the zeta functions by the exponent: the formula of Euler and Maclaurin in Taylor arithmetic.

A series in the exponent is a list of Taylor coefficients, arrays over the elements.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from tenferro_runtime.special._recurrences import BERNOULLI, exponential
from tenferro_runtime.special._scipy import host_special

TERMS: Final = 14
"""Terms that are summed one by one."""

Series = list[Any]


def _times(x: Series, y: Series) -> Series:
    return [sum(x[i] * y[k - i] for i in range(k + 1)) for k in range(len(x))]


def _power(base: Any, s: Any, order: int) -> Series:
    """``base ** -s``."""
    log = np.log(base)
    term = base**-s
    series = [term]
    for k in range(1, order + 1):
        term = term * -log / k
        series.append(term)
    return series


def _line(at: Any, slope: float, order: int) -> Series:
    return [at, slope, *[0.0] * order][: order + 1]


def _reciprocal(at: Any, order: int) -> Series:
    """``1 / s``."""
    return [(-1) ** k * at ** -(k + 1.0) for k in range(order + 1)]


def _series(s: Any, q: Any, order: int) -> Series:
    """Taylor coefficients of the continued function of Hurwitz."""
    total = [np.zeros_like(s) for _ in range(order + 1)]
    for n in range(TERMS):
        total = [x + y for x, y in zip(total, _power(q + n, s, order), strict=True)]
    base = q + TERMS
    tail = _power(base, s, order)
    integral = [base * x for x in _times(tail, _reciprocal(s - 1, order))]
    total = [x + y + z / 2 for x, y, z in zip(total, integral, tail, strict=True)]
    rising = [x / base for x in _times(tail, _line(s, 1.0, order))]
    for j, number in enumerate(BERNOULLI, 1):
        factor = number / math.factorial(2 * j)
        total = [x + factor * y for x, y in zip(total, rising, strict=True)]
        for step in (2 * j - 1, 2 * j):
            rising = [x / base for x in _times(rising, _line(s + step, 1.0, order))]
    return total


def hurwitz(s: Any, q: Any, order: int) -> Any:
    """The derivative of ``zeta(s, q)`` by s, for s above 1 and positive q; elsewhere NaN, as at noninteger powers."""
    valid = (s > 1) & (q > 0)
    found = _series(np.where(valid, s, 2.0), np.where(valid, q, 1.0), order)[order] * math.factorial(order)
    return np.where(valid, found, np.nan)


def riemann(s: Any, order: int) -> Any:
    """The derivative of ``zeta(s)``."""
    left = s < 0
    out = _series(np.where(left, 2.0, s), np.ones_like(s), order)[order]
    if left.any():
        out = np.where(left, _reflected(np.where(left, s, -1.0), order)[order], out)
    return np.where(s == np.inf, 0.0, out * math.factorial(order))


def _reflected(s: Any, order: int) -> Series:
    """``zeta(s) = 2 (2 pi) ** (s - 1) sin(pi s / 2) gamma(1 - s) zeta(1 - s)`` (DLMF 25.4.1)."""
    special = host_special()
    half = np.pi / 2
    nearest = np.round(s / 2)
    angle, sign = (s - 2 * nearest) * half, 1 - 2 * (nearest % 2)
    waves = (np.sin(angle), np.cos(angle), -np.sin(angle), -np.cos(angle))
    sine = [sign * waves[k % 4] * half**k / math.factorial(k) for k in range(order + 1)]
    power = [x * 2 for x in _power(np.full_like(s, 1 / (2 * np.pi)), s - 1, order)]
    logs = [(-1) ** k * special.polygamma(k - 1, 1 - s) / math.factorial(k - 1) for k in range(1, order + 1)]
    gamma = exponential(special.gamma(1 - s), logs)
    flipped = _series(1 - s, np.ones_like(s), order)
    zeta = [(-1) ** k * x for k, x in enumerate(flipped)]
    return _times(_times(power, sine), _times(gamma, zeta))
