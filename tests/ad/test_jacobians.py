"""Jacobians and Hessians: one program for all sizes, batches within a budget, and what a function returns beside."""

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tenferro_runtime as tr
from tenferro_ad import grad, hessian, jacfwd, jacrev
from tenferro_tensor import Spec, tensor
from tenferro_tensor_core import ArgumentError, ShapeError

n, m = tr.dim("n"), tr.dim("m")
FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "jacfwd": lambda x: jacfwd(lambda v: tr.sin(v) * tr.sum(v))(x),
    "jacrev": lambda x: jacrev(lambda v: tr.sum(tr.sin(v), axis=0) * v[0])(x),
    "hessian": lambda x: hessian(lambda v: tr.sum(tr.sin(v) * v) ** 2)(x),
}
X = np.random.default_rng(0).normal(size=(3, 2))


def energy(x: Any) -> Any:
    return tr.sum(tr.sin(x) * x) ** 2 + tr.sum(x[0] * x[1])


@pytest.mark.parametrize("name", FUNCTIONS)
def test_sizes_stay_open(name: str) -> None:
    f = FUNCTIONS[name]
    program = tr.trace(f, Spec((n, m), X.dtype), examples={"n": 3, "m": 2})
    assert program.inputs[0].shape == (n, m)
    for shape in ((3, 2), (4, 1), (2, 5)):
        x = np.random.default_rng(1).normal(size=shape)
        np.testing.assert_allclose(program.run(x)[0].numpy(), f(tensor(x)).numpy(), rtol=1e-12)


def test_compiled_functions_whose_parts_agree_for_some_sizes_only() -> None:
    """The condition on the open size is asked again of the program of all lanes."""
    f = lambda x: tr.sum((x[:2] * x[2:]) ** 2)
    x = np.arange(4.0)
    want = np.diag([8.0, 18.0, 0.0, 2.0])
    want[1, 3] = want[3, 1] = 12.0
    compiled = tr.compile(f)
    for found in (hessian(f), hessian(compiled), jacrev(grad(compiled)), jacfwd(jacfwd(compiled)), jacfwd(grad(f))):
        np.testing.assert_allclose(np.asarray(found(x)), want)


@pytest.mark.parametrize("budget", [1, 200, 1000, 10**9])
def test_batches_within_a_budget_change_nothing(budget: int) -> None:
    v = lambda x: tr.exp(x) * tr.sum(x)
    same = lambda a, b: np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-13)
    same(jacfwd(v, memory_budget=budget)(X), jacfwd(v)(X))
    same(jacrev(v, memory_budget=budget)(X), jacrev(v)(X))
    same(hessian(energy, memory_budget=budget)(X), hessian(energy)(X))
    same(tr.compile(hessian(energy, memory_budget=budget))(X), hessian(energy)(X))
    z = X + 1j
    of_complex = lambda z: tr.sum(tr.real(z * z * tr.conj(z)), axis=0)
    same(jacfwd(of_complex, memory_budget=budget)(z), jacfwd(of_complex)(z))


def test_a_budget_bounds_the_columns_at_a_time() -> None:
    widths = []

    def f(x: Any) -> Any:
        return tr.sin(x) * 2.0

    def watched(x: Any) -> Any:
        y = f(x)
        inner = getattr(y, "tangent", None)
        if type(inner).__name__ == "Batched":
            widths.append(inner.value.shape[0])
        return y

    x = np.linspace(0, 1, 100)
    jacfwd(watched, memory_budget=20 * 8 * 100)(x)
    assert sum(widths) == 100
    assert 1 < max(widths) <= 20


def test_open_sizes_refuse_a_budget() -> None:
    with pytest.raises(ArgumentError, match="memory_budget needs sizes that are numbers"):
        tr.trace(lambda x: jacfwd(tr.sin, memory_budget=100)(x), Spec((n,), X.dtype), examples={"n": 3})


def test_what_a_function_returns_beside() -> None:
    f = lambda x: (tr.sin(x) * tr.sum(x), {"sum": tr.sum(x), "n": 3})
    for jacobian in (jacfwd, jacrev):
        found, aux = jacobian(f, has_aux=True)(X)
        np.testing.assert_allclose(np.asarray(found), np.asarray(jacobian(lambda x: f(x)[0])(X)))
        assert aux["n"] == 3
        np.testing.assert_allclose(float(aux["sum"]), X.sum())
    found, aux = hessian(lambda x: (energy(x), tr.max(x)), has_aux=True)(X)
    np.testing.assert_allclose(np.asarray(found), np.asarray(hessian(energy)(X)))
    assert float(aux) == X.max()


def test_several_arguments_and_containers() -> None:
    f = lambda p, y: {"a": p["w"] @ y, "b": tr.sum(p["c"]) * y}
    p = {"w": X, "c": np.arange(4.0)}
    y = np.array([1.0, -2.0])
    forward, reverse = jacfwd(f, (0, 1))(p, y), jacrev(f, (0, 1))(p, y)
    assert forward["a"][0]["w"].shape == (3, 3, 2)
    for out in ("a", "b"):
        for k in (0, 1):
            a, b = forward[out][k], reverse[out][k]
            for one, other in zip(a.values(), b.values()) if k == 0 else [(a, b)]:
                np.testing.assert_allclose(np.asarray(one), np.asarray(other), rtol=1e-13)


def test_a_function_may_branch_on_its_values() -> None:
    f = lambda x: tr.sin(x) if float(tr.stop_gradient(x[0])) > 0 else tr.cos(x)
    np.testing.assert_allclose(np.asarray(jacfwd(f)(np.array([1.0, 2.0]))), np.diag(np.cos([1.0, 2.0])))
    np.testing.assert_allclose(np.asarray(jacrev(f)(np.array([-1.0, 2.0]))), np.diag(-np.sin([-1.0, 2.0])))


def test_lanes_of_other_numbers_are_refused() -> None:
    with pytest.raises(ShapeError, match="one number of lanes"):
        tr.vmap(tr.add)(np.zeros(3), np.zeros(4))


@pytest.mark.parametrize(
    "modes",
    list(itertools.product((jacfwd, jacrev), repeat=3)),
    ids=lambda modes: " ".join([mode.__name__ for mode in modes]),
)
@pytest.mark.parametrize("n", [1, 3])
def test_third_derivatives_of_compiled_functions_that_leave_sizes_behind(modes: Any, n: int) -> None:
    """Parts of these derivatives do not have the symbolic size of the argument any more when they meet more lanes."""
    f: Callable[[Any], Any] = tr.compile(lambda v: tr.abs(v[0]) ** 3)
    for mode in modes:
        f = mode(f)
    for x, third in ((np.zeros(n), 0.0), (np.full(n, -2.0), -6.0)):
        want = np.zeros((n, n, n))
        want[0, 0, 0] = third
        np.testing.assert_allclose(np.asarray(f(x)), want, atol=1e-15)
