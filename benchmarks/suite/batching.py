"""Functions of one lane mapped over all of them, compiled."""

from __future__ import annotations

from typing import Any

import numpy as np

from suite.rows import Call, normal, row


@row("jax")
def solves(xp: Any) -> Call:
    """vmap of a solve, 1000 systems of 4"""
    rng = np.random.default_rng(0)
    a, b = xp.array_of(rng.normal(size=(1000, 4, 4)) + 4 * np.eye(4)), xp.array_of(rng.normal(size=(1000, 4)))
    f = xp.compiled(xp.vmap(lambda a, b: xp.linalg.solve(a, b)))
    return lambda: f(a, b)


@row("jax")
def uneven_loops(xp: Any) -> Call:
    """vmap of a while loop, 200 lanes of 1 to 100 steps"""
    counts = xp.array_of(np.random.default_rng(0).integers(1, 100, 200))

    def solve(n: Any) -> Any:
        return xp.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, 0.5 * xp.sin(c[1]) + 1.0), (0 * n, 0.5))[1]

    f = xp.compiled(xp.vmap(solve))
    return lambda: f(counts)


@row("jax", repeats=5)
def eager_layer(xp: Any) -> Call:
    """vmap of tanh(m @ x) over 32 vectors of 16, eager"""
    m, x = normal(xp, (16, 16), (32, 16), scale=0.3)
    return lambda: xp.vmap(lambda x: xp.tanh(m @ x))(x)
