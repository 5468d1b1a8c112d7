"""Derivatives of analytic functions from their values around a point.

A function that SciPy computes accurately to `eps` gives its derivative of order k accurately to about
``eps * k! * (10 / radius)**k`` on a segment of the real line, and to ``eps * k! * (4 / radius)**k`` on a circle in the
complex plane, relative to its size there; no cancellation grows as the step does not shrink. The function must be
analytic in a disc of three times the radius around the segment, or of four times the radius around the circle.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from math import factorial
from typing import Any

import numpy as np

__all__ = ["around", "circled", "sampled", "weights"]

_NODES = 24
"""Points on a segment: with a pole at three times the radius, the interpolant is exact to ``5.8**-24``."""

_ANGLES = 24
"""Points on a circle, of which conjugate ones are left out: with a pole at four times the radius, ``4**-24``."""


@lru_cache(maxsize=64)
def weights(order: int, nodes: int = _NODES) -> tuple[Any, Any]:
    """Chebyshev nodes in (-1, 1) and the weights of the derivative at 0 of the polynomial through the values there."""
    angles = (2 * np.arange(nodes) + 1) * np.pi / (2 * nodes)
    total = np.zeros(nodes)
    for degree in range(order, nodes):
        series = np.zeros(degree + 1)
        series[degree] = 1.0
        slope = np.polynomial.chebyshev.chebval(0.0, np.polynomial.chebyshev.chebder(series, order))
        total += (1 if degree == 0 else 2) / nodes * slope * np.cos(degree * angles)
    return np.cos(angles), total


def sampled(f: Callable[[Any], Any], x: Any, radius: Any, order: int) -> Any:
    """The derivative of `f` of the given order at `x`, from values at real points up to `radius` away."""
    if order == 0:
        return f(x)
    total: Any = 0.0
    for node, weight in zip(*weights(order), strict=True):
        total = total + weight * f(x + radius * node)
    return total / radius**order


def circled(f: Callable[[Any], Any], x: Any, radius: Any, order: int) -> Any:
    """The derivative of `f` of the given order at `x`, from values on a circle in the complex plane.

    For real `x`, `f` is taken to be real on the real line, and only the upper half of the circle is visited.
    """
    if order == 0:
        return f(x)
    half = not np.iscomplexobj(x)
    total: Any = 0.0
    for k in range(_ANGLES // 2 if half else _ANGLES):
        turn = np.exp(2j * np.pi * (k + 0.5) / _ANGLES)
        value = f(x + radius * turn) * turn**-order
        total = total + (2 * value.real if half else value)
    return total * (factorial(order) / _ANGLES) / radius**order


def around(f: Callable[..., Any], at: tuple[Any, ...], radii: tuple[Any, ...], orders: tuple[int, ...]) -> Any:
    """A mixed partial derivative of `f` from values at real points."""
    for i, order in enumerate(orders):
        if order:
            rest = (*orders[:i], 0, *orders[i + 1 :])
            return sampled(lambda z: around(f, (*at[:i], z, *at[i + 1 :]), radii, rest), at[i], radii[i], order)  # noqa: B023
    return f(*at)
