"""Reductions, cumulative sums, sorting and searching; eager."""

from __future__ import annotations

from typing import Any

import numpy as np

from suite.rows import Call, normal, row


@row("numpy", "jax", "torch", sizes=(1000, 1_000_000))
def total(xp: Any, n: int) -> Call:
    """x.sum(), {n} elements"""
    (x,) = normal(xp, n)
    return lambda: x.sum()


@row("numpy", "jax", "torch")
def sums_of_columns(xp: Any) -> Call:
    """x.sum(0), 1000 by 1000"""
    (x,) = normal(xp, (1000, 1000))
    return lambda: x.sum(0)


@row("numpy", "jax")
def maxima_of_rows(xp: Any) -> Call:
    """max(x, axis=1), 1000 by 100"""
    (x,), f = normal(xp, (1000, 100)), xp.max
    return lambda: f(x, axis=1)


@row("numpy", "jax")
def deviation(xp: Any) -> Call:
    """std(x, axis=0), 1000 by 100"""
    (x,), f = normal(xp, (1000, 100)), xp.std
    return lambda: f(x, axis=0)


@row("numpy", "jax", "torch")
def argmax(xp: Any) -> Call:
    """argmax(x), 100 000"""
    (x,), f = normal(xp, 100_000), xp.argmax
    return lambda: f(x)


@row("numpy", "jax", "torch")
def cumulative_sum(xp: Any) -> Call:
    """cumsum(x, 0), 100 000"""
    (x,), f = normal(xp, 100_000), xp.cumsum
    return lambda: f(x, 0)


@row("numpy", "jax", "torch")
def sort(xp: Any) -> Call:
    """sort(x), 10 000"""
    (x,), f = normal(xp, 10_000), xp.sort
    return (lambda: f(x)[0]) if xp.library == "torch" else (lambda: f(x))


@row("numpy", "jax", "torch")
def argsort(xp: Any) -> Call:
    """argsort(x), 10 000"""
    (x,), f = normal(xp, 10_000), xp.argsort
    return lambda: f(x)


@row("numpy", "jax", "torch")
def searchsorted(xp: Any) -> Call:
    """searchsorted(x, y), 10 000 in 10 000"""
    (y,), f = normal(xp, 10_000), xp.searchsorted
    x = xp.array_of(np.sort(np.random.default_rng(2).standard_normal(10_000)))
    return lambda: f(x, y)


@row("numpy", "jax")
def unique(xp: Any) -> Call:
    """unique_values(i), 10 000 integers below 1000"""
    i, f = xp.array_of(np.random.default_rng(2).integers(0, 1000, 10_000)), xp.unique_values
    return lambda: f(i)


@row("numpy")
def weighted_counts(xp: Any) -> Call:
    """bincount(i, x), 100 000 elements in 300 bins"""
    (x,), f = normal(xp, 100_000), xp.bincount
    i = xp.array_of(np.random.default_rng(1).integers(0, 300, 100_000))
    return lambda: f(i, x)
