"""Ranks, column orders, random sketches and the coupling of kept and discarded vectors."""

from __future__ import annotations

from typing import Any

from tenferro_linalg._bases import hermitian
from tenferro_linalg.stablehlo._factors import not_finite
from tenferro_linalg.stablehlo._turns import adjoint, rebased_svd


def column_order(library: Any, x: Any) -> Any:
    """Column order of pivoted QR."""
    xp, n = library("numpy"), x.shape[-1]
    if 0 in x.shape:
        return xp.broadcast_to(xp.arange(n, dtype="int64"), (*x.shape[:-2], n)), xp.asarray(False)
    order = library("lax.linalg").qr(x, pivoting=True, full_matrices=False)[2]
    return order.astype("int64"), not_finite(xp, x)


def rank(library: Any, x: Any, rtol: Any, atol: Any, *, kind: str) -> Any:
    """The number of values above both tolerances."""
    xp = library("numpy")
    if 0 in x.shape:
        return xp.zeros(x.shape[:-2], "int64"), xp.asarray(False)
    if kind == "svd":
        found = xp.linalg.svd(x, compute_uv=False)
    elif kind == "eigh":
        found = xp.abs(xp.linalg.eigvalsh(hermitian(x), symmetrize_input=False))
    else:
        r = library("lax.linalg").qr(x, pivoting=True, full_matrices=False)[1]
        found = xp.abs(xp.diagonal(r, axis1=-2, axis2=-1))
    above = found > xp.maximum(rtol[..., None] * found.max(axis=-1, keepdims=True), atol[..., None])
    if kind == "qr":
        above = xp.cumprod(above, axis=-1)
    return above.sum(axis=-1).astype("int64"), not_finite(xp, x, found)


def svd_sketched(library: Any, x: Any, omega: Any, *, k: int, iterations: int, basis: str) -> Any:
    """The largest triplets in the range of a sketch."""
    xp = library("numpy")

    def orthonormal(y: Any) -> Any:
        return xp.linalg.qr(y, mode="reduced")[0]

    q = orthonormal(x @ omega)
    for _ in range(iterations):
        q = orthonormal(x @ orthonormal(adjoint(x) @ q))
    u, s, vh = xp.linalg.svd(adjoint(q) @ x, full_matrices=False)
    u, s, vh = q @ u[..., :k], s[..., :k], vh[..., :k, :]
    failed = not_finite(xp, x, s)
    if basis == "generic":
        u, vh = rebased_svd(library, u, s, vh, None, max(x.shape[-2:]))
    return u, s, vh, failed


def frame(library: Any, x: Any, *, full: bool) -> Any:
    """Singular triplets in a generic basis of multiplets and of the null spaces."""
    u, s, vh = library("numpy").linalg.svd(x, full_matrices=full)
    u, vh = rebased_svd(library, u, s, vh, None, max(x.shape[-2:]))
    return u, s, vh, not_finite(library("numpy"), x, s)
