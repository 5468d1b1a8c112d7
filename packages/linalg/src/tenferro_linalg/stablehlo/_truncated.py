"""Ranks, column orders, random sketches and the coupling of kept and discarded vectors."""

from __future__ import annotations

from typing import Any

import numpy as np

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


def coupled(library: Any, rest: Any, s: Any, p: Any, q: Any) -> Any:
    """The components outside the kept spaces, by conjugate gradients for all columns at once."""
    xp, most = library("numpy"), max(rest.shape[-2:])
    if 0 in s.shape or 0 in rest.shape:
        return p, q, xp.asarray(False)
    eps = float(np.finfo(s.dtype).eps)
    failed = (s <= 8 * most * eps * s.max(axis=-1, keepdims=True)).any()
    unit = s.max(axis=-1)[..., None, None]
    unit = xp.where(unit > 0, unit, 1)
    a, ratio = rest / unit, s[..., None, :] / unit
    ah, p, q = adjoint(a), p / unit, q / unit
    b = ratio * p + a @ q
    normal = lambda v: ratio * ratio * v - a @ (ah @ v)
    x, left = _gradients(library, normal, b, 8 * eps, 20 * min(rest.shape[-2:]) + 20)
    huge = 64 * most * eps * xp.linalg.norm(x, axis=-2) >= xp.linalg.norm(b, axis=-2)
    failed = failed | (left | (huge & (xp.abs(x).max(axis=-2) > 0))).any()
    return x, (q + ah @ x) / xp.where(ratio > 0, ratio, 1), failed


def _gradients(library: Any, normal: Any, b: Any, tolerance: float, steps: int) -> tuple[Any, Any]:
    """Conjugate gradients for each column, and which columns did not converge."""
    xp = library("numpy")

    def product(v: Any, w: Any) -> Any:
        return (v.conj() * w).real.sum(axis=-2, keepdims=True)

    first = product(b, b)
    goal = tolerance**2 * first

    def goes_on(state: Any) -> Any:
        *_, size, _, stalled, count = state
        return (size > goal).any() & (stalled <= 30) & (count < steps)

    def step(state: Any) -> Any:
        x, r, d, size, best, stalled, count = state
        image = normal(d)
        curvature = product(d, image)
        good = (size > goal) & (curvature > 0)
        along = xp.where(good, size / xp.where(good, curvature, 1), 0)
        x, r = x + along * d, r - along * image
        new = product(r, r)
        stalled = xp.where((new < 0.5 * best).any(), 0, stalled + 1)
        d = r + xp.where(good, new / xp.where(size > 0, size, 1), 0) * d
        return x, r, d, xp.where(good, new, size), xp.minimum(best, new), stalled, count + 1

    x, _, _, size, best, *_ = library("lax").while_loop(
        goes_on, step, (xp.zeros_like(b), b, b, first, first, xp.asarray(0), xp.asarray(0))
    )
    limit = xp.maximum(64 * goal, (64 * tolerance) ** 2 * product(x, x))
    return x, ((best > limit) & (size > 0))[..., 0, :]
