"""The invariant subspace of some eigenvalues of a general operator, by restarted Arnoldi.

A restart keeps the span of the wanted Ritz vectors, as the Krylov-Schur method does (Stewart, SIAM J. Matrix Anal.
Appl. 23, 601 (2001)), in an orthonormal basis that is real for a real operator. As in `_hermitian_pairs`, once values
have converged the iteration continues with a vector outside the space, until it finds no further values.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import tenferro_runtime as tr
from tenferro_linalg._eig import eig
from tenferro_linalg._qr import qr
from tenferro_linalg.krylov._conjugate_gradients import Apply
from tenferro_linalg.krylov._convergence import KrylovInfo
from tenferro_linalg.krylov._invariant import inner_products
from tenferro_linalg.krylov._krylov_bases import extended, unconnected, unit
from tenferro_runtime.extension import DimLike
from tenferro_tensor_core import complex_of, isdtype, real_of

PARTS: Final[dict[str, Callable[[Any], Any]]] = {
    "LM": lambda w: -tr.abs(w),
    "SM": lambda w: tr.abs(w),
    "LR": lambda w: -tr.real(w),
    "SR": lambda w: tr.real(w),
    "LI": lambda w: -tr.imag(w),
    "SI": lambda w: tr.imag(w),
}
"""Sort keys for the eigenvalues, most wanted first."""


def key(which: str, w: Any, *, real: bool) -> Any:
    """Sort key of eigenvalues, most wanted first; conjugate pairs of a real operator have equal keys."""
    return PARTS[which](tr.real(w) + 1j * tr.abs(tr.imag(w)) if real else w)


class _Subspace(NamedTuple):
    """State between two cycles.

    Attributes:
        basis: a basis of the kept space and the next direction, as rows; the remaining rows are zero.
        matrix: the operator on the basis.
        known: number of known columns of the matrix.
        wanted: the wanted Ritz vectors in the kept basis, as columns.
        keys: sort keys of the wanted Ritz values.
        before: the keys when values last converged.
        residual: the largest norm of a residual among them.
        scale: the largest absolute Ritz value, or norm of a column of the matrix.
        gap: the smallest distance of a wanted value from another converged one.
        found: whether values have converged to the same ones as before.
        cycles: number of cycles.
        steps: number of products with the operator.
    """

    basis: Any
    matrix: Any
    known: Any
    wanted: Any
    keys: Any
    before: Any
    residual: Any
    scale: Any
    gap: Any
    found: Any
    cycles: Any
    steps: Any


def general_subspace(
    apply: Apply, start: Any, k: int, which: str, size: DimLike, kept: DimLike, tol: Any, maxiter: Any
) -> tuple[Any, Any, Any, KrylovInfo]:
    """Vectors of the wanted eigenvalues as rows, the scale of the operator, a gap, and how the iteration ended.

    The gap is the smallest distance of a wanted value from another one; copies of a value have always converged.

    Args:
        apply: the operator.
        start: the initial vector.
        k: number of eigenvalues.
        which: a key of `PARTS`.
        size: number of vectors of the basis, all or at least k + 2.
        kept: number of vectors that a restart keeps, more than k and less than `size`.
        tol: tolerance of residuals relative to the scale of the operator.
        maxiter: number of cycles.
    """
    n, dtype = start.shape[0], start.dtype
    real, field = real_of(dtype), complex_of(dtype)
    pairs = isdtype(dtype, "real floating")

    def ritz(matrix: Any) -> tuple[Any, Any, Any, Any]:
        w, y = eig(matrix[:size])
        keys = key(which, w, real=pairs)
        wanted = tr.argsort(keys)
        sizes = tr.sqrt(tr.sum(tr.abs(matrix) ** 2, axis=0))
        return tr.take(w, wanted), tr.take(y, wanted, axis=1), tr.take(keys, wanted), tr.maximum(
            tr.max(sizes), tr.max(tr.abs(w))
        )  # fmt: skip

    def split(w: Any, at: DimLike) -> Any:
        """1 if an index separates a conjugate pair, whose first member has the positive imaginary part."""
        return tr.astype(tr.imag(w[at - 1]) > 0, "int64") if pairs else 0

    def gap(w: Any, there: Any) -> Any:
        """The smallest distance of a wanted value from the other converged ones."""
        others = there & (tr.arange(w.shape[0]) >= k)
        return tr.min(tr.where(others, tr.abs(w[:k, None] - w), float("inf")))

    def cycle(now: _Subspace) -> _Subspace:
        basis, matrix = extended(apply, now.basis, now.matrix, now.known, 1000.0 * (now.cycles + 1))
        w, y, keys, scale = ritz(matrix)
        left = matrix[size, size - 1]
        residuals = tr.abs(left * y[size - 1])
        residual = tr.max(residuals[:k])
        scale = tr.maximum(now.scale, scale)
        converged = residual <= tol * scale
        changed = tr.max(tr.abs(keys[:k] - now.before)) > tol * scale
        # The next value is a different one, not another copy that is still converging.
        apart = residuals[k] <= tr.maximum(0.1 * (keys[k] - keys[k - 1]), tol * scale)
        found = converged & ~changed & apart
        # A start outside the space reveals further copies only if the space holds the wanted values and nothing else.
        fresh = (converged & changed) | (tr.abs(left) == 0)
        count = tr.where(fresh, k + split(w, k), kept - split(w, kept))
        inside = tr.arange(kept) < count
        columns = y[:, :kept]
        if pairs:
            columns = tr.where(tr.imag(w[:kept]) < 0, tr.imag(columns), tr.real(columns))
        q = tr.where(inside, qr(tr.where(inside, columns, 0.0)).Q, 0.0)
        back = tr.conj(tr.matrix_transpose(q))
        kept_basis = tr.zeros((size + 1, n), dtype=dtype).at[:kept].set(tr.matrix_transpose(q) @ basis[:size])
        ahead = tr.cond(fresh, lambda: unconnected(kept_basis, 77.0 + now.cycles), lambda: basis[size])
        coupling = tr.where(fresh, 0.0, left) * q[size - 1]
        known = tr.zeros_like(matrix).at[:kept, :kept].set(back @ matrix[:size] @ q).at[count, :kept].set(coupling)
        return _Subspace(
            kept_basis.at[count].set(ahead), known, tr.astype(count, now.known.dtype),
            tr.astype(back, field) @ y[:, :k], keys[:k], tr.where(converged & changed, keys[:k], now.before), residual,
            scale, gap(w, residuals <= tol * scale), found, now.cycles + 1, now.steps + size - now.known,
        )  # fmt: skip

    zero = tr.zeros((), dtype=real)
    nothing = tr.zeros((k,), dtype=real)
    basis, matrix = (
        tr.zeros((size + 1, n), dtype=dtype).at[0].set(unit(start)),
        tr.zeros((size + 1, size), dtype=dtype),
    )
    if size is n:
        basis, matrix = extended(apply, basis, matrix, tr.asarray(0), 1000.0)
        w, y, _, scale = ritz(matrix)
        vectors = tr.matrix_transpose(y[:, :k]) @ tr.astype(basis[:size], field)
        apart = gap(w, tr.ones_like(w, dtype=bool))
        return vectors, scale, apart, KrylovInfo(tr.isfinite(scale), size + tr.asarray(0), zero)
    first = _Subspace(
        basis, matrix, tr.asarray(0), tr.zeros((kept, k), dtype=field), nothing, nothing + float("inf"), zero, zero,
        zero, tr.asarray(False), tr.asarray(0), tr.asarray(0),
    )  # fmt: skip

    def unfinished(now: _Subspace) -> Any:
        return ~now.found & (now.cycles < maxiter) & tr.isfinite(now.residual)

    last = tr.while_loop(unfinished, cycle, first)
    vectors = tr.matrix_transpose(last.wanted) @ tr.astype(last.basis[:kept], field)
    return vectors, last.scale, last.gap, KrylovInfo(last.found, last.steps, last.residual)


def orthonormal(apply: Apply, vectors: Any, scale: Any, tol: Any, info: KrylovInfo) -> tuple[Any, Any, KrylovInfo]:
    """An orthonormal basis of a subspace, the operator on it, and whether it is invariant.

    Nearly dependent eigenvectors do not determine their span; the residual of the span detects this.

    Args:
        apply: the operator on rows.
        vectors: rows that span the subspace.
        scale: approximate norm of the operator.
        tol: tolerance of residuals relative to it.
        info: how the iteration ended.
    """
    rows = tr.matrix_transpose(qr(tr.matrix_transpose(vectors)).Q)
    image = apply(rows)
    matrix = tr.matrix_transpose(inner_products(rows, image))
    residual = tr.max(tr.sqrt(tr.sum(tr.abs(image - matrix @ rows) ** 2, axis=1)))
    reached = info.converged & (residual <= 1000 * tol * scale)
    return rows, matrix, KrylovInfo(reached, info.iterations, tr.maximum(residual, info.residual))
