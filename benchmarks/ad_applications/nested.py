"""Derivatives of what is found by derivatives: a saddle point, and a particle that is steered home."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ad_applications.record import Application, Library


def _lowest(xp: Library, gradient: Callable[..., Any], f: Callable[[Any], Any], x: Any) -> Any:
    """Where a function is lowest: descent along its gradient, with steps that grow while they help."""

    def step(state: Any) -> Any:
        x, value, slope, rate, good = state
        trial = x - rate * slope
        found = f(trial)
        better = found < value
        kept = xp.where(better, trial, x)
        rate = xp.where(better, xp.where(good > 9, 2 * rate, rate), rate / 2)
        good = xp.where(better, xp.where(good > 9, 0, good + 1), 0)
        return kept, xp.where(better, found, value), gradient(f)(kept), rate, good

    def goes_on(state: Any) -> Any:
        return (xp.sum(state[2] ** 2) > 1e-10) & (state[3] > 1e-10)

    return xp.while_loop(goes_on, step, (x, f(x), gradient(f)(x), 1e-2, 0))[0]


def _forward(xp: Library) -> Callable[..., Any]:
    return lambda f: lambda x: xp.vmap(lambda e: xp.jvp(f, (x,), (e,))[1])(xp.eye(x.shape[0]))


def saddle(xp: Library) -> Callable[..., Any]:
    """The lowest worst case: the inner search runs inside of the gradient of the outer one; forward over reverse."""

    def payoff(x: Any, y: Any) -> Any:
        return xp.sum(x**2) - xp.sum(y**2)

    def task(start: Any) -> Any:
        def worst(x: Any) -> Any:
            return payoff(x, _lowest(xp, xp.grad, lambda y: -payoff(x, y), start))

        x = _lowest(xp, _forward(xp), worst, start)
        y = _lowest(xp, xp.grad, lambda y: -payoff(x, y), start)
        return x, y

    return task


def particle(xp: Library) -> Callable[..., Any]:
    """Where a charged particle lands as a function of a control, and the control that brings it home, by Newton."""

    def landing(control: Any) -> Any:
        charges = xp.stack([xp.stack([0 * control + 10, 10 - control]), xp.stack([0 * control + 10, 0 * control])])

        def potential(x: Any) -> Any:
            return xp.sum(1 / xp.sqrt(xp.sum((x - charges) ** 2, axis=1)))

        def pull(x: Any) -> Any:
            return -_forward(xp)(potential)(x)

        h = 1e-1

        def step(state: Any) -> Any:
            x, v = state
            return x + h * v, v + h * pull(x)

        def above(state: Any) -> Any:
            return state[0][1] + h * state[1][1] > 0

        x, v = xp.while_loop(
            above, step, (xp.stack([0 * control, 0 * control + 8]), xp.stack([0 * control + 0.75, 0 * control]))
        )
        fall = -x[1] / v[1]
        return (x + fall * v)[0] ** 2

    def task(start: Any) -> Any:
        def newton(state: Any) -> Any:
            u, _, k = state
            slope = lambda u: xp.jvp(landing, (u,), (xp.ones_like(u),))[1]
            first, second = xp.jvp(slope, (u,), (xp.ones_like(u),))
            change = first / second
            return u - change, xp.abs(change), k + 1

        goes_on = lambda state: (state[1] > 1e-9) & (state[2] < 30)
        return xp.while_loop(goes_on, newton, (start, xp.ones_like(start), 0))[0]

    return task


APPLICATIONS = [
    Application("saddle point", saddle, lambda n, random: (np.array([1.0, 1.0]),), (2, 2)),
    Application("particle", particle, lambda n, random: (np.asarray(0.0),), (1, 1)),
]
