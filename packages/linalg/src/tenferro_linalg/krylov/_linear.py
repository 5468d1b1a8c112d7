"""Solutions of linear equations by iteration, with the derivative of the equation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import tenferro_runtime as tr
from tenferro_linalg.krylov._conjugate_gradients import length, ratio
from tenferro_linalg.krylov._convergence import KrylovInfo, require_converged
from tenferro_linalg.krylov._operators import RecordedOperator, as_operator
from tenferro_linalg.krylov._spaces import space_of
from tenferro_runtime.equations import Closed, closed, root
from tenferro_runtime.extension import ArgumentError
from tenferro_runtime.ir import here
from tenferro_runtime.trees import flatten
from tenferro_tensor import Array
from tenferro_tensor_core import promote, real_of

Loop = Callable[..., Any]
"""``loop(apply, precondition, b, x, limit, maxiter)``: the solution, the number of steps, the norm of the residual."""


class KrylovMethod(NamedTuple):
    """An iteration for linear equations.

    Attributes:
        name: the public function.
        loop: the iteration.
        hermitian: whether the operator and the preconditioner are self-adjoint.
        steps: default bound of the steps, as a multiple of the number of unknowns.
    """

    name: str
    loop: Loop
    hermitian: bool
    steps: int


class KrylovResult(NamedTuple):
    """Solution of an iterative method.

    Attributes:
        x: the solution, in the containers of the right-hand side.
        info: a `KrylovInfo`.
    """

    x: Any
    info: KrylovInfo


def solved(
    method: KrylovMethod, A: Any, b: Any, x0: Any, M: Any, rtol: Any, atol: Any, maxiter: Any, throw: bool
) -> KrylovResult:
    """Solve ``A x = b``, and differentiate the equation rather than the iteration."""
    name = method.name
    operator, dtype = as_operator(A, name)
    for leaf in flatten(x0)[0]:
        dtype = promote(leaf.dtype, dtype or leaf.dtype) if isinstance(leaf, Array) else dtype
    space, rhs = space_of(b, f"the right-hand side of {name}", dtype)
    two_sided = not method.hermitian
    linear = RecordedOperator(operator, space, space, name, two_sided=two_sided)
    by = (
        None
        if M is None
        else RecordedOperator(
            as_operator(M, f"the preconditioner of {name}")[0], space, space, name, two_sided=two_sided
        )
    )
    start = tr.zeros_like(tr.stop_gradient(rhs)) if x0 is None else space.flat(x0, f"the initial guess x0 of {name}")
    most = method.steps * space.size if maxiter is None else maxiter
    rtol, atol = _tolerance(name, "rtol", rtol, space.dtype), _tolerance(name, "atol", atol, space.dtype)

    def same(v: Any) -> Any:
        return v

    def forward(b: Any, x: Any, limit: Any) -> Any:
        return method.loop(linear, same if by is None else by, b, x, limit, most)

    def backward(b: Any, x: Any, limit: Any) -> Any:
        return method.loop(linear.adjoint, same if by is None else by.adjoint, b, x, limit, most)

    def primal(x: Any, rhs: Any) -> tuple[Any, KrylovInfo]:
        limit = tr.maximum(rtol * length(rhs), atol)
        x, steps, size = forward(rhs, x, limit)
        info = KrylovInfo(size <= limit, steps, size)
        return (require_converged(x, info, name) if throw else x), info

    if not any(v.level for v in (*linear.program.captured, *(by.program.captured if by else ()), rhs, start)):
        x, info = primal(start, rhs)
        return KrylovResult(space.tree_of(x), info)

    def tangents(iterate: Callable[..., Any], mode: str) -> Closed:
        def solve(xs: list[Any]) -> list[Any]:
            y = xs[1]
            size = length(y)
            limit = tr.maximum(rtol, ratio(atol, length(rhs))) * size
            x, steps, left = iterate(y, tr.zeros_like(y), limit)
            info = KrylovInfo(left <= limit, steps, left)
            return [require_converged(x, info, f"the equation of the {mode} of {name}")]

        return closed(name, solve, [space.spec, space.spec])

    equation = closed(name, lambda xs: [linear(xs[0]) - rhs], [space.spec])
    solve = closed(name, lambda xs: flatten(primal(xs[0], rhs))[0], [space.spec])
    pushed = tangents(forward, "tangents")
    pulled = pushed if method.hermitian else tangents(backward, "cotangents")
    x, *rest = implicit(equation, solve, pushed, pulled, tr.stop_gradient(start))
    return KrylovResult(space.tree_of(x), KrylovInfo(*rest))


def implicit(equation: Closed, solve: Closed, pushed: Closed, pulled: Closed, start: Any) -> tuple[Any, ...]:
    """The solution of an equation as an operation, and the auxiliary results of its solver.

    Args:
        equation: the function that is zero at the solution.
        solve: maps an initial guess to a solution and auxiliary results.
        pushed: solves the linear equation of tangents, for a solution and a right-hand side.
        pulled: solves the adjoint one.
        start: the initial guess.
    """
    parts = (equation, solve, pushed, pulled)
    return root(
        *[v for part in parts for v in part.captured], start,
        f=equation.program, solve=solve.program, tangent_solve=pushed.program, adjoint_solve=pulled.program,
        consts=tuple([len(part.captured) for part in parts]),
    )  # fmt: skip


def _tolerance(name: str, parameter: str, value: Any, dtype: Any) -> Any:
    if value.__class__ in (int, float) and not value >= 0:
        raise ArgumentError(f"{name} takes a number of at least 0 as {parameter}{here()}, got {value!r}")
    return tr.stop_gradient(tr.asarray(value, dtype=real_of(dtype)))
