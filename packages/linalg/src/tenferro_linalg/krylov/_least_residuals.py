"""LSQR: the least residual over the Krylov space of the normal equation, by bidiagonalisation.

Paige and Saunders, ACM Trans. Math. Softw. 8, 43 (1982).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import tenferro_runtime as tr
from tenferro_linalg.krylov._conjugate_gradients import length, ratio
from tenferro_linalg.krylov._convergence import KrylovInfo
from tenferro_linalg.krylov._operators import RecordedOperator


class _Bidiagonal(NamedTuple):
    """State after k steps.

    Attributes:
        u: the latest left vector.
        v: the latest right vector.
        t: that vector or, for the minimum-norm solution, its preimage under the adjoint.
        direction: the direction of the next step.
        x: the iterate, or its preimage under the adjoint.
        alpha: the latest diagonal entry.
        rho_bar: the entry that the next rotation eliminates.
        phi_bar: norm of the residual, without damping.
        damped: squared norm of the contribution of damping to the residual.
        norm: squared Frobenius norm of the bidiagonal matrix.
        slope: norm of the gradient.
        size: upper bound of the norm of the iterate.
        k: number of steps.
    """

    u: Any
    v: Any
    t: Any
    direction: Any
    x: Any
    alpha: Any
    rho_bar: Any
    phi_bar: Any
    damped: Any
    norm: Any
    slope: Any
    size: Any
    k: Any


def measured(x: Any) -> tuple[Any, Any]:
    """Normalise a vector and return its length too; zero stays zero."""
    size = length(x)
    return scaled(ratio(tr.ones_like(size), size), x), size


def scaled(factor: Any, x: Any) -> Any:
    """Product of a vector and a real number."""
    return tr.astype(factor, x.dtype) * x


def started(linear: RecordedOperator, b: Any, wide: bool) -> tuple[Any, Any, Any, Any, Any]:
    """The first vectors of a bidiagonalisation, the direction of the solution, and both lengths, alpha and beta."""
    u, beta = measured(b)
    v, alpha = measured(linear.adjoint(u))
    return u, v, scaled(ratio(tr.ones_like(alpha), alpha), u) if wide else v, alpha, beta


def continued(linear: RecordedOperator, now: Any, wide: bool) -> tuple[Any, Any, Any, Any, Any]:
    """The next step of the bidiagonalisation, with the results of `started`, from a state."""
    u, beta = measured(linear(now.v) - scaled(now.alpha, now.u))
    v, alpha = measured(linear.adjoint(u) - scaled(beta, now.v))
    t = scaled(ratio(tr.ones_like(alpha), alpha), u - scaled(beta, now.t)) if wide else v
    return u, v, t, alpha, beta


def least_residuals(
    linear: RecordedOperator, b: Any, like: Any, damp: Any, atol: Any, btol: Any, maxiter: Any, wide: bool
) -> tuple[Any, KrylovInfo]:
    """The least-squares solution (or the preimage of the minimum-norm one), and how the iteration ended."""
    u, v, t, alpha, beta = started(linear, b, wide)
    goal = beta

    def settled(now: _Bidiagonal) -> Any:
        residual = tr.sqrt(now.phi_bar**2 + now.damped)
        norm = tr.sqrt(now.norm)
        solved = residual <= btol * goal + atol * norm * now.size
        return solved | (now.slope <= atol * norm * residual) | (now.alpha == 0)

    def unfinished(now: _Bidiagonal) -> Any:
        return ~settled(now) & (now.k < maxiter) & tr.isfinite(now.phi_bar)

    def step(now: _Bidiagonal) -> _Bidiagonal:
        u, v, t, alpha, beta = continued(linear, now, wide)
        damped = tr.hypot(now.rho_bar, damp)
        phi_bar = ratio(now.rho_bar, damped) * now.phi_bar
        lost = ratio(damp, damped) * now.phi_bar
        rho = tr.hypot(damped, beta)
        c, s = ratio(damped, rho), ratio(beta, rho)
        phi = c * phi_bar
        length_of_step = ratio(phi, rho)
        x = now.x + scaled(length_of_step, now.direction)
        direction = t - scaled(ratio(s * alpha, rho), now.direction)
        return _Bidiagonal(
            u, v, t, direction, x, alpha, -c * alpha, s * phi_bar, now.damped + lost**2,
            now.norm + now.alpha**2 + beta**2 + damp**2, alpha * tr.abs(s * phi),
            tr.hypot(now.size, length_of_step), now.k + 1,
        )  # fmt: skip

    zero = tr.zeros_like(beta)
    start = _Bidiagonal(
        u, v, t, t, like, alpha, alpha, beta, zero, alpha**2, alpha * beta, zero, tr.asarray(0)
    )  # fmt: skip
    found = tr.while_loop(unfinished, step, start)
    residual = tr.sqrt(found.phi_bar**2 + found.damped)
    return found.x, KrylovInfo(settled(found) & tr.isfinite(residual), found.k, residual)
