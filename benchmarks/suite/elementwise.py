"""Element-wise programs with broadcasts and reductions, compiled: fused into loops."""

from __future__ import annotations

from typing import Any

from array_programs import CASES, thirty

from suite.rows import Call, normal, row


def compiled(xp: Any, name: str, n: int) -> Call:
    """The call of a program at a number of elements."""
    case = CASES[name]
    f, arguments = xp.compiled(case.make(xp)), normal(xp, *case.shapes(n))
    return lambda: f(*arguments)


@row("numpy", "jax", "torch", sizes=(100, 100_000))
def thirty_five_operations(xp: Any, n: int) -> Call:
    """35 element-wise operations, 13 transcendental, {n} elements"""
    f, (x, y) = xp.compiled(thirty(xp)), normal(xp, n, n)
    return lambda: f(x, y)


@row("numpy", "jax", "torch", counted=False)
def scaled_sum(xp: Any) -> Call:
    """2 * x + y, 1 000 000"""
    return compiled(xp, "a*x+y", 1_000_000)


@row("numpy", "jax", "torch")
def softmax_of_rows(xp: Any) -> Call:
    """softmax of 1000 rows of 100"""
    return compiled(xp, "softmax of rows", 100_000)


@row("numpy", "jax", "torch", counted=False)
def normalised_columns(xp: Any) -> Call:
    """100 columns of 1000, mean 0 and variance 1"""
    return compiled(xp, "normalised columns", 100_000)


@row("numpy", "jax", "torch", counted=False)
def distances(xp: Any) -> Call:
    """squared distances of 158 and 158 points in 4 dimensions"""
    return compiled(xp, "distances", 100_000)


@row("numpy", "jax", "torch")
def sum_beside_a_row(xp: Any) -> Call:
    """sum of exp(-x * x) * r + tanh(x) / 2, 1000 by 100"""
    return compiled(xp, "sum beside a row", 100_000)


@row("numpy", "jax", "torch", counted=False)
def symmetric_part(xp: Any) -> Call:
    """(x + x.T) / 2, 316 by 316"""
    return compiled(xp, "a matrix and its transpose", 100_000)
