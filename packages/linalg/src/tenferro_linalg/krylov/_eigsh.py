"""`eigsh`: some eigenpairs of a Hermitian operator."""

from __future__ import annotations

from typing import Any, Final, Literal, overload

import tenferro_runtime as tr
from tenferro_linalg._cholesky import cholesky
from tenferro_linalg._eigh import EighResult, eigh
from tenferro_linalg._operands import flag, inexact
from tenferro_linalg._solve import solve_triangular
from tenferro_linalg.krylov._conjugate_gradients import length
from tenferro_linalg.krylov._convergence import KrylovInfo, require_converged
from tenferro_linalg.krylov._hermitian_pairs import ORDERS, default_tolerance, hermitian_pairs
from tenferro_linalg.krylov._invariant import inner_products, moved
from tenferro_linalg.krylov._krylov_bases import noise
from tenferro_linalg.krylov._minimal_residuals import minimal_residuals
from tenferro_linalg.krylov._operators import RecordedOperator, as_operator, is_matrix, known
from tenferro_linalg.krylov._spaces import FlatSpace, space_of
from tenferro_linalg.sparse import SparseArray
from tenferro_runtime.extension import ArgumentError, Array, DimLike, ShapeError, Spec
from tenferro_runtime.ir import here
from tenferro_runtime.trees import LEAF, unflatten
from tenferro_tensor_core import ask, finfo, real_of
from tenferro_tensor_core.tracebacks import boundary


def domain(A: Any, v0: Any, what: str, *, two_sided: bool) -> tuple[FlatSpace, Any, RecordedOperator]:
    """The space that an operator acts on, the initial vector, and the operator recorded.

    Raises:
        ArgumentError: a function comes without an initial vector.
    """
    operator, dtype = as_operator(A, what)
    if v0 is not None:
        space, start = space_of(v0, f"the start v0 of {what}", dtype)
        start = tr.stop_gradient(start)
    elif dtype is not None:
        matrix = A if isinstance(A, SparseArray) else inexact(A)
        place = inexact(matrix.data).spec.place if isinstance(matrix, SparseArray) else matrix.spec.place
        space = FlatSpace(LEAF, [Spec(tuple(matrix.shape[1:]), dtype, place)], what)
        start = noise(space.size, dtype, 1.0)
    else:
        raise ArgumentError(f"{what} cannot infer the domain of a function{here()}; pass an initial vector, v0")
    return space, start, RecordedOperator(operator, space, space, what, two_sided=two_sided)


def sizes(n: DimLike, k: int, ncv: int | None, what: str) -> tuple[DimLike, DimLike]:
    """Number of vectors of the basis, and number kept by a restart."""
    if k.__class__ is not int or k < 1:
        raise ArgumentError(f"{what} takes an integer of at least 1 as k{here()}, got {k!r}")
    if ask(n, "<", k):
        raise ShapeError(f"{what} cannot find {k} values{here()}: the operator has only {n}; lower k")
    size = max(2 * k + 1, 20) if ncv is None else ncv
    if size.__class__ is not int or size <= k:
        raise ArgumentError(f"{what} takes an integer above k={k} as ncv{here()}, got {ncv!r}")
    if ask(n, "<=", size):
        return n, k
    return size, k + (size - k) // 2


def eigen_rows(A: Any, k: int, which: str, v0: Any, ncv: int | None, maxiter: Any, tol: Any, what: str) -> Any:
    """Eigenvalues; rows that span their subspace, with its derivative; the image of these; the space of a row."""
    space, start, linear = domain(A, v0, what, two_sided=False)
    size, kept = sizes(space.size, k, ncv, what)
    most = 300 + 10 * space.size if maxiter is None else maxiter
    tol = tr.maximum(tr.asarray(tol, dtype=real_of(space.dtype)), default_tolerance(space.dtype))
    constant = tr.stop_gradient

    def fixed(x: Any) -> Any:
        return linear.fixed(x)

    w, rows, info = hermitian_pairs(fixed, constant(start), k, which, size, kept, tol, most)
    w, rows = require_converged(w, info, what), require_converged(rows, info, what)

    def apply(x: Any) -> Any:
        return tr.stack([linear(x[i]) for i in range(k)])

    if linear.constant:
        return w, rows, None, space
    w, rows = constant(w), constant(rows)
    goal = finfo(real_of(space.dtype)).eps ** 0.6

    def beside(rhs: Any) -> Any:
        shape = rhs.spec.shape

        def shifted(z: Any) -> Any:
            z = tr.reshape(z, shape)
            z = z - tr.matrix_transpose(inner_products(rows, z)) @ rows
            image = tr.stack([fixed(z[i]) for i in range(k)]) - tr.astype(w, z.dtype)[:, None] * z
            image = image - tr.matrix_transpose(inner_products(rows, image)) @ rows
            return tr.reshape(image, (-1,))

        flat = tr.reshape(rhs, (-1,))
        limit = goal * length(flat)
        z, steps, left = minimal_residuals(shifted, lambda v: v, flat, tr.zeros_like(flat), limit, 5 * k * space.size)
        report = KrylovInfo(left <= limit, steps, left)
        return tr.reshape(require_converged(z, report, f"the derivative of {what}", degenerate=True), shape)

    x = moved(apply, rows, beside, beside)
    return w, x, apply(x), space


def _eigsh(A: Any, v0: Any, maxiter: Any, tol: Any, *, k: int, which: str, ncv: int | None, vectors: bool) -> Any:
    w, x, image, space = eigen_rows(A, k, which, v0, ncv, maxiter, tol, "eigsh")
    if image is not None:
        low = cholesky(inner_products(x, x))
        half = solve_triangular(low, inner_products(x, image), lower=True)
        whole = solve_triangular(low, tr.conj(tr.matrix_transpose(half)), lower=True)
        w, u = eigh((whole + tr.conj(tr.matrix_transpose(whole))) / 2)
        u = solve_triangular(low, u, lower=True, trans="C")
        x = tr.matrix_transpose(u) @ x
    if not vectors:
        return w
    return EighResult(w, columns(x, space, k))


def columns(x: Any, space: FlatSpace, k: int) -> Any:
    """Rows as trees of the space, stacked along a new last axis."""
    if space.plain:
        return unflatten(space.tree, [tr.matrix_transpose(x)])
    trees = [space.tree_of(x[i]) for i in range(k)]
    return tr.tree_map(lambda *xs: tr.stack(xs, axis=-1), *trees)


_compiled: Final = tr.compile(_eigsh, static_argnames=("k", "which", "ncv", "vectors"))


@overload
def eigsh(
    A: Any, k: int = ..., *, which: str = ..., v0: Any = ..., ncv: int | None = ..., maxiter: int | None = ...,
    tol: float = ..., return_eigenvectors: Literal[True] = ...,
) -> EighResult: ...  # fmt: skip
@overload
def eigsh(
    A: Any, k: int = ..., *, which: str = ..., v0: Any = ..., ncv: int | None = ..., maxiter: int | None = ...,
    tol: float = ..., return_eigenvectors: Literal[False],
) -> Array: ...  # fmt: skip
@boundary
def eigsh(
    A: Any,
    k: int = 6,
    *,
    which: str = "LM",
    v0: Any = None,
    ncv: int | None = None,
    maxiter: int | None = None,
    tol: float = 0.0,
    return_eigenvectors: bool = True,
) -> Array | EighResult:
    """Some eigenvalues and eigenvectors of a Hermitian operator, by thick-restart Lanczos (Wu and Simon 2000).

    Equal eigenvalues are found with their multiplicity, or as often as `k` allows. The derivative is that of the
    subspace spanned by the vectors, and of the small eigenvalue problem within it, in both modes and to any order.
    Functions of the subspace are differentiable at equal eigenvalues; a loss that depends on the choice of vectors is
    refused as by `eigh`; a subspace that ends within a multiplet has no derivative.

    Args:
        A: a Hermitian matrix (n, n), a Hermitian function of arrays in any containers, or a `LinearOperator`.
        k: number of pairs.
        which: ``"SA"`` and ``"LA"`` for the smallest and largest, ``"SM"`` and ``"LM"`` by absolute value. Values
            inside the spectrum converge slowly.
        v0: initial vector; required for a function, whose domain it defines.
        ncv: number of basis vectors, by default the larger of 20 and ``2 k + 1``.
        maxiter: maximum number of restarts, by default 300 more than ten times the number of unknowns.
        tol: tolerance of residuals relative to the largest eigenvalue; by default as small as rounding allows.
        return_eigenvectors: whether to return vectors, too.

    Returns:
        The pair ``(eigenvalues, eigenvectors)``: real values (k,) in ascending order, and vectors in the containers of
        `v0`, stacked along a last axis; without vectors, the eigenvalues alone.

    Raises:
        ArgumentError: `k`, `ncv` or `which` is out of range, or a function comes without `v0`.
        ShapeError: `k` is larger than the number of unknowns.
        ConvergenceError: pairs have not converged.
        DegenerateError: (derivative) the subspace ends within a multiplet.
        GaugeError: (derivative) the loss depends on the choice of vectors of equal eigenvalues, or on their phases.

    See also: `eigh` for all pairs of a matrix, `eigs`, `lanczos`.

    >>> A = tr.asarray([[2.0, 1.0, 0.0], [1.0, 2.0, 1.0], [0.0, 1.0, 2.0]])
    >>> tr.linalg.eigsh(A, 2, which="SA").eigenvalues
    Tensor([0.58578644, 2.        ])
    """
    flag("eigsh", "which", which, tuple(ORDERS))
    A = known(A)
    run = _compiled if is_matrix(A) else _eigsh
    return run(A, v0, maxiter, tol, k=k, which=which, ncv=ncv, vectors=bool(return_eigenvectors))
