"""LSMR: the least gradient over the Krylov space of the normal equation, by bidiagonalisation.

Fong and Saunders, SIAM J. Sci. Comput. 33, 2950 (2011): each step takes two rotations, one of the bidiagonal matrix and
one of the triangular matrix that results. The norm of the residual takes a third.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import tenferro_runtime as tr
from tenferro_linalg.krylov._conjugate_gradients import length, ratio
from tenferro_linalg.krylov._convergence import KrylovInfo
from tenferro_linalg.krylov._least_residuals import continued, scaled, started
from tenferro_linalg.krylov._operators import RecordedOperator


class _Rotated(NamedTuple):
    """State after k steps, in the notation of the paper.

    Attributes:
        u: the latest left vector.
        v: the latest right vector.
        t: that vector or, for the minimum-norm solution, its preimage under the adjoint.
        h: the direction of the first rotation.
        direction: that of the second.
        x: the iterate, or its preimage under the adjoint.
        alpha: the latest diagonal entry.
        alpha_bar: the entry that the next rotation eliminates.
        rho: the latest diagonal entry after the first rotation.
        rho_bar: that after the second.
        c_bar: cosine of the second rotation.
        s_bar: its sine.
        zeta_bar: the gradient, with a sign.
        beta_hat: the entry of the right-hand side that the next rotation eliminates.
        beta_dot: the entry for the rotation of the residual.
        rho_dot: the diagonal entry for the rotation of the residual.
        tau: the latest entry of the solution of the first triangular equation.
        theta: the latest off-diagonal entry after the second rotation.
        zeta: the latest entry of the right-hand side after the second rotation.
        lost: squared norm of the residual that damping has settled.
        norm: squared Frobenius norm of the bidiagonal matrix.
        residual: norm of the residual, with damping.
        size: norm of the iterate.
        k: number of steps.
    """

    u: Any
    v: Any
    t: Any
    h: Any
    direction: Any
    x: Any
    alpha: Any
    alpha_bar: Any
    rho: Any
    rho_bar: Any
    c_bar: Any
    s_bar: Any
    zeta_bar: Any
    beta_hat: Any
    beta_dot: Any
    rho_dot: Any
    tau: Any
    theta: Any
    zeta: Any
    lost: Any
    norm: Any
    residual: Any
    size: Any
    k: Any


def _rotation(a: Any, b: Any) -> tuple[Any, Any, Any]:
    """Cosine, sine and length of the rotation that maps (a, b) to one axis."""
    r = tr.hypot(a, b)
    return tr.where(r > 0, ratio(a, r), 1.0), ratio(b, r), r


def least_slopes(
    linear: RecordedOperator, b: Any, like: Any, damp: Any, atol: Any, btol: Any, maxiter: Any, wide: bool
) -> tuple[Any, KrylovInfo]:
    """The least-squares solution (or the preimage of the minimum-norm one), and how the iteration ended."""
    u, v, t, alpha, beta = started(linear, b, wide)
    goal = beta

    def settled(now: _Rotated) -> Any:
        norm = tr.sqrt(now.norm)
        solved = now.residual <= btol * goal + atol * norm * now.size
        return solved | (tr.abs(now.zeta_bar) <= atol * norm * now.residual) | (now.alpha == 0)

    def unfinished(now: _Rotated) -> Any:
        return ~settled(now) & (now.k < maxiter) & tr.isfinite(now.residual)

    def step(now: _Rotated) -> _Rotated:
        u, v, t, alpha, beta = continued(linear, now, wide)
        c_hat, s_hat, alpha_hat = _rotation(now.alpha_bar, damp)
        c, s, rho = _rotation(alpha_hat, beta)
        theta_new = s * alpha
        theta_bar = now.s_bar * rho
        c_bar, s_bar, rho_bar = _rotation(now.c_bar * rho, theta_new)
        zeta = c_bar * now.zeta_bar
        direction = now.h - scaled(ratio(theta_bar * rho, now.rho * now.rho_bar), now.direction)
        x = now.x + scaled(ratio(zeta, rho * rho_bar), direction)
        h = t - scaled(ratio(theta_new, rho), now.h)
        # The norm of the residual, from the rotation of the second triangular matrix to lower triangular form.
        settled_part = -s_hat * now.beta_hat
        beta_hat = c * c_hat * now.beta_hat
        c_tilde, s_tilde, rho_tilde = _rotation(now.rho_dot, theta_bar)
        beta_dot = -s_tilde * now.beta_dot + c_tilde * beta_hat
        tau = ratio(now.zeta - now.theta * now.tau, rho_tilde)
        theta = s_tilde * rho_bar
        rho_dot = c_tilde * rho_bar
        tau_dot = ratio(zeta - theta * tau, rho_dot)
        lost = now.lost + settled_part**2
        left = -s * c_hat * now.beta_hat
        residual = tr.sqrt(lost + (beta_dot - tau_dot) ** 2 + left**2)
        size = length(linear.adjoint(x)) if wide else length(x)
        return _Rotated(
            u, v, t, h, direction, x, alpha, c * alpha, rho, rho_bar, c_bar, s_bar, -s_bar * now.zeta_bar, left,
            beta_dot, rho_dot, tau, theta, zeta, lost, now.norm + now.alpha**2 + beta**2 + damp**2, residual, size,
            now.k + 1,
        )  # fmt: skip

    zero, one = tr.zeros_like(beta), tr.ones_like(beta)
    start = _Rotated(
        u, v, t, t, tr.zeros_like(like), like, alpha, alpha, one, one, one, zero, alpha * beta, beta, zero, one, zero,
        zero, zero, zero, alpha**2, beta, zero, tr.asarray(0),
    )  # fmt: skip
    found = tr.while_loop(unfinished, step, start)
    return found.x, KrylovInfo(settled(found) & tr.isfinite(found.residual), found.k, found.residual)
