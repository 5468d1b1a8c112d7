"""`eigs`: some eigenpairs of a general operator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Literal, overload

import tenferro_runtime as tr
from tenferro_linalg._cholesky import cholesky
from tenferro_linalg._eig import EigResult, eig, eigvals
from tenferro_linalg._operands import flag
from tenferro_linalg._solve import solve_triangular
from tenferro_linalg.krylov._conjugate_gradients import length, ratio
from tenferro_linalg.krylov._convergence import KrylovInfo, require_converged
from tenferro_linalg.krylov._eigsh import domain, sizes
from tenferro_linalg.krylov._general_subspaces import PARTS, general_subspace, key, orthonormal
from tenferro_linalg.krylov._generalised_residuals import generalised_residuals
from tenferro_linalg.krylov._hermitian_pairs import default_tolerance
from tenferro_linalg.krylov._invariant import Rows, inner_products, moved, outside
from tenferro_linalg.krylov._operators import RecordedOperator, is_matrix, known
from tenferro_linalg.krylov._spaces import FlatSpace
from tenferro_runtime.extension import ArgumentError, Array, DimLike
from tenferro_runtime.ir import here
from tenferro_runtime.trees import unflatten
from tenferro_tensor_core import ask, finfo, isdtype, real_of
from tenferro_tensor_core.tracebacks import boundary


def _eigs(A: Any, v0: Any, maxiter: Any, tol: Any, *, k: int, which: str, ncv: int | None, vectors: bool) -> Any:
    what = "eigs"
    space, start, linear = domain(A, v0, what, two_sided=True)
    size, kept = _sizes(space.size, k, ncv)
    most = 300 + 10 * space.size if maxiter is None else maxiter
    tol = tr.maximum(tr.asarray(tol, dtype=real_of(space.dtype)), default_tolerance(space.dtype))
    real = isdtype(space.dtype, "real floating")
    constant = tr.stop_gradient

    def on_rows(f: Callable[[Any], Any]) -> Rows:
        return lambda x: tr.stack([_on_field(f, x[i], real=real) for i in range(k)])

    def fixed(x: Any) -> Any:
        return linear.fixed(x)

    found, scale, gap, info = general_subspace(fixed, constant(start), k, which, size, kept, tol, most)
    rows, matrix, info = orthonormal(on_rows(fixed), found, scale, tol, info)
    rows, matrix = require_converged(rows, info, what), require_converged(matrix, info, what)
    if not linear.constant:
        isolated = gap > 10 * tol * scale
        rows, matrix = _differentiated(linear, on_rows, constant(rows), constant(matrix), isolated, real=real)
    matrix = tr.matrix_transpose(matrix)
    if not vectors:
        w = eigvals(matrix)
        return tr.take(w, tr.argsort(key(which, constant(w), real=real)))
    w, u = eig(matrix)
    order = tr.argsort(key(which, constant(w), real=real))
    w, u = tr.take(w, order), tr.take(u, order, axis=1)
    return EigResult(w, _columns(tr.matrix_transpose(u) @ rows, space, k))


def _differentiated(
    linear: RecordedOperator,
    on_rows: Callable[[Callable[[Any], Any]], Rows],
    rows: Any,
    matrix: Any,
    isolated: Any,
    *,
    real: bool,
) -> tuple[Any, Any]:
    """An orthonormal basis of an invariant subspace and the operator on it, with their derivatives.

    Where the subspace ends within a multiplet (not `isolated`), its equation may have solutions, but none is the
    derivative.
    """
    linear.require_adjoint()
    k = matrix.shape[0]
    back = tr.conj(tr.matrix_transpose(matrix))
    pushed = _sylvester(lambda v: _on_field(linear.fixed, v, real=real), matrix, rows, isolated, range(k))
    pulled = _sylvester(
        lambda v: _on_field(linear.fixed_adjoint, v, real=real), back, rows, isolated, range(k - 1, -1, -1)
    )
    x = moved(on_rows(linear), rows, pushed, pulled)
    low = cholesky(inner_products(x, x))
    half = solve_triangular(low, inner_products(x, on_rows(linear)(x)), lower=True)
    whole = solve_triangular(low, tr.conj(tr.matrix_transpose(half)), lower=True)
    return solve_triangular(tr.conj(low), x, lower=True), tr.conj(whole)


def _on_field(f: Callable[[Any], Any], x: Any, *, real: bool) -> Any:
    """Apply an operator to a complex vector, to its real and imaginary parts if the operator acts on real vectors."""
    return f(tr.real(x)) + 1j * f(tr.imag(x)) if real else f(x)


def _sizes(n: DimLike, k: int, ncv: int | None) -> tuple[DimLike, DimLike]:
    """Number of vectors of the basis, and number kept by a restart; leaves room for a conjugate value."""
    size, kept = sizes(n, k, ncv, "eigs")
    if size is not n and ask(size, "<", k + 2):
        raise ArgumentError(f"eigs takes an integer of at least k + 2 = {k + 2} as ncv{here()}, got {ncv!r}")
    return size, kept


def _sylvester(
    apply: Callable[[Any], Any], matrix: Any, rows: Any, isolated: Any, order: range
) -> Callable[[Any], Any]:
    """The solver of ``(A Z - T Z)(1 - P) = R`` for rows Z = Z (1 - P), one row after the other.

    Args:
        apply: the operator on a vector.
        matrix: T, triangular: each row has entries only at rows that precede it in `order`.
        rows: an orthonormal basis of the subspace.
        isolated: whether the equation is regular.
        order: the order of rows.
    """
    k, n = rows.shape
    goal = finfo(real_of(rows.dtype)).eps ** 0.6
    restart = n if ask(n, "<=", 80) else 80

    def solve(rhs: Any) -> Any:
        if ask(n, "<=", k):
            return tr.zeros_like(rhs)

        def step(j: Any, state: Any) -> Any:
            z, steps, worst = state
            i = j if order.step > 0 else k - 1 - j
            r = rhs[i] + outside(rows, matrix[i][None] @ z)[0]

            def shifted(v: Any) -> Any:
                v = outside(rows, v[None])[0]
                return outside(rows, (apply(v) - matrix[i, i] * v)[None])[0]

            limit = goal * tr.maximum(length(r), eps * length(tr.reshape(rhs, (-1,))))
            v, taken, left = generalised_residuals(
                shifted, lambda v: v, r, tr.zeros_like(r), limit, 20 + n, restart=restart
            )
            return z.at[i].set(v), steps + taken, tr.maximum(worst, ratio(left, limit))

        eps = finfo(real_of(rows.dtype)).eps
        first = (tr.zeros_like(rhs), tr.asarray(0), tr.zeros((), dtype=real_of(rows.dtype)))
        z, steps, worst = tr.fori_loop(0, k, step, first)
        report = KrylovInfo(isolated & (worst <= 1), steps, worst * goal)
        return require_converged(outside(rows, z), report, "the derivative of eigs", degenerate=True)

    return solve


def _columns(x: Any, space: FlatSpace, k: int) -> Any:
    """Complex rows as trees of the space, stacked along a new last axis."""
    if space.plain:
        return unflatten(space.tree, [tr.matrix_transpose(x)])

    def tree(v: Any) -> Any:
        if not isdtype(space.dtype, "real floating"):
            return space.tree_of(v)
        return tr.tree_map(lambda a, b: a + 1j * b, space.tree_of(tr.real(v)), space.tree_of(tr.imag(v)))

    return tr.tree_map(lambda *xs: tr.stack(xs, axis=-1), *[tree(x[i]) for i in range(k)])


_compiled: Final = tr.compile(_eigs, static_argnames=("k", "which", "ncv", "vectors"))


@overload
def eigs(
    A: Any, k: int = ..., *, which: str = ..., v0: Any = ..., ncv: int | None = ..., maxiter: int | None = ...,
    tol: float = ..., return_eigenvectors: Literal[True] = ...,
) -> EigResult: ...  # fmt: skip
@overload
def eigs(
    A: Any, k: int = ..., *, which: str = ..., v0: Any = ..., ncv: int | None = ..., maxiter: int | None = ...,
    tol: float = ..., return_eigenvectors: Literal[False],
) -> Array: ...  # fmt: skip
@boundary
def eigs(
    A: Any,
    k: int = 6,
    *,
    which: str = "LM",
    v0: Any = None,
    ncv: int | None = None,
    maxiter: int | None = None,
    tol: float = 0.0,
    return_eigenvectors: bool = True,
) -> Array | EigResult:
    """Some eigenvalues and right eigenvectors of a general operator, by restarted Arnoldi (Stewart 2001).

    The derivative is that of the subspace spanned by the vectors, and of the small eigenvalue problem within it, in
    both modes and to any order. Functions of the subspace and of all its values are differentiable at equal values; a
    loss that depends on the choice of vectors or on their phases is refused as by `eig`; a subspace that ends within a
    multiplet has no derivative. Reverse mode multiplies by the adjoint of the operator.

    Args:
        A: a matrix (n, n), a linear function of arrays in any containers, or a `LinearOperator`.
        k: number of pairs.
        which: the largest or smallest by absolute value (``"LM"``, ``"SM"``), real part (``"LR"``, ``"SR"``) or
            imaginary part (``"LI"``, ``"SI"``; for real operators its absolute value). Values inside the spectrum
            converge slowly, and some may be missed: compute them as the largest of the inverse.
        v0: initial vector; required for a function, whose domain it defines.
        ncv: number of basis vectors, at least ``k + 2``, by default the larger of 20 and ``2 k + 1``.
        maxiter: maximum number of restarts, by default 300 more than ten times the number of unknowns.
        tol: tolerance of residuals relative to the norm of the operator; by default as small as rounding allows.
        return_eigenvectors: whether to return vectors, too.

    Returns:
        The pair ``(eigenvalues, eigenvectors)``, complex: values (k,) in the order of `which`, and vectors of norm 1 in
        the containers of `v0`, stacked along a last axis; without vectors, the eigenvalues alone.

    Raises:
        ArgumentError: `k`, `ncv` or `which` is out of range, or a function comes without `v0`.
        ShapeError: `k` is larger than the number of unknowns.
        ConvergenceError: values have not converged, or their vectors are dependent up to rounding.
        DegenerateError: (derivative) the subspace ends within a multiplet, or single values of one are used.
        GaugeError: (derivative) the loss depends on the phases of vectors.

    See also: `eigsh` for Hermitian operators.

    >>> A = tr.asarray([[0.0, 2.0, 0.0], [-2.0, 0.0, 0.0], [1.0, 0.0, 1.0]])
    >>> tr.round(tr.linalg.eigs(A, 2, return_eigenvectors=False), 12)
    Tensor([0.+2.j, 0.-2.j])
    """
    flag("eigs", "which", which, tuple(PARTS))
    A = known(A)
    run = _compiled if is_matrix(A) else _eigs
    return run(A, v0, maxiter, tol, k=k, which=which, ncv=ncv, vectors=bool(return_eigenvectors))
