"""Conjugate gradients, and stabilised biconjugate gradients for operators that are not Hermitian, on flat vectors.

Hestenes and Stiefel, J. Res. Natl. Bur. Stand. 49, 409 (1952); van der Vorst, SIAM J. Sci. Stat. Comput. 13, 631
(1992).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tenferro_runtime as tr

Apply = Callable[[Any], Any]


def inner(x: Any, y: Any) -> Any:
    """The real part of the inner product."""
    return tr.real(tr.vecdot(x, y)) if x.spec.cplx else tr.vecdot(x, y)


def length(x: Any) -> Any:
    """The Euclidean norm."""
    return tr.sqrt(inner(x, x))


def ratio(x: Any, y: Any) -> Any:
    """``x / y``, and 0 where y is 0."""
    there = y != 0
    return tr.where(there, x / tr.where(there, y, 1.0), 0.0)


def conjugate_gradients(apply: Apply, precondition: Apply, b: Any, x: Any, limit: Any, maxiter: Any) -> Any:
    """Solve for a positive definite operator.

    Returns:
        The solution, the number of steps and the norm of the residual.
    """

    def unfinished(state: Any) -> Any:
        *_, rz, size, k = state
        return (size > limit) & (k < maxiter) & (rz > 0)

    def step(state: Any) -> Any:
        x, r, p, rz, _, k = state
        q = apply(p)
        curvature = inner(p, q)
        alpha = tr.astype(ratio(rz, curvature), x.dtype)
        x, r = x + alpha * p, r - alpha * q
        z = precondition(r)
        after = inner(r, z)
        # A direction without curvature ends the iteration: the operator is not positive definite.
        after_or_end = tr.where(curvature > 0, after, 0.0)
        return x, r, z + tr.astype(ratio(after, rz), x.dtype) * p, after_or_end, length(r), k + 1

    r = b - apply(x)
    z = precondition(r)
    x, r, _, _, size, k = tr.while_loop(unfinished, step, (x, r, z, inner(r, z), length(r), tr.asarray(0)))
    return x, k, size


def stabilised_biconjugate_gradients(
    apply: Apply, precondition: Apply, b: Any, x: Any, limit: Any, maxiter: Any
) -> Any:
    """Solve for any non-singular operator.

    Returns:
        The solution, the number of steps and the norm of the residual.
    """

    def unfinished(state: Any) -> Any:
        size, k, running = state[-3:]
        return (size > limit) & (k < maxiter) & running

    def step(state: Any) -> Any:
        x, r, p, v, rho, alpha, omega, size, k, _ = state
        found = tr.vecdot(shadow, r)
        beta = ratio(found, rho) * ratio(alpha, omega)
        p = r + beta * (p - omega * v)
        ahead = precondition(p)
        v = apply(ahead)
        alpha = ratio(found, tr.vecdot(shadow, v))
        s = r - alpha * v
        behind = precondition(s)
        t = apply(behind)
        omega = ratio(tr.vecdot(t, s), tr.vecdot(t, t))
        x = x + alpha * ahead + omega * behind
        r = s - omega * t
        size = length(r)
        running = (alpha != 0) & ((omega != 0) | (size <= limit))
        return x, r, p, v, found, alpha, omega, size, k + 1, running

    r = shadow = b - apply(x)
    one = tr.ones((), dtype=r.dtype)
    zero = tr.zeros_like(r)
    start = (x, r, zero, zero, one, one, one, length(r), tr.asarray(0), tr.asarray(True))
    found = tr.while_loop(unfinished, step, start)
    return found[0], found[-2], found[-3]
