"""`lsqr` and `lsmr`: least squares by bidiagonalisation, with the derivative of the normal equation.

With at least as many equations as unknowns, x is the root of A^H (A x - b) + damp^2 x. With fewer, it is the
minimum-norm solution A^H w, where w is the root of A A^H w + damp^2 w - b.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import tenferro_runtime as tr
from tenferro_linalg._operands import inexact
from tenferro_linalg.krylov._conjugate_gradients import conjugate_gradients, length
from tenferro_linalg.krylov._convergence import KrylovInfo, require_converged
from tenferro_linalg.krylov._least_residuals import least_residuals, scaled
from tenferro_linalg.krylov._least_slopes import least_slopes
from tenferro_linalg.krylov._linear import KrylovResult, implicit
from tenferro_linalg.krylov._operators import RecordedOperator, as_operator, is_matrix, known
from tenferro_linalg.krylov._spaces import FlatSpace, space_of
from tenferro_runtime.equations import closed
from tenferro_runtime.extension import ArgumentError
from tenferro_runtime.ir import here
from tenferro_runtime.trees import flatten
from tenferro_tensor_core import ask, finfo, promote, real_of
from tenferro_tensor_core.tracebacks import boundary


def _domain(A: Any, b: FlatSpace, rhs: Any, x0: Any, what: str) -> tuple[FlatSpace, Any]:
    """The space of the unknowns, and the initial guess."""
    if x0 is not None:
        return space_of(x0, f"the initial guess x0 of {what}", b.dtype)
    operator, _ = as_operator(A, what)
    if operator.rmatvec is None:
        raise ArgumentError(
            f"{what} cannot infer the shape of the unknowns of a function{here()}; pass x0 or "
            "LinearOperator(matvec, rmatvec)"
        )
    rmatvec = operator.rmatvec
    like = flatten(rmatvec(b.tree_of(tr.zeros_like(tr.stop_gradient(rhs)))))
    space = FlatSpace(like[1], [x.spec for x in like[0]], what)
    return space, tr.zeros((space.size,), dtype=space.dtype)


METHODS: Final = {"lsqr": least_residuals, "lsmr": least_slopes}


def least_squares(
    A: Any, b: Any, x0: Any, damp: Any, atol: Any, btol: Any, maxiter: Any, throw: bool, what: str
) -> KrylovResult:
    """Implementation of `lsqr` and `lsmr`; `what` is the name of the method."""
    operator, dtype = as_operator(A, what)
    for leaf in flatten(x0)[0]:
        dtype = promote(leaf.dtype, dtype or leaf.dtype) if hasattr(leaf, "dtype") else dtype
    image, rhs = space_of(b, f"the right-hand side of {what}", dtype)
    domain, start = _domain(A, image, rhs, x0, what)
    linear = RecordedOperator(operator, domain, image, what, two_sided=True)
    linear.require_adjoint()
    real = real_of(image.dtype)
    start = tr.stop_gradient(start)
    damp, atol, btol = [tr.stop_gradient(tr.asarray(v, dtype=real)) for v in (damp, atol, btol)]
    most = 2 * domain.size if maxiter is None else maxiter
    wide = bool(ask(domain.size, ">", image.size))
    if x0 is not None:
        rhs = rhs - linear(start)
    unknown = image if wide else domain

    def primal(zero: Any, rhs: Any) -> tuple[Any, KrylovInfo]:
        y, info = METHODS[what](linear, rhs, zero, damp, atol, btol, most, wide)
        return (require_converged(y, info, what) if throw else y), info

    def normal(y: Any) -> Any:
        image_of_y = linear(linear.adjoint(y)) if wide else linear.adjoint(linear(y))
        return image_of_y + scaled(damp**2, y)

    def solution(y: Any, info: KrylovInfo) -> KrylovResult:
        return KrylovResult(domain.tree_of(start + (linear.adjoint(y) if wide else y)), info)

    zero = tr.zeros((unknown.size,), dtype=unknown.dtype)
    if linear.constant and not any(v.level for v in (rhs, start, zero)):
        return solution(*primal(zero, rhs))

    def tangents(xs: list[Any]) -> list[Any]:
        y = xs[1]
        limit = tr.maximum(atol, 100 * finfo(real).eps) * length(y)
        x, steps, left = conjugate_gradients(normal, lambda v: v, y, tr.zeros_like(y), limit, 4 * most)
        return [require_converged(x, KrylovInfo(left <= limit, steps, left), f"the equation of derivatives of {what}")]

    goal: Callable[[], Any] = (lambda: rhs) if wide else lambda: linear.adjoint(rhs)
    equation = closed(what, lambda xs: [normal(xs[0]) - goal()], [unknown.spec])
    solve = closed(what, lambda xs: flatten(primal(xs[0], rhs))[0], [unknown.spec])
    both = closed(what, tangents, [unknown.spec, unknown.spec])
    y, *rest = implicit(equation, solve, both, both, zero)
    return solution(y, KrylovInfo(*rest))


@boundary
def lsqr(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    damp: float = 0.0,
    atol: float = 1e-6,
    btol: float = 1e-6,
    maxiter: int | None = None,
    throw: bool = True,
) -> KrylovResult:
    """Minimise ``norm(b - A x)**2 + damp**2 * norm(x - x0)**2`` by LSQR (Paige and Saunders 1982).

    Of several minima, the one nearest to `x0` is found. The iteration ends when the residual is at most ``btol *
    norm(b) + atol * norm(A) * norm(x)``, or its product with the adjoint at most ``atol`` relative to the norms. The
    derivative is that of the normal equation, which exists if `A` has full rank or with `damp`; the equations of
    tangents and cotangents are solved by `cg`.

    Args:
        A: a matrix (m, n), a `LinearOperator`, or a linear function, whose adjoint is then derived.
        b: right-hand side, arrays in any containers.
        x0: initial guess, zero by default, without a derivative; required for a function without an adjoint.
        damp: weight of the norm of the solution, without a derivative.
        atol: tolerance relative to the operator.
        btol: tolerance relative to the right-hand side.
        maxiter: maximum number of steps, by default twice the number of unknowns.
        throw: raise if the tolerance is not reached; otherwise return the last iterate.

    Returns:
        The pair ``(x, info)`` of the solution and a `KrylovInfo`, whose residual includes the damping.

    Raises:
        ArgumentError: a tolerance is negative, or the shape of the unknowns is not known.
        ConvergenceError: the tolerance is not reached, or that of an equation of a derivative.

    See also: `lsmr`, `lstsq` for matrices of any rank.

    >>> A = tr.asarray([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]])
    >>> tr.linalg.lsqr(A, [1.0, 3.0, 5.0]).x
    Tensor([1., 2.])
    """
    return _solved(A, b, x0, damp, atol, btol, maxiter, throw, "lsqr")


@boundary
def lsmr(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    damp: float = 0.0,
    atol: float = 1e-6,
    btol: float = 1e-6,
    maxiter: int | None = None,
    throw: bool = True,
) -> KrylovResult:
    """Minimise ``norm(b - A x)**2 + damp**2 * norm(x - x0)**2`` by LSMR (Fong and Saunders 2011).

    Each step minimises the gradient ``norm(A^H r)``, which decreases monotonically, so the iteration may end earlier
    than `lsqr` if the tolerance is loose. Arguments and derivatives are those of `lsqr`.

    Args:
        A: a matrix (m, n), a `LinearOperator`, or a linear function, whose adjoint is then derived.
        b: right-hand side, arrays in any containers.
        x0: initial guess, zero by default, without a derivative; required for a function without an adjoint.
        damp: weight of the norm of the solution, without a derivative.
        atol: tolerance relative to the operator.
        btol: tolerance relative to the right-hand side.
        maxiter: maximum number of steps, by default twice the number of unknowns.
        throw: raise if the tolerance is not reached; otherwise return the last iterate.

    Returns:
        The pair ``(x, info)`` of the solution and a `KrylovInfo`, whose residual includes the damping.

    Raises:
        ArgumentError: a tolerance is negative, or the shape of the unknowns is not known.
        ConvergenceError: the tolerance is not reached, or that of an equation of a derivative.

    >>> A = tr.asarray([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]])
    >>> tr.linalg.lsmr(A, [1.0, 3.0, 5.0]).x
    Tensor([1., 2.])
    """
    return _solved(A, b, x0, damp, atol, btol, maxiter, throw, "lsmr")


def _solved(
    A: Any, b: Any, x0: Any, damp: Any, atol: Any, btol: Any, maxiter: Any, throw: bool, what: str
) -> KrylovResult:
    A = known(A)
    if not is_matrix(A):
        return least_squares(A, b, x0, damp, atol, btol, maxiter, throw, what)
    x0 = x0 if x0 is None else inexact(x0)
    return _compiled(A, inexact(b), x0, damp, atol, btol, maxiter, throw=throw, what=what)


_compiled: Final = tr.compile(least_squares, static_argnames=("throw", "what"))
