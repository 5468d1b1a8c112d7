"""Derivatives through time, and of determinants."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ad_applications.record import Application, Library

STEPS = 100


def equation(xp: Library) -> Callable[..., Any]:
    """Gradient of the end of a chain of equations, integrated by Runge and Kutta's method, by its rates."""

    def end(rates: Any) -> Any:
        def slope(y: Any) -> Any:
            return rates * y - y**2 + xp.concat([xp.zeros(1), y[:-1]])

        def step(_: Any, y: Any) -> Any:
            h = 1.0 / STEPS
            a = slope(y)
            b = slope(y + h / 2 * a)
            c = slope(y + h / 2 * b)
            return y + h / 6 * (a + 2 * b + 2 * c + slope(y + h * c))

        return xp.sum(xp.fori_loop(0, STEPS, step, xp.ones_like(rates))[-1:])

    return xp.grad(end)


def determinant(xp: Library) -> Callable[..., Any]:
    """Gradient of a determinant that is computed by elimination with pivots, one column after the other."""

    def value(a: Any) -> Any:
        n = a.shape[0]

        def column(k: Any, state: Any) -> Any:
            a, det = state
            below = xp.where(xp.arange(n) < k, -1.0, xp.abs(a[:, k]))
            p = xp.argmax(below)
            pivot, first = a[p], a[k]
            a = a.at[p].set(first).at[k].set(pivot)
            det = det * xp.where(p == k, 1.0, -1.0) * pivot[k]
            factors = xp.where(xp.arange(n) > k, a[:, k] / pivot[k], 0.0)
            return a - factors[:, None] * pivot[None, :], det

        return xp.fori_loop(0, n, column, (a, 1.0))[1]

    return xp.grad(value)


APPLICATIONS = [
    Application("equation", equation, lambda n, random: (random.uniform(0, 1, n),), (3, 50)),
    Application("determinant", determinant, lambda n, random: (random.normal(size=(n, n)),), (4, 20)),
]
