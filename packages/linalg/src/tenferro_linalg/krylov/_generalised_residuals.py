"""Restarted GMRES with a preconditioner on the right, so that the residual is that of the equation.

Saad and Schultz, SIAM J. Sci. Stat. Comput. 7, 856 (1986), with Gram-Schmidt orthogonalisation done twice.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import tenferro_runtime as tr
from tenferro_linalg._solve import solve_triangular
from tenferro_linalg.krylov._conjugate_gradients import Apply, length, ratio
from tenferro_tensor_core import finfo, real_of


class _Restart(NamedTuple):
    """One cycle after k steps.

    Attributes:
        k: number of steps.
        basis: k + 1 orthonormal vectors, as rows.
        rotation: unitary matrix that makes the Hessenberg matrix triangular.
        triangle: that matrix, rotated; columns beyond k are those of the identity.
        residual: norm of the residual.
        running: False where the operator is singular on the space.
    """

    k: Any
    basis: Any
    rotation: Any
    triangle: Any
    residual: Any
    running: Any


def orthogonalised(basis: Any, w: Any) -> tuple[Any, Any, Any]:
    """Remove the components of a vector along the rows of a basis: coefficients, unit vector, length.

    Length and vector are 0 if only rounding errors remain.
    """
    size = length(w)
    h = tr.conj(basis) @ w
    w = w - h @ basis
    again = tr.conj(basis) @ w
    w = w - again @ basis
    left = length(w)
    left = tr.where(left > finfo(real_of(w.dtype)).eps * size, left, 0.0)
    return h + again, tr.astype(ratio(tr.ones_like(left), left), w.dtype) * w, left


def generalised_residuals(
    apply: Apply, precondition: Apply, b: Any, x: Any, limit: Any, maxiter: Any, *, restart: int
) -> Any:
    """Solve for any non-singular operator: the solution, the number of steps, the norm of the residual.

    Args:
        apply: the operator.
        precondition: its approximate inverse.
        b: the right-hand side.
        x: the initial guess.
        limit: the norm of the residual to reach.
        maxiter: number of cycles.
        restart: number of steps in a cycle.
    """

    def unfinished(state: Any) -> Any:
        _, _, size, cycles, _, moving = state
        return (size > limit) & (cycles < maxiter) & moving

    def improved(state: Any) -> Any:
        x, r, size, cycles, steps, _ = state
        done = _cycle(apply, precondition, r, size, limit, restart)
        rhs = tr.astype(size, x.dtype) * done.rotation[:restart, 0]
        z = tr.where(tr.arange(restart) < done.k, rhs, 0.0)
        z = solve_triangular(done.triangle[:restart], z[:, None])[:, 0]
        x = x + precondition(z @ done.basis[:restart])
        r = b - apply(x)
        after = length(r)
        return x, r, after, cycles + 1, steps + done.k, (done.k > 0) & (after < size)

    r = b - apply(x)
    start = (x, r, length(r), tr.asarray(0), tr.asarray(0), tr.asarray(True))
    x, _, size, _, steps, _ = tr.while_loop(unfinished, improved, start)
    return x, steps, size


def _cycle(apply: Apply, precondition: Apply, r: Any, size: Any, limit: Any, restart: int) -> _Restart:
    dtype = r.dtype
    tiny = finfo(real_of(dtype)).smallest_normal
    basis = tr.zeros((restart + 1, r.shape[0]), dtype=dtype).at[0].set(tr.astype(1 / size, dtype) * r)
    eye = tr.eye(restart + 1, dtype=dtype)
    first = _Restart(tr.asarray(0), basis, eye, eye[:, :restart], size, tr.asarray(True))

    def step(now: _Restart) -> _Restart:
        h, vector, left = orthogonalised(now.basis, apply(precondition(now.basis[now.k])))
        column = now.rotation @ h.at[now.k + 1].set(tr.astype(left, dtype))
        a, beta = column[now.k], column[now.k + 1]
        turned = tr.sqrt(tr.abs(a) ** 2 + tr.abs(beta) ** 2)
        # A zero column means that the operator is singular: skip the step.
        regular = turned > tiny
        whole = tr.astype(tr.where(regular, turned, 1.0), dtype)
        c, s = tr.conj(a) / whole, tr.conj(beta) / whole
        upper, lower = now.rotation[now.k], now.rotation[now.k + 1]
        rotation = now.rotation.at[now.k].set(c * upper + s * lower)
        rotation = rotation.at[now.k + 1].set(tr.conj(c) * lower - tr.conj(s) * upper)
        column = tr.where(tr.arange(restart + 1) < now.k, column, 0.0).at[now.k].set(whole)
        return _Restart(
            tr.where(regular, now.k + 1, now.k), now.basis.at[now.k + 1].set(vector),
            tr.where(regular, rotation, now.rotation),
            tr.where(regular, now.triangle.at[:, now.k].set(column), now.triangle),
            tr.where(regular, size * tr.abs(rotation[now.k + 1, 0]), now.residual), regular,
        )  # fmt: skip

    return tr.while_loop(lambda now: (now.k < restart) & (now.residual > limit) & now.running, step, first)
