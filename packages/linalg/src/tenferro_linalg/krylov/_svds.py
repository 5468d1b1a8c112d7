"""`svds`: the largest singular values of an operator, and their vectors."""

from __future__ import annotations

from typing import Any, Final

import tenferro_runtime as tr
from tenferro_linalg._cholesky import cholesky
from tenferro_linalg._operands import inexact
from tenferro_linalg._solve import solve_triangular
from tenferro_linalg._svd import SVDResult, svd, svdvals
from tenferro_linalg.krylov._eigsh import eigen_rows
from tenferro_linalg.krylov._invariant import inner_products
from tenferro_linalg.krylov._krylov_bases import noise
from tenferro_linalg.krylov._operators import as_operator, is_matrix, known
from tenferro_runtime.extension import ArgumentError
from tenferro_runtime.ir import here


def _svds(A: Any, v0: Any, maxiter: Any, tol: Any, *, k: int, ncv: int | None, vectors: bool) -> Any:
    operator, dtype = as_operator(A, "svds")
    rmatvec = operator.rmatvec
    if rmatvec is None:
        raise ArgumentError(f"svds needs the adjoint of a function{here()}; pass LinearOperator(matvec, rmatvec)")
    if v0 is None:
        if dtype is None:
            raise ArgumentError(f"svds does not know what a function acts on{here()}; pass a vector to start with, v0")
        v0 = noise(A.shape[1], dtype, 1.0)
    v0 = inexact(v0)
    if v0.ndim != 1:
        raise ArgumentError(f"svds takes operators on vectors{here()}, got a start of shape {v0.shape}")
    _, rows, _, _ = eigen_rows(lambda x: rmatvec(operator.matvec(x)), k, "LA", v0, ncv, maxiter, tol, "svds")
    rows = solve_triangular(tr.conj(cholesky(inner_products(rows, rows))), rows, lower=True)
    image = tr.stack([inexact(operator.matvec(rows[i])) for i in range(k)], axis=1)
    if not vectors:
        return svdvals(image)
    u, s, vh = svd(image, full_matrices=False)
    return SVDResult(u, s, vh @ tr.conj(rows))


_compiled: Final = tr.compile(_svds, static_argnames=("k", "ncv", "vectors"))


def svds(
    A: Any,
    k: int = 6,
    *,
    v0: Any = None,
    ncv: int | None = None,
    maxiter: int | None = None,
    tol: float = 0.0,
    return_singular_vectors: bool = True,
) -> Any:
    """The largest singular values of an operator and their vectors, by Lanczos on ``A^H A``.

    The values are those of A on the subspace that Lanczos finds, so that they have the accuracy of `svd` as long as
    they are not much smaller than the largest. The derivative is that of the subspace, as for `eigsh`, and of the small
    singular value decomposition on it.

    Args:
        A: a matrix, dense or sparse, or a `LinearOperator` with its adjoint, on vectors.
        k: number of triplets.
        v0: the vector to start with, which an operator that is no matrix needs.
        ncv: number of vectors that are kept orthogonal, by default the larger of 20 and ``2 k + 1``.
        maxiter: the greatest number of restarts, by default 300 more than ten times the number of unknowns.
        tol: tolerance of residuals relative to the square of the largest value; what rounding allows by default.
        return_singular_vectors: whether to return vectors, too.

    Returns:
        The triple ``(U, S, Vh)`` with descending values; the values alone if vectors are not asked for.

    Raises:
        ConvergenceError: triplets have not converged.
        DegenerateError: a derivative is asked for of a subspace that ends within a multiplet.
        GaugeError: a derivative depends on the choice of vectors.

    >>> A = tr.asarray([[3.0, 0.0, 0.0], [0.0, -2.0, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, 0.0]])
    >>> tr.linalg.svds(A, 2).S
    Tensor([3., 2.])
    """
    A = known(A)
    run = _compiled if is_matrix(A) else _svds
    return run(A, v0, maxiter, tol, k=k, ncv=ncv, vectors=bool(return_singular_vectors))
