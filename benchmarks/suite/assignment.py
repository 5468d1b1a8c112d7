"""Writing parts of arrays; JAX returns a new one."""

from __future__ import annotations

from typing import Any

from suite.indexing import PLACES
from suite.rows import Call, normal, row


@row("numpy", "torch", repeats=100)
def element(xp: Any) -> Call:
    """x[3] = 1.0"""
    (x,) = normal(xp, 10)

    def assign() -> None:
        x[3] = 1.0

    return assign


@row("numpy", "torch", repeats=10)
def part(xp: Any) -> Call:
    """x[:, 1:-1] = y, 100 by 98"""
    x, y = normal(xp, (100, 100), (100, 98))

    def assign() -> None:
        x[:, 1:-1] = y

    return assign


@row("jax", sizes=(10, 10_000), repeats=5)
def set_at(xp: Any, n: int) -> Call:
    """x.at[i].set(y), {n} elements"""
    (x, y), i = normal(xp, n, n), xp.array_of(PLACES[:n] % n)
    return lambda: x.at[i].set(y)


@row("jax", sizes=(10, 10_000), repeats=5)
def add_at(xp: Any, n: int) -> Call:
    """x.at[i].add(y), {n} elements"""
    (x, y), i = normal(xp, n, n), xp.array_of(PLACES[:n] % n)
    return lambda: x.at[i].add(y)
