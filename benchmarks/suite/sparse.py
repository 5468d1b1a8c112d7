"""Sparse matrices and derivatives with few entries."""

from __future__ import annotations

from typing import Any

import numpy as np
from sparse_derivatives import energy, tridiagonal

from suite.rows import Call, normal, row


def laplace(side: int) -> Any:
    """The five-point Laplacian of a square, as SciPy's rows."""
    from scipy import sparse

    line = sparse.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(side, side))
    eye = sparse.eye_array(side)
    return (sparse.kron(line, eye) + sparse.kron(eye, line)).tocsr()


def matrix(xp: Any, side: int) -> Any:
    """The same matrix in a library."""
    a = laplace(side)
    return a if xp.library == "numpy" else xp.linalg.csr_array((a.data, a.indices, a.indptr), a.shape)


@row("numpy", repeats=5)
def product(xp: Any) -> Call:
    """sparse matrix of 2500 rows times a vector; NumPy: SciPy"""
    a, (x,) = matrix(xp, 50), normal(xp, 2500)
    return lambda: a @ x


@row("numpy")
def conjugate_gradients(xp: Any) -> Call:
    """cg, sparse matrix of 900 rows; NumPy: SciPy"""
    a, b = matrix(xp, 30), xp.array_of(np.ones(900))
    if xp.library == "numpy":
        from scipy.sparse.linalg import cg

        return lambda: cg(a, b)[0]
    f = xp.compiled(lambda b: xp.linalg.cg(a, b)[0])
    return lambda: f(b)


@row()
def jacobian(xp: Any) -> Call:
    """sparse Jacobian of a function of three neighbors, 2000 variables"""
    f, (x,) = xp.sparse_jacobian(lambda x: tridiagonal(xp, x)), normal(xp, 2000)
    return lambda: f(x)


@row()
def hessian(xp: Any) -> Call:
    """sparse Hessian of a grid of springs, 30 by 30"""
    f, (x,) = xp.sparse_hessian(lambda x: energy(xp, x)), normal(xp, (30, 30))
    return lambda: f(x)
