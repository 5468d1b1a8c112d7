"""Iterative solvers: values against NumPy, derivatives of the equation, containers, batches, programs and failures."""

from functools import partial
from typing import Any

import numpy as np
import pytest
import scipy.sparse.linalg as reference

import tenferro_runtime as tr
from tenferro_ad import check_grads, grad, hessian
from tenferro_linalg import ConvergenceError, LinearOperator
from tenferro_runtime.extension import ArgumentError, ShapeError

RNG = np.random.default_rng(5)
N = 8
B, C = RNG.normal(size=(2, N, N))
MATRICES = {
    "cg": B @ B.T + N * np.eye(N),
    "minres": B + B.T,
    "bicgstab": B + 6 * np.eye(N),
    "gmres": B + 6 * np.eye(N),
}
RHS = RNG.normal(size=N)


def matrix(name, dtype):
    if not np.issubdtype(dtype, np.complexfloating):
        return MATRICES[name].astype(dtype)
    return (MATRICES[name] + 0.5j * ((C - C.T) if name in ("cg", "minres") else C)).astype(dtype)


def own_adjoint(a):
    return (a + tr.conj(tr.matrix_transpose(a))) / 2


@pytest.mark.parametrize("dtype", ["float32", "complex128"])
@pytest.mark.parametrize("name", MATRICES)
def test_solution(name, dtype):
    """Matrices, functions and pairs with an adjoint have the same solution, in the dtype of the operands."""
    a, b = matrix(name, dtype), RHS.astype(dtype)
    eps = np.finfo(dtype).eps
    solve = getattr(tr.linalg, name)
    for operand in (a, lambda x: tr.asarray(a) @ x, LinearOperator(lambda x: a @ x, lambda y: a.conj().T @ y)):
        x, info = solve(operand, b, rtol=100 * eps)
        assert x.dtype == np.dtype(dtype) and bool(info.converged)
        assert np.linalg.norm(a @ x.numpy() - b) <= 1000 * eps * np.linalg.norm(b)
        assert int(info.iterations) > 0


@pytest.mark.parametrize(
    "name", ["cg", "bicgstab", *[pytest.param(s, marks=pytest.mark.stepwise) for s in ("minres", "gmres")]]
)
def test_derivatives_of_a_matrix(name):
    """The derivative is that of the equation, by matrix and right-hand side."""
    solve, a = getattr(tr.linalg, name), matrix(name, "float64")
    fixed = own_adjoint if name in ("cg", "minres") else lambda a: a

    def f(a, b):
        return tr.sum(solve(fixed(a), b, rtol=1e-13).x ** 3)

    check_grads(f, (tr.asarray(a), tr.asarray(RHS)), order=2 if name == "gmres" else 1)


@pytest.mark.stepwise
@pytest.mark.parametrize("name", ["minres", "gmres"])
def test_derivatives_of_a_function(name):
    """A function that closes over a differentiated complex value, preconditioned by another one."""
    solve, a = getattr(tr.linalg, name), matrix(name, "complex128")
    shift = tr.asarray(np.diag(np.linspace(1.0, 2.0, N)))
    fixed = own_adjoint if name == "minres" else lambda a: a

    def f(a, b):
        x = solve(lambda x: fixed(a) @ x, b, rtol=1e-13, M=lambda r: shift @ r).x
        return tr.sum(tr.abs(x) ** 2)

    check_grads(f, (tr.asarray(a), tr.asarray(RHS + 1j)), order=1)


def test_derivative_does_not_depend_on_the_start():
    """A start changes the steps alone."""
    a = MATRICES["cg"]

    def f(b, start):
        return tr.sum(tr.linalg.cg(a, b, start, rtol=1e-13).x ** 2)

    start = np.linalg.solve(a, RHS) + 0.1
    assert np.allclose(grad(f)(RHS, start), grad(f)(RHS, np.zeros(N)), rtol=1e-10)
    assert not np.any(grad(f, 1)(RHS, start).numpy())
    _, info = tr.linalg.cg(a, RHS, np.linalg.solve(a, RHS))
    assert int(info.iterations) == 0


@pytest.mark.stepwise
def test_containers():
    """Unknowns are arrays in any containers, and Hessians pass through functions of them."""
    b = {"u": tr.asarray(RHS), "v": [tr.asarray(RHS[:6].reshape(2, 3))]}

    def heat(k):
        found = tr.linalg.cg(lambda t: {"u": k * t["u"] + t["v"][0][0, 0], "v": [2 * k * t["v"][0] + first(t["u"])]}, b,
                             rtol=1e-13).x  # fmt: skip
        return tr.sum(found["u"] ** 2) + tr.sum(found["v"][0] ** 3)

    def first(u):
        return tr.zeros((2, 3)).at[0, 0].set(tr.sum(u))

    h = 1e-4
    numeric = (heat(3.0 + h) - 2 * heat(3.0) + heat(3.0 - h)) / h**2
    assert np.isclose(hessian(heat)(3.0).item(), numeric.item(), rtol=1e-5)


@pytest.mark.parametrize(
    "name", [*[pytest.param(s, marks=pytest.mark.stepwise) for s in ("cg", "bicgstab")], "minres", "gmres"]
)
def test_batches_and_programs(name):
    """Lanes end where each of them converges; a compiled call has the same results."""
    solve, a = getattr(tr.linalg, name), MATRICES[name]
    stack, rhs = np.stack([a, 2 * a, a + 1 * np.eye(N)]), np.stack([RHS, RHS[::-1], np.zeros(N)])

    def f(a, b):
        return solve(lambda x: a @ x, b, rtol=1e-12)

    x, info = tr.vmap(f)(tr.asarray(stack), tr.asarray(rhs))
    assert np.allclose(np.einsum("bij,bj->bi", stack, x.numpy()), rhs, atol=1e-9)
    assert int(info.iterations[2]) == 0
    slope = grad(lambda a, b: tr.sum(f(a, b).x ** 2))
    lanes = tr.vmap(slope)(tr.asarray(stack), tr.asarray(rhs))
    assert np.allclose(lanes[0], tr.compile(slope)(stack[0], rhs[0]), atol=1e-9)


@pytest.mark.parametrize(("m", "n"), [(7, 4), (4, 7)])
@pytest.mark.parametrize("damp", [pytest.param(0.0, marks=pytest.mark.stepwise), 0.6])
@pytest.mark.parametrize("name", ["lsqr", "lsmr"])
def test_least_squares(m, n, damp, name):
    """More equations than unknowns, and fewer."""
    a, b = RNG.normal(size=(m, n)), RNG.normal(size=m)
    tight = {"atol": 1e-13, "btol": 1e-13, "maxiter": 200}
    x, info = getattr(tr.linalg, name)(a, b, damp=damp, **tight)
    expected = reference.lsqr(a, b, damp=damp, atol=1e-14, btol=1e-14)[0]
    assert np.allclose(x, expected, atol=1e-11) and bool(info.converged)
    left = np.hypot(np.linalg.norm(b - a @ expected), damp * np.linalg.norm(expected))
    assert np.isclose(info.residual.item(), left, atol=1e-10)

    def f(a, b):
        return tr.sum(getattr(tr.linalg, name)(a, b, damp=damp, **tight).x ** 3)

    check_grads(f, (tr.asarray(a), tr.asarray(b)), order=2 if m > n and not damp and name == "lsqr" else 1)


@pytest.mark.stepwise
def test_least_squares_of_a_function():
    """The adjoint of a function is derived from it; a start keeps the nearest solution."""
    a, b, start = RNG.normal(size=(3, 5)) + 1j, RNG.normal(size=3), np.ones(5) + 0j

    def f(a):
        return tr.linalg.lsqr(lambda x: a @ x, b + 0j, start, atol=1e-13, btol=1e-13, maxiter=50).x

    expected = start + np.linalg.pinv(a) @ (b - a @ start)
    assert np.allclose(f(tr.asarray(a)), expected, atol=1e-10)
    check_grads(lambda a: tr.sum(tr.abs(f(a)) ** 2), (tr.asarray(a),), order=1)


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")  # by kernels that are not machine code
@pytest.mark.parametrize("compiled", [False, True])
def test_no_convergence_is_an_error(compiled):
    """Too few steps, a singular matrix, an indefinite one for cg, entries that are not finite: now and in programs."""
    run: Any = tr.compile if compiled else lambda f: f
    a = MATRICES["cg"]
    few: list[tuple[str, Any, Any, dict[str, Any]]] = [
        ("cg", a, RHS, {"maxiter": 2}),
        ("cg", -a, RHS, {}),
        ("gmres", np.ones((3, 3)), np.arange(3.0), {}),
        ("bicgstab", np.zeros((3, 3)), np.ones(3), {}),
        ("minres", np.diag([1.0, 0.0]), np.ones(2), {}),
        ("cg", a, np.full(N, np.nan), {}),
        ("lsqr", a, np.full(N, np.inf), {}),
        ("lsmr", a, np.full(N, np.inf), {}),
    ]
    for name, operator, rhs, options in few:
        solve = partial(getattr(tr.linalg, name), **options)
        with pytest.raises(ConvergenceError, match="has not converged after"):
            run(solve)(operator, rhs)
    with pytest.raises(ConvergenceError, match=r"2 of 3 operators of the batch, the first at index \(0,\)"):
        run(tr.vmap(lambda b: tr.linalg.cg(a, b, maxiter=2)))(np.stack([RHS, np.zeros(N), RHS]))


def test_last_iterate_on_request():
    """Without an error, the report says that the tolerance was not reached."""
    x, info = tr.linalg.cg(MATRICES["cg"], RHS, maxiter=2, throw=False)
    assert not bool(info.converged) and int(info.iterations) == 2
    assert np.isclose(np.linalg.norm(MATRICES["cg"] @ x.numpy() - RHS), info.residual.item())


def test_arguments():
    """An operator that is none, extents that do not fit, fields that are mixed, and tolerances below zero."""
    a = MATRICES["cg"]
    with pytest.raises(ArgumentError, match="cg takes a matrix, a function or a LinearOperator"):
        tr.linalg.cg("a", RHS)
    with pytest.raises(ShapeError):
        tr.linalg.cg(a, RHS[:3])
    with pytest.raises(ShapeError, match="use vmap for a batch"):
        tr.linalg.minres(a[None], RHS)
    with pytest.raises(ArgumentError, match="mixes real and complex"):
        tr.linalg.cg(lambda x: x, [RHS, RHS + 0j])
    with pytest.raises(tr.StructureError, match="give the right-hand side the dtype of the result"):
        tr.linalg.cg(lambda x: 1j * x, RHS)
    with pytest.raises(ArgumentError, match="at least 0 as rtol"):
        tr.linalg.cg(lambda x: x, RHS, rtol=-1.0)
    with pytest.raises(ArgumentError, match="at least 1 as restart"):
        tr.linalg.gmres(a, RHS, restart=0)
    with pytest.raises(ArgumentError, match="pass x0 or"):
        tr.linalg.lsqr(lambda x: x, RHS)
