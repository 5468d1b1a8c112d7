"""Derivatives of the regularized incomplete gamma functions by the shape parameter, of any order.

With u = log t, the k-th derivative of ``P(a, x)`` is the integral of the density of u times a polynomial: the complete
Bell polynomial of ``u - psi(a), -psi'(a), -psi''(a), ...``. Over all u it vanishes, so the integral is taken over the
side of x on which the polynomial's first order keeps its sign, and nothing cancels in the first derivative.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from tenferro_runtime.special._increments import LARGE, stirling_error
from tenferro_runtime.special._quadrature import DECAY, cut_off, in_blocks, laguerre, legendre, weighted_sum
from tenferro_runtime.special._recurrences import bell_polynomials
from tenferro_runtime.special._scipy import host_special

NODES: Final = 48
_MEAN: Final = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12)
"""Coefficients of even powers of ``1 / a`` in ``log(a) - 1 / (2 a) - psi(a)``."""


def shape_derivative(a: Any, x: Any, order: int) -> Any:
    """The derivative of ``P(a, x)`` by a, of an order of at least 1.

    Args:
        a: shapes, as a vector.
        x: arguments, as a vector of the same length.
        order: the order.
    """
    return in_blocks(lambda a, x: _derivative(a, x, order), (a, x))


def _derivative(a: Any, x: Any, order: int) -> Any:
    special = host_special()
    out = np.where((a > 0) & (x >= 0), 0.0, np.nan)  # the limits at x = 0 and at infinity
    inside = (a > 0) & np.isfinite(a) & (x > 0) & np.isfinite(x)
    places = np.flatnonzero(inside)
    if not places.size:
        return out
    a, x = a[places], x[places]
    z = centred_log(special, a, x)
    found, scale = np.empty_like(a), power_density(special, a, x)
    below = z < 0
    for part, integral in (
        (below & (a < 1), _small_below),
        (below & (a >= 1), _large_below),
        (~below & (x < 1), _small_above),
        (~below & (x >= 1), _large_above),
    ):
        if part.any():
            bell = _Bell(special, a[part, None], z[part, None], order)
            found[part] = integral(a[part, None], x[part, None], bell if integral in _BELOW else bell.shifted())
    out[places] = np.where(below, found, -found) * scale
    return out


class _Bell:
    """The polynomial, as a function of the distance of u from log x."""

    def __init__(self, special: Any, a: Any, z: Any, order: int) -> None:
        self.special, self.a, self.z, self.order, self.shift = special, a, z, order, False
        self.logs = self._higher_logs(a)

    def shifted(self) -> _Bell:
        """The same polynomial by way of ``gamma(a) = gamma(1 + a) / a``: small shapes have huge cumulants."""
        self.shift = bool((self.a < 1).any())
        if self.shift:
            self.z = self.z - 1 / self.a
            self.logs = self._higher_logs(self.a + 1)
        return self

    def _higher_logs(self, a: Any) -> dict[tuple[int, int], Any]:
        return {(m, 0): -self.special.polygamma(m - 1, a) for m in range(2, self.order + 1)}

    def __call__(self, distance: Any) -> Any:
        order = self.order
        values = bell_polynomials({(1, 0): self.z + distance, **self.logs}, (order, 0))
        return values[order, 0] + order / self.a * values[order - 1, 0] if self.shift else values[order, 0]


def _small_below(a: Any, x: Any, bell: _Bell) -> Any:
    """``exp(-t)`` is 1, for which the integral is exact, and the rest, which vanishes quickly."""
    s, w = laguerre(8 + bell.order)
    whole = weighted_sum(bell(-s / a), w, 1 / a)
    s, w = legendre(NODES)
    v = DECAY * s / (1 + a)
    rest = weighted_sum(np.exp(-a * v) * np.expm1(-x * np.exp(-v)) * bell(-v), w, DECAY / (1 + a))
    return (whole + rest) * np.exp(x[:, 0])  # the scale has exp(-x)


def _large_below(a: Any, x: Any, bell: _Bell) -> Any:
    with np.errstate(all="ignore"):
        near = np.sqrt(3 * DECAY / x)
        bound = np.minimum((DECAY + x) / a, np.where(near < 1, near, np.inf))
    width = cut_off(bound, lambda v: (a * v + x * np.expm1(-v), a - x * np.exp(-v)))
    s, w = legendre(NODES)
    v = width * s
    return weighted_sum(np.exp(-a * v - x * np.expm1(-v)) * bell(-v), w, width)


def _small_above(a: Any, x: Any, bell: _Bell) -> Any:
    """From x to 1 as below, and from 1 on."""
    to_one = -np.log(x)
    s, w = legendre(NODES)
    v = to_one * s
    whole = weighted_sum(np.exp(a * v) * bell(v), w, to_one)
    short = np.minimum(to_one, DECAY)
    v = to_one - short * s
    rest = weighted_sum(np.exp(a * v) * np.expm1(-np.exp(v - to_one)) * bell(v), w, short)
    width = cut_off(np.full_like(a, 6.0), lambda v: (np.exp(v) - a * v, np.exp(v) - a))
    v = width * s
    beyond = weighted_sum(np.exp(a * (v + to_one) - np.exp(v)) * bell(v + to_one), w, width)
    return (whole + rest + beyond) * np.exp(x[:, 0])


def _large_above(a: Any, x: Any, bell: _Bell) -> Any:
    bound = (0.5 + np.sqrt(0.25 + 2 * DECAY * x)) / x
    width = cut_off(bound, lambda v: (x * np.expm1(v) - a * v, x * np.exp(v) - a))
    s, w = legendre(NODES)
    v = width * s
    return weighted_sum(np.exp(a * v - x * np.expm1(v)) * bell(v), w, width)


_BELOW: Final = (_small_below, _large_below)


def centred_log(special: Any, a: Any, x: Any) -> Any:
    """``log(x) - psi(a)`` to full relative precision also where both are large."""
    large = a > LARGE
    near = np.abs(x - a) < a / 2
    ratio = np.where(near, np.log1p(np.where(near, x - a, 0) / a), np.log(x) - np.log(a))
    power = 1 / np.where(large, a, LARGE) ** 2
    mean = 1 / (2 * a) + power * np.polynomial.polynomial.polyval(power, _MEAN)
    return np.where(large, ratio + mean, np.log(x) - special.psi(a))


def power_density(special: Any, a: Any, x: Any) -> Any:
    """``x**a exp(-x) / gamma(a)``, after Loader, "Fast and accurate computation of binomial probabilities", 2000."""
    large = a > LARGE
    plain = np.exp(a * np.log(x) - x - special.gammaln(a))
    b = np.where(large, a, LARGE)
    saddle = np.exp(-stirling_error(b) - deviance(b, x)) * np.sqrt(b / (2 * np.pi))
    return np.where(large, saddle, plain)


def deviance(a: Any, x: Any) -> Any:
    """``x - a - a log(x / a)``, accurate near 0."""
    gap = x - a
    v = gap / (x + a)
    near = np.abs(v) < 0.1
    square = np.where(near, v * v, 0.0)
    series = np.polynomial.polynomial.polyval(square, [1 / (2 * j + 1) for j in range(1, 11)])
    # a log(x / a) is 2 a atanh(v).
    return np.where(near, gap * v - 2 * a * v * square * series, gap - a * np.log(x / a))
