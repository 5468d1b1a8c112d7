"""Eager calls on small arrays: what counts is the way to the arithmetic."""

from __future__ import annotations

from typing import Any

import numpy as np

from suite.rows import Call, normal, row

PAIRS = 25


def chain(x: Any, b: Any, c: Any) -> Any:
    """50 operations."""
    for _ in range(PAIRS):
        x = x * b + c
    return x


@row("numpy", "jax", "torch", repeats=100)
def add(xp: Any) -> Call:
    """x + y, 8 numbers"""
    x, y = normal(xp, 8, 8)
    return lambda: x + y


@row("numpy", "jax", "torch", repeats=100)
def times_number(xp: Any) -> Call:
    """2.0 * x, 8 numbers"""
    (x,) = normal(xp, 8)
    return lambda: 2.0 * x


@row("numpy", "jax", "torch", repeats=100)
def row_times_matrix(xp: Any) -> Call:
    """(4, 8) * (8), broadcast"""
    m, x = normal(xp, (4, 8), 8)
    return lambda: m * x


@row("numpy", "jax", "torch", repeats=100)
def tanh(xp: Any) -> Call:
    """tanh(x), 8 numbers"""
    (x,), f = normal(xp, 8), xp.tanh
    return lambda: f(x)


@row("numpy", "jax", "torch", repeats=100)
def matmul(xp: Any) -> Call:
    """a @ b, 4 by 4"""
    a, b = normal(xp, (4, 4), (4, 4))
    return lambda: a @ b


@row("numpy", "jax", "torch", repeats=100)
def matmul_stack(xp: Any) -> Call:
    """a @ b, 64 of 4 by 4"""
    a, b = normal(xp, (64, 4, 4), (64, 4, 4))
    return lambda: a @ b


@row("numpy", "jax", "torch", repeats=100)
def total(xp: Any) -> Call:
    """x.sum(), 8 numbers"""
    (x,) = normal(xp, 8)
    return lambda: x.sum()


@row("numpy", "jax", "torch", repeats=100)
def where(xp: Any) -> Call:
    """where(x > 0, x, y), 8 numbers"""
    (x, y), f = normal(xp, 8, 8), xp.where
    return lambda: f(x > 0.0, x, y)


@row("numpy", "jax", "torch", repeats=100)
def reshape(xp: Any) -> Call:
    """x.reshape(2, 4).T, views"""
    (x,) = normal(xp, 8)
    return lambda: x.reshape(2, 4).T


@row("jax", "torch", repeats=100)
def from_numpy(xp: Any) -> Call:
    """an array of 8 numbers from NumPy and back"""
    x, enter = np.linspace(0.0, 1.0, 8), xp.array_of
    return lambda: np.asarray(enter(x))


@row("numpy", "jax", "torch", repeats=5)
def chain_of_50(xp: Any) -> Call:
    """50 operations x * b + c, 8 numbers"""
    x, b, c = (xp.array_of(a) for a in (np.linspace(0.9, 1.1, 8), np.linspace(0.9, 1.01, 8), np.full(8, 0.1)))
    return lambda: chain(x, b, c)
