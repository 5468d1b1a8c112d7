"""Linear algebra, eager: single matrices and stacks of small ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from suite.rows import Call, row


def matrices(xp: Any, *shape: int) -> Any:
    """Matrices far from singular ones."""
    return xp.array_of(np.random.default_rng(0).normal(size=shape) + 2.0 * shape[-1] ** 0.5 * np.eye(shape[-1]))


def symmetric(xp: Any, *shape: int) -> Any:
    """Positive definite matrices."""
    x = np.random.default_rng(0).normal(size=shape)
    return xp.array_of(x @ np.swapaxes(x, -1, -2) + shape[-1] * np.eye(shape[-1]))


@row("numpy", "jax", "torch", sizes=(4, 128))
def solve(xp: Any, n: int) -> Call:
    """solve, {n} by {n}"""
    a, b, f = matrices(xp, n, n), matrices(xp, n, n), xp.linalg.solve
    return lambda: f(a, b)


@row("numpy", "jax", "torch")
def solve_stack(xp: Any) -> Call:
    """solve, 1000 of 4 by 4"""
    a, f = matrices(xp, 1000, 4, 4), xp.linalg.solve
    return lambda: f(a, a)


@row("numpy", "jax", "torch", sizes=(8, 64))
def svd(xp: Any, n: int) -> Call:
    """svd, {n} by {n}"""
    a, f = matrices(xp, n, n), xp.linalg.svd
    return lambda: f(a, full_matrices=False)


@row("numpy", "jax", "torch", sizes=(8, 64))
def eigh(xp: Any, n: int) -> Call:
    """eigh, {n} by {n}"""
    a, f = symmetric(xp, n, n), xp.linalg.eigh
    return lambda: f(a)


@row("numpy", "jax", "torch")
def eigh_stack(xp: Any) -> Call:
    """eigh, 1000 of 3 by 3"""
    a, f = symmetric(xp, 1000, 3, 3), xp.linalg.eigh
    return lambda: f(a)


@row("numpy", "jax", "torch")
def cholesky(xp: Any) -> Call:
    """cholesky, 128 by 128"""
    a, f = symmetric(xp, 128, 128), xp.linalg.cholesky
    return lambda: f(a)


@row("numpy", "jax", "torch")
def qr(xp: Any) -> Call:
    """qr, 64 by 64"""
    a, f = matrices(xp, 64, 64), xp.linalg.qr
    return lambda: f(a)


@row("numpy", "jax", "torch")
def determinants(xp: Any) -> Call:
    """slogdet, 1000 of 4 by 4"""
    a, f = matrices(xp, 1000, 4, 4), xp.linalg.slogdet
    return lambda: f(a)


@row("numpy", "jax", "torch")
def exponential(xp: Any) -> Call:
    """expm, 32 by 32; NumPy: SciPy's"""
    a = matrices(xp, 32, 32)
    if xp.library == "numpy":
        from scipy.linalg import expm as f
    elif xp.library == "jax":
        from jax.scipy.linalg import expm as f
    elif xp.library == "torch":
        f = xp.linalg.matrix_exp
    else:
        f = xp.linalg.expm
    return lambda: f(a)


@row("numpy", "torch")
def least_squares(xp: Any) -> Call:
    """lstsq, 100 by 20"""
    a = xp.array_of(np.random.default_rng(0).normal(size=(100, 20)))
    b, f = a[:, :1] + 1.0, xp.linalg.lstsq
    return (lambda: f(a, b)[0]) if xp.library == "torch" else (lambda: f(a, b, rcond=None)[0])
