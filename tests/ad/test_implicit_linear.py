"""custom_linear_solve against explicit derivatives and finite differences."""

from typing import Any, NamedTuple

import numpy as np
import pytest

import tenferro_runtime as tr
from equations import (
    DTYPES,
    close,
    dense,
    explicit,
    matrix,
    richardson,
    scipy_gmres,
    size,
    size_of,
    solved_by,
    tolerance,
    vector,
)
from tenferro_ad import check_grads, custom_linear_solve, grad, hessian, jacfwd, jacrev, jvp, variable
from tenferro_tensor_core import GradientError


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("solve", [dense, richardson])
def test_linear_solutions_have_the_derivatives_of_solve(dtype, solve):
    a, b = matrix(dtype, shift=2.0), vector(dtype)
    f, how = solved_by(solve), tolerance(dtype)
    close(f(a, b), explicit(a, b), **how)
    for other in (f, tr.compile(f)) if solve is richardson else (f,):
        close(
            grad(size_of(other), (0, 1))(a, b),
            grad(lambda a, b: size(explicit(a, b)), (0, 1))(a, b),
            **how,
        )
        close(jvp(other, (a, b), (b[:, None] * b, b)), jvp(explicit, (a, b), (b[:, None] * b, b)), **how)


@pytest.mark.parametrize("compiled", [False, True])
def test_linear_solutions_to_third_order(compiled):
    f = lambda a, b: size(solved_by(richardson)(a, b))
    f = tr.compile(f) if compiled else f
    a, b, u = matrix("float64", shift=2.0), vector("float64"), vector("float64", seed=5)
    third = lambda g: jacfwd(hessian(lambda t: g(a + t * u[:, None] * b, b + t * t * u)))(0.3)
    close(third(f), third(lambda a, b: size(explicit(a, b))), rtol=1e-7)
    check_grads(f, (a, b), order=2)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("convention", ["tenferro", "jax"])
def test_the_convention_says_what_the_transpose_is(dtype, convention):
    a, b = matrix(dtype, shift=2.0), vector(dtype)
    turned = (lambda a: a.T) if convention == "jax" else (lambda a: tr.conj(a.T))
    seen = []

    def transposed(f: Any, b: Any) -> Any:
        seen.append((np.asarray(f(b)), np.asarray(turned(a) @ b)))
        return dense(f, b)

    f = lambda a, b: size(custom_linear_solve(lambda x: a @ x, b, dense, transposed, convention=convention))
    how = tolerance(dtype)
    close(grad(f, (0, 1))(a, b), grad(lambda a, b: size(explicit(a, b)), (0, 1))(a, b), **how)
    assert len(seen) == 1
    close(*seen[0], **how)


def test_a_hermitian_equation_needs_one_solver():
    a, b = matrix("complex128", shift=2.0), vector("complex128")
    calls = []

    def solve(f: Any, b: Any) -> Any:
        calls.append(1)
        return dense(f, b)

    f = lambda a, b: size(custom_linear_solve(lambda x: a @ x + tr.conj(a.T) @ x, b, solve, symmetric=True))
    g = lambda a, b: size(explicit(a + tr.conj(a.T), b))
    close(grad(f, (0, 1))(a, b), grad(g, (0, 1))(a, b))
    assert len(calls) == 2


def test_a_function_that_is_linear_over_the_reals_only():
    b = vector("complex128")
    w = tr.asarray(0.3 - 0.4j)

    def conjugating(w: Any, b: Any) -> Any:
        def loop(f: Any, b: Any) -> Any:
            x = b
            for _ in range(100):
                x = x + 0.9 * (b - f(x))
            return x

        return custom_linear_solve(lambda x: x + w * tr.conj(x), b, loop, loop)

    check_grads(conjugating, (w, b), order=2)


def test_scipy_solves_and_is_never_differentiated():
    a, b = matrix("float64", shift=2.0), vector("float64")
    f = lambda a, b: size(solved_by(scipy_gmres)(a, b))
    g = lambda a, b: size(explicit(a, b))
    close(grad(f, (0, 1))(a, b), grad(g, (0, 1))(a, b))
    close(hessian(f, 1)(a, b), hessian(g, 1)(a, b))
    close(jacfwd(jacrev(f))(a, b), jacfwd(jacrev(g))(a, b))
    x, y = variable(a), variable(b)
    f(x, y).backward()
    close((x.grad, y.grad), grad(g, (0, 1))(a, b))


def test_without_a_transposed_solver_there_is_forward_mode():
    a, b = matrix("float64", shift=2.0), vector("float64")
    for f in (
        lambda b: custom_linear_solve(lambda x: a @ x, b, dense),
        tr.compile(lambda b: custom_linear_solve(lambda x: a @ x, b, richardson)),
    ):
        close(jvp(f, (b,), (b,)), jvp(lambda b: explicit(a, b), (b,), (b,)))
        with pytest.raises(GradientError, match="pass transpose_solve or symmetric=True to custom_linear_solve"):
            grad(size_of(f))(b)


def test_the_solver_may_use_the_differentiated_matrix():
    a, b = matrix("float64", shift=2.0), vector("float64")

    def f(a: Any, b: Any) -> Any:
        solve = lambda _, b: tr.linalg.solve(a, b)
        turned = lambda _, b: tr.linalg.solve(a.T, b)
        return size(custom_linear_solve(lambda x: a @ x, b, solve, turned))

    expected = grad(lambda a, b: size(explicit(a, b)), (0, 1))(a, b)
    for g in (grad(f, (0, 1)), tr.compile(grad(f, (0, 1))), grad(tr.compile(f), (0, 1))):
        close(g(a, b), expected)
    close(hessian(f, 1)(a, b), hessian(lambda a, b: size(explicit(a, b)), 1)(a, b))


@pytest.mark.parametrize("compiled", [False, True])
def test_what_comes_beside_the_solution(compiled):
    a, b = matrix("float64", shift=2.0), vector("float64")

    def solve(f: Any, b: Any) -> Any:
        return richardson(f, b), {"rhs": tr.sum(b)}

    def f(a: Any, b: Any) -> Any:
        x, aux = custom_linear_solve(lambda x: a @ x, b, solve, solve, has_aux=True)
        return size(x), aux

    g = lambda a, b: grad(f, (0, 1), has_aux=True)(a, b)
    found, aux = (tr.compile(g) if compiled else g)(a, b)
    close(found, grad(lambda a, b: size(explicit(a, b)), (0, 1))(a, b))
    close(aux["rhs"], tr.sum(b))
    close(f(a, b)[1]["rhs"], tr.sum(b))


class Pair(NamedTuple):
    u: Any
    v: Any


@pytest.mark.parametrize("compiled", [False, True])
def test_linear_equations_of_trees(compiled):
    def f(k: Any, b: Any) -> Any:
        def matvec(x: Any) -> Any:
            return {"p": Pair(2 * x["p"].u + k * x["c"], x["p"].v), "c": 3 * x["c"] - k * x["p"].u}

        return custom_linear_solve(matvec, b, tree_solver, tree_solver)

    def tree_solver(g: Any, b: Any) -> Any:
        x = b
        for _ in range(60):
            r = g(x)
            step = lambda x, b, r: x + 0.4 * (b - r)
            x = {
                "p": Pair(step(x["p"].u, b["p"].u, r["p"].u), step(x["p"].v, b["p"].v, r["p"].v)),
                "c": step(x["c"], b["c"], r["c"]),
            }
        return x

    b = {"p": Pair(vector("float64", 3), tr.asarray(np.ones((2, 2), "float32"))), "c": vector("float64", 3, seed=3)}
    f = tr.compile(f) if compiled else f
    found = f(0.5, b)
    close(2 * found["p"].u + 0.5 * found["c"], b["p"].u)
    check_grads(
        lambda k, u, c: f(k, {"p": Pair(u, b["p"].v), "c": c}), (0.5, b["p"].u, b["c"]), order=1 if compiled else 2
    )
