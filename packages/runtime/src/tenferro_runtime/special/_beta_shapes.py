"""Derivatives of the regularized incomplete beta function by its two shape parameters, of any orders.

With u = log(t / (1 - t)), they are integrals of the density of u times a polynomial in ``log t`` and ``log(1 - t)``:
the complete Bell polynomial of these, less their means, and of their joint cumulants with a minus sign. Over all u it
vanishes, so the integral is taken over one side of x: the lower one where u is below its mean, else the upper one,
which is the lower one of the function with ``t`` and ``1 - t`` exchanged.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from tenferro_runtime.special._gamma_shape import deviance
from tenferro_runtime.special._increments import LARGE, increment, log_beta, polygamma, stirling_error
from tenferro_runtime.special._quadrature import DECAY, cut_off, in_blocks, laguerre, legendre, weighted_sum
from tenferro_runtime.special._recurrences import bell_polynomials
from tenferro_runtime.special._scipy import host_special

NODES: Final = 56
PLATEAU: Final = 0.5
"""For ``1 - t`` below this over a, powers of t are nearly 1."""


def shapes_derivative(a: Any, b: Any, x: Any, first: int, second: int) -> Any:
    """The derivative of ``I_x(a, b)`` by a and b.

    Args:
        a: first shapes, as a vector.
        b: second shapes, as a vector of the same length.
        x: arguments, as a vector of the same length.
        first, second: the orders by a and by b, not both 0.
    """
    return in_blocks(lambda a, b, x: _derivative(a, b, x, (first, second)), (a, b, x))


def _derivative(a: Any, b: Any, x: Any, orders: tuple[int, int]) -> Any:
    special = host_special()
    valid = (a > 0) & (b > 0) & (x >= 0) & (x <= 1)
    out = np.where(valid, 0.0, np.nan)  # the limits at the ends
    places = np.flatnonzero(valid & np.isfinite(a) & np.isfinite(b) & (x > 0) & (x < 1))
    if not places.size:
        return out
    a, b, x = a[places], b[places], x[places]
    y = 1 - x
    lower = np.log(x) - np.log(y) < special.psi(a) - special.psi(b)
    found = np.empty_like(a)
    if lower.any():
        found[lower] = _lower(special, a[lower], b[lower], x[lower], y[lower], orders)
    if not lower.all():
        upper = ~lower
        found[upper] = -_lower(special, b[upper], a[upper], y[upper], x[upper], orders[::-1])
    out[places] = found
    return out


def _lower(special: Any, a: Any, b: Any, x: Any, y: Any, orders: tuple[int, int]) -> Any:
    """The integral from 0 to x, where y is 1 - x."""
    scale = _density(special, a, b, x, y)
    bell = _JointBell(special, a[:, None], b[:, None], orders)
    found = np.zeros_like(a)
    far = (b < 1) & (y < PLATEAU / np.maximum(a, 1))
    for part, integral in (((a < 1) & ~far, _small), ((a >= 1) & ~far, _large), (far, _with_plateau)):
        if part.any():
            found[part] = integral(a[part, None], b[part, None], x[part, None], y[part, None], bell.of(part))
    return found * scale


class _JointBell:
    """The polynomial, as a function of ``log t`` and ``log(1 - t)``."""

    def __init__(self, special: Any, a: Any, b: Any, orders: tuple[int, int]) -> None:
        self.orders = orders
        self.means = (-increment(special, 0, a, b), -increment(special, 0, b, a))
        self.logs: dict[tuple[int, int], Any] = {}
        for i in range(orders[0] + 1):
            for j in range(orders[1] + 1):
                n = i + j - 1
                if n > 0:
                    self.logs[i, j] = (
                        increment(special, n, a, b)
                        if j == 0
                        else increment(special, n, b, a)
                        if i == 0
                        else polygamma(special, n, a + b)
                    )

    def of(self, part: Any) -> _JointBell:
        """The same of some elements."""
        less = object.__new__(_JointBell)
        less.orders = self.orders
        less.means = (self.means[0][part], self.means[1][part])
        less.logs = {key: c[part] for key, c in self.logs.items()}
        return less

    def __call__(self, log_t: Any, log_rest: Any) -> Any:
        first = {(1, 0): log_t - self.means[0], (0, 1): log_rest - self.means[1]}
        return bell_polynomials({**first, **self.logs}, self.orders)[self.orders]


def _small(a: Any, b: Any, x: Any, y: Any, bell: _JointBell) -> Any:
    """``1 - t`` is 1, for which the integral is exact, and the rest, which vanishes quickly."""
    log_x = np.log(x)
    s, w = laguerre(8 + sum(bell.orders))
    whole = weighted_sum(np.broadcast_to(bell(log_x - s / a, 0.0), (len(a), len(s))), w, 1 / a)
    s, w = legendre(NODES)
    width = DECAY / (1 + a)
    v = width * s
    log_t = log_x - v
    log_rest = np.log1p(-np.exp(log_t))
    rest = np.exp((b - 1) * log_rest) * bell(log_t, log_rest) - bell(log_t, 0.0)
    return (whole + weighted_sum(np.exp(-a * v) * rest, w, width)) * y[:, 0] ** -b[:, 0]


def _large(a: Any, b: Any, x: Any, y: Any, bell: _JointBell) -> Any:
    """In the variable u, whose exponent is convex."""
    both, log_x, log_y = a + b, np.log(x), np.log(y)
    at = log_x - log_y

    def exponent(v: Any) -> tuple[Any, Any]:
        # t(u) / x is exp(-v) times (1 - t) / (1 - x), and (1 - t) / (1 - x) is 1 / (y + x exp(-v)).
        rest = -np.log1p(x * np.expm1(-v))
        return a * v - both * rest, a - both * x * np.exp(-v + rest)

    curvature = both * x * y / np.e
    near = (0.5 + np.sqrt(0.25 + 2 * DECAY * curvature)) / curvature
    bound = np.minimum((DECAY - both * log_y) / a, np.where(near < 1, near, np.inf))
    width = cut_off(bound, exponent, 8)
    s, w = legendre(NODES)
    v = width * s
    u = at - v
    log_rest = -np.logaddexp(0.0, u)
    return weighted_sum(np.exp(-exponent(v)[0]) * bell(u + log_rest, log_rest), w, width)


def _with_plateau(a: Any, b: Any, x: Any, y: Any, bell: _JointBell) -> Any:
    """Up to where powers of t are nearly 1, and from there on in the variable ``log(1 - t)``."""
    log_x, log_y = np.log1p(-y), np.log(y)
    edge = PLATEAU / np.maximum(a, 1)
    rest_of_scale = a * (np.log1p(-edge) - log_x) + b * (np.log(edge) - log_y)
    up_to = _either(a, b, 1 - edge, edge, bell) * np.exp(rest_of_scale[:, 0])
    length = np.log(edge) - log_y
    s, w = legendre(NODES)
    v = length * s
    whole = weighted_sum(np.exp(b * v) * bell(0.0, log_y + v), w, length)
    short = np.minimum(length, DECAY)
    v = length - short * s
    log_rest = log_y + v
    log_t = np.log1p(-np.exp(log_rest))
    rest = np.exp((a - 1) * log_t) * bell(log_t, log_rest) - bell(0.0, log_rest)
    beyond = whole + weighted_sum(np.exp(b * v) * rest, w, short)
    return up_to + beyond * np.exp(-(a * log_x)[:, 0])


def _either(a: Any, b: Any, x: Any, y: Any, bell: _JointBell) -> Any:
    found = np.empty(len(a))
    small = a[:, 0] < 1
    for part, integral in ((small, _small), (~small, _large)):
        if part.any():
            found[part] = integral(a[part], b[part], x[part], y[part], bell.of(part))
    return found


def _density(special: Any, a: Any, b: Any, x: Any, y: Any) -> Any:
    """``x**a (1 - x)**b / B(a, b)``, where both are large by Loader's deviances."""
    large = (a > LARGE) & (b > LARGE)
    plain = np.exp(a * np.log(x) + b * np.log(y) - log_beta(special, a, b))
    p, q = np.where(large, a, LARGE), np.where(large, b, LARGE)
    n = p + q
    error = stirling_error(n) - stirling_error(p) - stirling_error(q) - deviance(p, n * x) - deviance(q, n * y)
    return np.where(large, np.exp(error) * np.sqrt(p * q / (2 * np.pi * n)), plain)
