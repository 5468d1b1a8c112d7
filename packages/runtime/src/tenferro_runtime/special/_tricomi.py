"""Tricomi's function and its derivatives by both parameters, by an integral.

Values come from the trapezoidal rule on ``U(a, b, x) gamma(a) = int exp(-x t) t**(a-1) (1+t)**(b-a-1) dt`` for
``a >= 1``, whose integrand is positive, and go down in `a` by the recurrence of three terms, in which `U` dominates.
Derivatives by the parameters are carried along as power series: logarithms in the integrand, and products in the
recurrence.
"""

from __future__ import annotations

from math import factorial
from typing import Any

import numpy as np

from tenferro_runtime.special._quadrature import in_blocks
from tenferro_runtime.special._recurrences import exponential
from tenferro_runtime.special._scipy import host_special

__all__ = ["tricomi"]

_NODES = 192
_BLOCK = 2048
"""Elements whose integrands are held at once."""

Series = dict[tuple[int, int], Any]
"""Coefficients of a power series in changes of `a` and `b`, by their powers."""


STEPS_MAX = 1e4
"""Largest -a for which the recurrence in a is followed."""


def tricomi(a: Any, b: Any, x: Any, orders: tuple[int, int]) -> Any:
    """The derivative of the given orders by `a` and `b`, for positive `x`, of arrays with one axis."""
    found = in_blocks(lambda a, b, x: _descended(a, b, x, orders), (a, b, x), _BLOCK)
    return found * (factorial(orders[0]) * factorial(orders[1]))


def _descended(a: Any, b: Any, x: Any, orders: tuple[int, int]) -> Any:
    # So many steps would lose all digits; and for NaN and infinities there is no number of steps.
    inside = np.isfinite(b) & np.isfinite(x) & (a > -STEPS_MAX) & np.isfinite(a)
    a = np.where(inside, a, np.nan)
    steps = np.where(inside, np.maximum(np.ceil(1.0 - a), 0.0), 0.0)
    value, above = _integral(a + steps, b, x, orders), _integral(a + steps + 1.0, b, x, orders)
    for i in range(int(steps.max(initial=0.0))):
        below = _below(value, above, a + steps - i, b, x)
        more = i < steps
        above = {key: np.where(more, value[key], above[key]) for key in value}
        value = {key: np.where(more, below[key], value[key]) for key in value}
    return value[orders]


def _below(value: Series, above: Series, a: Any, b: Any, x: Any) -> Series:
    """``U(a-1) = (x + 2a - b) U(a) - a (a - b + 1) U(a+1)``, with the powers of changes of `a` and `b`."""
    first = {(0, 0): x + 2.0 * a - b, (1, 0): 2.0, (0, 1): -1.0}
    second = {(0, 0): a * (a - b + 1.0), (1, 0): 2.0 * a - b + 1.0, (0, 1): -a, (2, 0): 1.0, (1, 1): -1.0}
    return {key: _coefficient(first, value, key) - _coefficient(second, above, key) for key in value}


def _coefficient(p: Series, q: Series, key: tuple[int, int]) -> Any:
    """A coefficient of the product of two series, of which `q` has all up to some."""
    places = [(i, j) for i, j in p if i <= key[0] and j <= key[1]]
    return sum(p[i, j] * q[key[0] - i, key[1] - j] for i, j in places)


def _integral(a: Any, b: Any, x: Any, orders: tuple[int, int]) -> Series:
    """The series of `U` for ``a >= 1``: of the integral, times that of ``gamma(a) / gamma(a + change)``."""
    special = host_special()
    last = np.log(800.0 / x)
    spacing = (np.maximum(last, 0.0) + 5.0) / _NODES
    u = np.arange(_NODES + 1.0)[:, None] * spacing - 5.0
    logarithm = u - np.exp(-u)  # of t: it falls doubly exponentially
    grown = np.log1p(np.exp(logarithm))
    exponent = a * logarithm - x * np.exp(logarithm) + (b - a - 1.0) * grown - special.gammaln(a)
    weight = np.exp(exponent) * (1.0 + np.exp(-u)) * spacing
    ratio = exponential(np.ones_like(a), [-special.polygamma(m, a) / factorial(m) for m in range(orders[0])])
    series: Series = {}
    for j in range(orders[1] + 1):
        moments = [
            np.sum(weight * (logarithm - grown) ** i * grown**j, axis=0) / (factorial(i) * factorial(j))
            for i in range(orders[0] + 1)
        ]
        for i in range(orders[0] + 1):
            series[i, j] = sum(ratio[i - p] * moments[p] for p in range(i + 1))
    return series
