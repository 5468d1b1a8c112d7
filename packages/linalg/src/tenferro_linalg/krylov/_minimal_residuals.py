"""MINRES: the least residual over the Krylov space of a Hermitian operator, by a recurrence of three vectors.

Paige and Saunders, SIAM J. Numer. Anal. 12, 617 (1975). A preconditioner must be positive definite; the residual is
then minimal in its metric.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import tenferro_runtime as tr
from tenferro_linalg.krylov._conjugate_gradients import Apply, inner, length, ratio
from tenferro_tensor_core import finfo, real_of


class _Tridiagonal(NamedTuple):
    """State after k steps of Lanczos, and as many rotations of the tridiagonal matrix.

    Attributes:
        x: the iterate.
        before: the previous Lanczos vector.
        latest: the latest Lanczos vector.
        y: the latest one, preconditioned.
        old: length of `before`, in the metric of the preconditioner.
        beta: length of `latest`; 0 where the space is exhausted.
        w: the latest direction.
        w_before: the previous direction.
        turned: the entry of the matrix that the next rotation eliminates.
        ahead: the entry above it.
        c: cosine of the latest rotation.
        s: its sine.
        norm: the largest entry of the matrix, which sets the scale of rounding.
        residual: the norm of the residual, with the sign of the rotations.
        k: number of steps.
    """

    x: Any
    before: Any
    latest: Any
    y: Any
    old: Any
    beta: Any
    w: Any
    w_before: Any
    turned: Any
    ahead: Any
    c: Any
    s: Any
    norm: Any
    residual: Any
    k: Any


def minimal_residuals(apply: Apply, precondition: Apply, b: Any, x: Any, limit: Any, maxiter: Any) -> Any:
    """Solve for a Hermitian operator.

    Returns:
        The solution, the number of steps and the norm of the residual.
    """
    dtype = x.dtype
    real = real_of(dtype)
    eps = finfo(real).eps

    def scaled(factor: Any, v: Any) -> Any:
        return tr.astype(factor, dtype) * v

    def unfinished(now: _Tridiagonal) -> Any:
        return (tr.abs(now.residual) * unit > limit) & (now.k < maxiter) & (now.beta > 0)

    def step(now: _Tridiagonal) -> _Tridiagonal:
        v = scaled(1 / now.beta, now.y)
        q = apply(v)
        size = length(q)
        q = q - scaled(ratio(now.beta, now.old), now.before)
        alpha = inner(v, q)
        q = q - scaled(alpha / now.beta, now.latest)
        y = precondition(q)
        # A remainder of rounding errors alone is not a new direction.
        beta = tr.where(length(q) > 4 * eps * size, tr.sqrt(tr.maximum(inner(q, y), 0.0)), 0.0)
        delta = now.c * now.turned + now.s * alpha
        pivot = now.s * now.turned - now.c * alpha
        norm = tr.maximum(now.norm, tr.maximum(tr.abs(alpha), beta))
        gamma = tr.hypot(pivot, beta)
        gamma = tr.where(gamma > 4 * eps * norm, gamma, 0.0)  # otherwise the operator is singular on the space
        beta = tr.where(gamma > 0, beta, 0.0)
        c, s = ratio(pivot, gamma), ratio(beta, gamma)
        w = scaled(ratio(tr.ones_like(gamma), gamma), v - scaled(now.ahead, now.w_before) - scaled(delta, now.w))
        return _Tridiagonal(
            now.x + scaled(c * now.residual, w), now.latest, q, y, now.beta, beta, w, now.w, -now.c * beta,
            now.s * beta, c, s, norm, tr.where(gamma > 0, s, 1.0) * now.residual, now.k + 1,
        )  # fmt: skip

    r = b - apply(x)
    y = precondition(r)
    beta = tr.sqrt(tr.maximum(inner(r, y), 0.0))
    unit = ratio(length(r), beta)
    nothing, zero = tr.zeros_like(r), tr.zeros((), dtype=real)
    start = _Tridiagonal(
        x, nothing, r, y, zero, beta, nothing, nothing, zero, zero, zero - 1, zero, zero, beta, tr.asarray(0)
    )
    found = tr.while_loop(unfinished, step, start)
    return found.x, found.k, tr.abs(found.residual) * unit
