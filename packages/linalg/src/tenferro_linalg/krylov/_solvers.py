"""The public solvers for linear equations."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

import tenferro_runtime as tr
from tenferro_linalg._operands import inexact
from tenferro_linalg.krylov._conjugate_gradients import conjugate_gradients, stabilised_biconjugate_gradients
from tenferro_linalg.krylov._generalised_residuals import generalised_residuals
from tenferro_linalg.krylov._linear import KrylovMethod, KrylovResult, solved
from tenferro_linalg.krylov._minimal_residuals import minimal_residuals
from tenferro_linalg.krylov._operators import is_matrix, known
from tenferro_runtime.extension import ArgumentError
from tenferro_runtime.ir import here
from tenferro_tensor_core.tracebacks import boundary

_CG: Final = KrylovMethod("cg", conjugate_gradients, True, 10)
_BICGSTAB: Final = KrylovMethod("bicgstab", stabilised_biconjugate_gradients, False, 10)
_MINRES: Final = KrylovMethod("minres", minimal_residuals, True, 5)


@boundary
def cg(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    rtol: float = 1e-5,
    atol: float = 0.0,
    maxiter: int | None = None,
    M: Any = None,
    throw: bool = True,
) -> KrylovResult:
    """Solve ``A x = b`` by conjugate gradients, for a positive definite operator (Hestenes and Stiefel 1952).

    The iteration ends when the norm of ``b - A x`` is at most ``max(rtol * norm(b), atol)``. The derivative is that of
    the equation, in both modes and to any order: tangents and cotangents solve the same equation to the same relative
    accuracy, with respect to `b` and to everything that `A` depends on, including values that a function captures.

    Args:
        A: a matrix (n, n), a linear function of arrays in the containers of `b`, or a `LinearOperator`.
        b: right-hand side, arrays in any containers; use ``vmap`` for a batch of equations.
        x0: initial guess, zero by default, without a derivative.
        rtol: relative tolerance.
        atol: absolute tolerance.
        maxiter: maximum number of steps, by default ten times the number of unknowns.
        M: a positive definite preconditioner, which approximates the inverse of `A`: of the same kinds as `A`.
        throw: raise if the tolerance is not reached; otherwise return the last iterate.

    Returns:
        The pair ``(x, info)`` of the solution, in the containers of `b`, and a `KrylovInfo`.

    Raises:
        ArgumentError: a tolerance or `maxiter` is negative.
        ConvergenceError: the tolerance is not reached, now or when a compiled program runs; with ``throw=False``, only
            in the equations of derivatives.
        StructureError: the result of the operator differs from `b` in structure.

    See also: `minres` for indefinite operators, `gmres` and `bicgstab` for general ones.

    >>> A = tr.asarray([[4.0, 1.0], [1.0, 3.0]])
    >>> x, info = tr.linalg.cg(A, [1.0, 2.0])
    >>> x, info.iterations
    (Tensor([0.09090909, 0.63636364]), Tensor(2))
    """
    return _run(_CG, A, b, x0, M, rtol, atol, maxiter, throw)


@boundary
def bicgstab(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    rtol: float = 1e-5,
    atol: float = 0.0,
    maxiter: int | None = None,
    M: Any = None,
    throw: bool = True,
) -> KrylovResult:
    """Solve ``A x = b`` by stabilised biconjugate gradients, for any non-singular operator (van der Vorst 1992).

    Like `cg`, with two products with `A` in each step. Reverse mode solves the adjoint equation; the adjoint of a
    function is derived.

    Args:
        A: a matrix (n, n), a linear function of arrays in the containers of `b`, or a `LinearOperator`.
        b: right-hand side, arrays in any containers.
        x0: initial guess, zero by default, without a derivative.
        rtol: relative tolerance.
        atol: absolute tolerance.
        maxiter: maximum number of steps, by default ten times the number of unknowns.
        M: a preconditioner, which approximates the inverse of `A`: of the same kinds as `A`.
        throw: raise if the tolerance is not reached; otherwise return the last iterate.

    Returns:
        The pair ``(x, info)`` of the solution and a `KrylovInfo`.

    Raises:
        ArgumentError: a tolerance or `maxiter` is negative.
        ConvergenceError: the tolerance is not reached.

    >>> A = tr.asarray([[4.0, 1.0], [-1.0, 3.0]])
    >>> tr.linalg.bicgstab(A, [1.0, 2.0]).x
    Tensor([0.07692308, 0.69230769])
    """
    return _run(_BICGSTAB, A, b, x0, M, rtol, atol, maxiter, throw)


@boundary
def minres(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    rtol: float = 1e-5,
    atol: float = 0.0,
    maxiter: int | None = None,
    M: Any = None,
    throw: bool = True,
) -> KrylovResult:
    """Solve ``A x = b`` by minimal residuals, for a Hermitian operator, definite or not (Paige and Saunders 1975).

    Like `cg`; with a preconditioner, norms of residuals are taken in its metric, relative to that of `b`.

    Args:
        A: a matrix (n, n), a linear function of arrays in the containers of `b`, or a `LinearOperator`.
        b: right-hand side, arrays in any containers.
        x0: initial guess, zero by default, without a derivative.
        rtol: relative tolerance.
        atol: absolute tolerance.
        maxiter: maximum number of steps, by default five times the number of unknowns.
        M: a positive definite preconditioner: of the same kinds as `A`.
        throw: raise if the tolerance is not reached; otherwise return the last iterate.

    Returns:
        The pair ``(x, info)`` of the solution and a `KrylovInfo`.

    Raises:
        ArgumentError: a tolerance or `maxiter` is negative.
        ConvergenceError: the tolerance is not reached.

    >>> A = tr.asarray([[1.0, 2.0], [2.0, -1.0]])
    >>> tr.linalg.minres(A, [5.0, 0.0]).x
    Tensor([1., 2.])
    """
    return _run(_MINRES, A, b, x0, M, rtol, atol, maxiter, throw)


@boundary
def gmres(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    rtol: float = 1e-5,
    atol: float = 0.0,
    restart: int = 20,
    maxiter: int | None = None,
    M: Any = None,
    throw: bool = True,
) -> KrylovResult:
    """Solve ``A x = b`` by restarted GMRES, for any non-singular operator (Saad and Schultz 1986).

    Like `bicgstab`, with one product with `A` in each step and memory for `restart` vectors.

    Args:
        A: a matrix (n, n), a linear function of arrays in the containers of `b`, or a `LinearOperator`.
        b: right-hand side, arrays in any containers.
        x0: initial guess, zero by default, without a derivative.
        rtol: relative tolerance.
        atol: absolute tolerance.
        restart: number of basis vectors.
        maxiter: maximum number of restarts, by default ten times the number of unknowns.
        M: a preconditioner, which approximates the inverse of `A`: of the same kinds as `A`.
        throw: raise if the tolerance is not reached; otherwise return the last iterate.

    Returns:
        The pair ``(x, info)`` of the solution and a `KrylovInfo`.

    Raises:
        ArgumentError: a tolerance, `maxiter` or `restart` is out of range.
        ConvergenceError: the tolerance is not reached, or a cycle made no progress.

    >>> A = tr.asarray([[0.0, 1.0], [-1.0, 3.0]])
    >>> tr.linalg.gmres(A, [1.0, 2.0]).x
    Tensor([1., 1.])
    """
    if restart.__class__ is not int or restart < 1:
        raise ArgumentError(f"gmres takes an integer of at least 1 as restart{here()}, got {restart!r}")
    method = KrylovMethod("gmres", _loop(restart), False, 10)
    return _run(method, A, b, x0, M, rtol, atol, maxiter, throw)


_loops: Final[dict[int, Any]] = {}
"""The GMRES iterations by number of vectors: one object each, because programs are keyed by identity."""


def _loop(restart: int) -> Any:
    if len(_loops) >= 64:
        _loops.clear()
    return _loops.setdefault(restart, partial(generalised_residuals, restart=restart))


def _run(
    method: KrylovMethod, A: Any, b: Any, x0: Any, M: Any, rtol: Any, atol: Any, maxiter: Any, throw: bool
) -> KrylovResult:
    """Solve by a cached program if the operators are matrices; otherwise directly."""
    if maxiter is not None and maxiter.__class__ is int and maxiter < 0:
        raise ArgumentError(f"{method.name} takes an integer of at least 0 as maxiter{here()}, got {maxiter!r}")
    A, M = known(A), known(M)
    if is_matrix(A) and (M is None or is_matrix(M)):
        return _compiled(
            A, inexact(b), x0 if x0 is None else inexact(x0), M, rtol, atol, maxiter, method=method, throw=throw
        )
    return solved(method, A, b, x0, M, rtol, atol, maxiter, throw)


def _of_matrices(
    A: Any, b: Any, x0: Any, M: Any, rtol: Any, atol: Any, maxiter: Any, *, method: KrylovMethod, throw: bool
) -> KrylovResult:
    return solved(method, A, b, x0, M, rtol, atol, maxiter, throw)


_compiled: Final = tr.compile(_of_matrices, static_argnames=("method", "throw"))
