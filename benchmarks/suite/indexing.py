"""Reading parts of arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from suite.rows import Call, normal, row

PLACES = np.random.default_rng(1).integers(0, 10_000, 10_000)


@row("numpy", "jax", "torch", repeats=100)
def element(xp: Any) -> Call:
    """x[3]"""
    (x,) = normal(xp, 10)
    return lambda: x[3]


@row("numpy", "jax", "torch", repeats=100)
def part(xp: Any) -> Call:
    """x[1:-1]"""
    (x,) = normal(xp, 10)
    return lambda: x[1:-1]


@row("numpy", "jax", "torch", repeats=100)
def column(xp: Any) -> Call:
    """m[:, 1], 5 by 5"""
    (m,) = normal(xp, (5, 5))
    return lambda: m[:, 1]


@row("numpy", "jax", "torch", sizes=(10, 10_000), repeats=10)
def by_integers(xp: Any, n: int) -> Call:
    """x[i], {n} elements"""
    (x,), i = normal(xp, n), xp.array_of(PLACES[:n] % n)
    return lambda: x[i]


@row("numpy", "jax", "torch", repeats=5)
def rows_and_columns(xp: Any) -> Call:
    """m[i, j], 10 000 of 100 by 100"""
    (m,), i, j = normal(xp, (100, 100)), xp.array_of(PLACES % 100), xp.array_of(PLACES[::-1] % 100)
    return lambda: m[i, j]


@row("numpy", "jax", "torch", repeats=5)
def by_mask(xp: Any) -> Call:
    """x[x > 0], 10 000"""
    (x,) = normal(xp, 10_000)
    mask = x > 0.0
    return lambda: x[mask]


@row("numpy", "jax", "torch", repeats=5)
def concatenated(xp: Any) -> Call:
    """concat of 10 arrays of 1000"""
    x, join = normal(xp, *[1000] * 10), xp.concat
    return lambda: join(x)


@row("numpy", "jax", repeats=5)
def padded(xp: Any) -> Call:
    """pad of 100 by 100 by one row and column on each side"""
    (x,), pad = normal(xp, (100, 100)), xp.pad
    return lambda: pad(x, 1)
