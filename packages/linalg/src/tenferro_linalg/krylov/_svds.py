"""`svds`: the largest singular values of an operator, and their vectors."""

from __future__ import annotations

from typing import Any, Final, Literal, overload

import tenferro_runtime as tr
from tenferro_linalg._cholesky import cholesky
from tenferro_linalg._operands import inexact
from tenferro_linalg._solve import solve_triangular
from tenferro_linalg._svd import SVDResult, svd, svdvals
from tenferro_linalg.krylov._eigsh import eigen_rows
from tenferro_linalg.krylov._invariant import inner_products
from tenferro_linalg.krylov._krylov_bases import noise
from tenferro_linalg.krylov._operators import as_operator, is_matrix, known
from tenferro_runtime.extension import ArgumentError, Array
from tenferro_runtime.ir import here
from tenferro_tensor_core.tracebacks import boundary


def _svds(A: Any, v0: Any, maxiter: Any, tol: Any, *, k: int, ncv: int | None, vectors: bool) -> Any:
    operator, dtype = as_operator(A, "svds")
    rmatvec = operator.rmatvec
    if rmatvec is None:
        raise ArgumentError(f"svds needs the adjoint of a function{here()}; pass LinearOperator(matvec, rmatvec)")
    if v0 is None:
        if dtype is None:
            raise ArgumentError(f"svds cannot infer the domain of a function{here()}; pass an initial vector, v0")
        v0 = noise(A.shape[1], dtype, 1.0)
    v0 = inexact(v0)
    if v0.ndim != 1:
        raise ArgumentError(f"svds takes operators on vectors{here()}, got v0 of shape {v0.shape}")
    _, rows, _, _ = eigen_rows(lambda x: rmatvec(operator.matvec(x)), k, "LA", v0, ncv, maxiter, tol, "svds")
    rows = solve_triangular(tr.conj(cholesky(inner_products(rows, rows))), rows, lower=True)
    image = tr.stack([inexact(operator.matvec(rows[i])) for i in range(k)], axis=1)
    if not vectors:
        return svdvals(image)
    u, s, vh = svd(image, full_matrices=False)
    return SVDResult(u, s, vh @ tr.conj(rows))


_compiled: Final = tr.compile(_svds, static_argnames=("k", "ncv", "vectors"))


@overload
def svds(
    A: Any, k: int = ..., *, v0: Any = ..., ncv: int | None = ..., maxiter: int | None = ...,
    tol: float = ..., return_singular_vectors: Literal[True] = ...,
) -> tuple[Array, Array, Array]: ...  # fmt: skip
@overload
def svds(
    A: Any, k: int = ..., *, v0: Any = ..., ncv: int | None = ..., maxiter: int | None = ...,
    tol: float = ..., return_singular_vectors: Literal[False],
) -> Array: ...  # fmt: skip
@boundary
def svds(
    A: Any,
    k: int = 6,
    *,
    v0: Any = None,
    ncv: int | None = None,
    maxiter: int | None = None,
    tol: float = 0.0,
    return_singular_vectors: bool = True,
) -> Array | tuple[Array, Array, Array]:
    """The largest singular values of an operator and their vectors, by Lanczos on ``A^H A``.

    The values are those of A on the subspace that Lanczos finds, so they are as accurate as those of `svd` unless they
    are much smaller than the largest. The derivative is that of the subspace, as for `eigsh`, and of the small singular
    value decomposition on it.

    Args:
        A: a matrix (m, n), dense or sparse, or a `LinearOperator` with its adjoint, on vectors.
        k: number of triplets.
        v0: initial vector (n,); required unless `A` is a matrix.
        ncv: number of basis vectors, by default the larger of 20 and ``2 k + 1``.
        maxiter: maximum number of restarts, by default 300 more than ten times the number of unknowns.
        tol: tolerance of residuals relative to the square of the largest value; by default as small as rounding allows.
        return_singular_vectors: whether to return vectors, too.

    Returns:
        The triple ``(U, S, Vh)`` of shapes (m, k), (k,) and (k, n) with descending values; without vectors, the values
        alone.

    Raises:
        ArgumentError: `k` or `ncv` is out of range, or the adjoint or `v0` of a function is missing.
        ShapeError: `k` is larger than the number of unknowns.
        ConvergenceError: triplets have not converged.
        DegenerateError: (derivative) the subspace ends within a multiplet.
        GaugeError: (derivative) the loss depends on the choice of vectors.

    See also: `svd_random`, `svd_trunc`.

    >>> A = tr.asarray([[3.0, 0.0, 0.0], [0.0, -2.0, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, 0.0]])
    >>> tr.linalg.svds(A, 2).S
    Tensor([3., 2.])
    """
    A = known(A)
    run = _compiled if is_matrix(A) else _svds
    return run(A, v0, maxiter, tol, k=k, ncv=ncv, vectors=bool(return_singular_vectors))
