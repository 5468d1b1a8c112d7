"""Some eigenpairs of a Hermitian operator, by thick-restart Lanczos with full orthogonalisation.

Wu and Simon, SIAM J. Matrix Anal. Appl. 22, 602 (2000). One start reaches a single vector of each multiplet. Once pairs
have converged, the iteration therefore continues with a vector outside the space, until it finds no further pairs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import tenferro_runtime as tr
from tenferro_linalg._eigh import eigh
from tenferro_linalg.krylov._conjugate_gradients import Apply
from tenferro_linalg.krylov._convergence import KrylovInfo
from tenferro_linalg.krylov._krylov_bases import extended, unconnected, unit
from tenferro_runtime.extension import DimLike
from tenferro_tensor_core import finfo, real_of

ORDERS: Final[dict[str, Callable[[Any], Any]]] = {
    "SA": lambda w: w,
    "LA": lambda w: -w,
    "LM": lambda w: -tr.abs(w),
    "SM": lambda w: tr.abs(w),
}
"""Sort keys for the eigenvalues, most wanted first."""


class _Spaces(NamedTuple):
    """State between two cycles.

    Attributes:
        basis: the kept Ritz vectors and the next direction, as rows; the remaining rows are zero.
        matrix: the operator on the basis.
        known: number of known columns of the matrix.
        values: the wanted Ritz values.
        before: the values when pairs last converged.
        residual: the largest norm of a residual among them.
        scale: the largest absolute Ritz value.
        found: whether pairs have converged to the same ones as before.
        cycles: number of cycles.
        steps: number of products with the operator.
    """

    basis: Any
    matrix: Any
    known: Any
    values: Any
    before: Any
    residual: Any
    scale: Any
    found: Any
    cycles: Any
    steps: Any


def hermitian_pairs(
    apply: Apply, start: Any, k: int, which: str, size: DimLike, kept: DimLike, tol: Any, maxiter: Any
) -> tuple[Any, Any, KrylovInfo]:
    """Eigenvalues in ascending order, their vectors as rows, and how the iteration ended.

    Args:
        apply: the operator.
        start: the initial vector.
        k: number of pairs.
        which: a key of `ORDERS`.
        size: number of vectors of the basis.
        kept: number of Ritz vectors that a restart keeps, at least k and less than `size` unless k is all.
        tol: tolerance of residuals relative to the largest eigenvalue.
        maxiter: number of cycles.
    """
    n, dtype = start.shape[0], start.dtype
    real = real_of(dtype)
    order = ORDERS[which]
    exhausted = size is n

    def cycle(now: _Spaces) -> _Spaces:
        basis, matrix = extended(apply, now.basis, now.matrix, now.known, 1000.0 * (now.cycles + 1))
        square = matrix[:size]
        w, u = eigh((square + tr.conj(tr.matrix_transpose(square))) / 2)
        wanted = tr.argsort(order(w))
        w, u = tr.take(w, wanted), tr.take(u, wanted, axis=1)
        left = matrix[size, size - 1]
        residuals = tr.abs(left * u[size - 1])
        residual = tr.max(residuals[:k])
        scale = tr.maximum(now.scale, tr.max(tr.abs(w)))
        converged = residual <= tol * scale
        changed = tr.max(tr.abs(w[:k] - now.before)) > tol * scale
        found = converged & ~changed
        if not exhausted:  # the next pair is a different one, not another copy that is still converging
            apart = tr.abs(order(w[k]) - order(w[k - 1]))
            found = found & (residuals[k] <= tr.maximum(0.1 * apart, tol * scale))
        w, u = w[:kept], u[:, :kept]
        # A start outside the space reveals further copies only if the space holds the wanted pairs and nothing else.
        fresh = (converged & changed) | (tr.abs(left) == 0)
        count = tr.where(fresh, k, kept)
        inside = tr.arange(kept) < count
        vectors = tr.where(inside[:, None], tr.matrix_transpose(u) @ basis[:size], 0.0)
        kept_basis = tr.zeros((size + 1, n), dtype=dtype).at[:kept].set(vectors)
        ahead = tr.cond(fresh, lambda: unconnected(kept_basis, 77.0 + now.cycles), lambda: basis[size])
        coupling = tr.where(fresh, 0.0, left) * u[size - 1]
        diagonal = tr.astype(tr.diag(tr.where(inside, w, 0.0)), dtype)
        known = tr.zeros_like(matrix).at[:kept, :kept].set(diagonal).at[count, :kept].set(coupling)
        return _Spaces(
            kept_basis.at[count].set(ahead), known, tr.astype(count, now.known.dtype), w[:k],
            tr.where(converged & changed, w[:k], now.before), residual, scale, found, now.cycles + 1,
            now.steps + size - now.known,
        )  # fmt: skip

    zero = tr.zeros((), dtype=real)
    nothing = tr.zeros((k,), dtype=real)
    first = _Spaces(
        tr.zeros((size + 1, n), dtype=dtype).at[0].set(unit(start)), tr.zeros((size + 1, size), dtype=dtype),
        tr.asarray(0), nothing, nothing + float("inf"), zero, zero, tr.asarray(False), tr.asarray(0), tr.asarray(0),
    )  # fmt: skip

    def unfinished(now: _Spaces) -> Any:
        return ~now.found & (now.cycles < maxiter) & tr.isfinite(now.residual)

    last = cycle(first) if exhausted else tr.while_loop(unfinished, cycle, first)
    ascending = tr.argsort(last.values)
    reached = tr.isfinite(last.residual) & (last.residual <= tol * last.scale) & (exhausted | last.found)
    info = KrylovInfo(reached, last.steps, last.residual)
    return tr.take(last.values, ascending), tr.take(last.basis[:k], ascending, axis=0), info


def default_tolerance(dtype: Any) -> float:
    """The smallest tolerance that rounding allows."""
    return float(100 * finfo(real_of(dtype)).eps)
