"""Schur and Hessenberg forms, and the derivatives of their unitary factors.

JAX supports Schur forms only on the CPU; for another platform the lowering fails with an error that names it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tenferro_linalg.stablehlo._factors import not_finite
from tenferro_linalg.stablehlo._turns import adjoint


def each(library: Any, function: Any, signature: str) -> Any:
    """Apply a function of single matrices to every matrix of a stack."""
    return library("numpy").vectorize(function, signature=signature)


def triangular(library: Any, a: Any, b: Any, *, adjoint: bool = False) -> Any:
    """Solution for one upper triangular matrix, or its adjoint, and one vector or a matrix of right-hand sides."""
    columns = b if b.ndim == a.ndim else b[..., None]
    x = library("lax.linalg").triangular_solve(
        a, columns, left_side=True, lower=False, transpose_a=adjoint, conjugate_a=adjoint
    )
    return x if b.ndim == a.ndim else x[..., 0]


def schur(library: Any, x: Any) -> Any:
    """T and Z."""
    if not x.size:
        return x, x, library("numpy").asarray(False)
    t, z = library("lax.linalg").schur(x)
    # LAPACK overwrites its reflectors with zeros below the form.
    return library("numpy").triu(t, -1 if x.dtype.kind != "c" else 0), z, not_finite(library("numpy"), x, t)


def schur_factors(library: Any, a: Any, *, triangular: bool) -> Any:
    """Q and T; opaque except to the solvers of this folder."""
    xp = library("numpy")
    t, q, failed = schur(library, a.astype(np.result_type(a.dtype, np.complex64)) if triangular else a)
    return q, t, failed | not_finite(xp, a)


def schur_rotation(library: Any, t: Any, k: Any, *, turned: bool) -> Any:
    """L with ``strict lower(t L - L t) = k``, or for the adjoint of t if `turned`, column by column."""
    xp, n = library("numpy"), t.shape[-1]
    if n < 2 or not k.size:
        return xp.zeros_like(k), xp.asarray(False)
    eps, rows = float(np.finfo(k.dtype).eps), xp.arange(n)
    identity = xp.eye(n, dtype=t.dtype)

    def one(t: Any, k: Any) -> Any:
        def column(step: Any, out: Any) -> Any:
            j = n - 2 - step if turned else step
            below = rows > j
            known = out @ t[j].conj() if turned else out @ t[:, j]
            matrix = xp.where(below[:, None] & below, t - t[j, j] * identity, identity)
            right = xp.where(below, k[:, j] + known, 0)
            return out.at[:, j].set(triangular(library, matrix, right, adjoint=turned))

        return library("lax").fori_loop(0, n - 1, column, xp.zeros_like(k))

    values = xp.diagonal(t, axis1=-2, axis2=-1)
    gaps = xp.abs(values[..., :, None] - values[..., None, :]) + xp.where(xp.eye(n, dtype=bool), xp.inf, 0)
    close = gaps.min(axis=(-2, -1)) <= 8 * n * eps * xp.abs(t).max(axis=(-2, -1))
    blocks = xp.diagonal(t, -1, axis1=-2, axis2=-1) != 0
    return each(library, one, "(n,n),(n,n)->(n,n)")(t, k), close.any() | blocks.any()


def hessenberg(library: Any, x: Any) -> Any:
    """H and Q."""
    xp, n = library("numpy"), x.shape[-1]
    if n < 2 or not x.size:
        return x, xp.ones_like(x), not_finite(xp, x)
    packed, tau = library("lax.linalg").hessenberg(x)
    inner = library("lax.linalg").householder_product(packed[..., 1:, :-1], tau)
    q = xp.zeros_like(x).at[..., 0, 0].set(1).at[..., 1:, 1:].set(inner)
    return xp.triu(packed, -1), q, not_finite(xp, x)


def hessenberg_rotation(library: Any, h: Any, m: Any, *, turned: bool) -> Any:
    """Omega for the perturbation m of the form h; if `turned`, the adjoint of that map at m."""
    xp, n, cplx = library("numpy"), h.shape[-1], h.dtype.kind == "c"
    steps = max(n - (1 if cplx else 2), 0)
    if not steps or not m.size:
        return xp.zeros_like(m), xp.asarray(False)
    rows = xp.arange(n)

    def in_phase(c: Any, j: Any) -> Any:
        """On the diagonal Omega is imaginary, which keeps the subdiagonal of the form real."""
        return xp.where(rows == j + 1, 1j * c.imag if cplx else 0, c).astype(m.dtype)

    def forward(h: Any, m: Any) -> Any:
        def column(j: Any, omega: Any) -> Any:
            below = rows > j
            c = m[:, j] + h @ omega[:, j] - omega @ xp.where(below, 0, h[:, j])
            c = in_phase(xp.where(below, c, 0), j) / h[j + 1, j].real
            omega = omega.at[j + 1].set(xp.where(below, -c.conj(), omega[j + 1]))
            return omega.at[:, j + 1].set(xp.where(below, c, omega[:, j + 1]))

        return library("lax").fori_loop(0, steps, column, xp.zeros_like(m))

    def backward(h: Any, g: Any) -> Any:
        def column(step: Any, state: Any) -> Any:
            g, out = state
            j = steps - 1 - step
            below = rows > j
            c = xp.where(below, g[:, j + 1], 0) - xp.where(rows > j + 1, g[j + 1].conj(), 0)
            c = in_phase(c / h[j + 1, j].real, j)
            g = g.at[:, j].add(adjoint(h) @ c) - xp.where(below[:, None] & ~below, c[:, None] * h[:, j].conj(), 0)
            return g, out.at[:, j].set(xp.where(below, c, out[:, j]))

        return library("lax").fori_loop(0, steps, column, (g, xp.zeros_like(g)))[1]

    eps = float(np.finfo(m.dtype).eps)
    low = xp.abs(xp.diagonal(h, -1, axis1=-2, axis2=-1))[..., :steps]
    failed = (low <= 8 * n * eps * xp.abs(h).max(axis=(-2, -1))[..., None]).any()
    return each(library, backward if turned else forward, "(n,n),(n,n)->(n,n)")(h, m), failed
