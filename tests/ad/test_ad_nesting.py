"""Transforms inside transforms: every combination is the derivative that calculus says, in every thread."""

import threading
from typing import Any

import numpy as np
import pytest

import tenferro_runtime as tr
from tenferro_ad import grad, hessian, hvp, jacfwd, jacrev, jvp, linearize, value_and_grad, variable, vjp
from tenferro_tensor import tensor

X = 0.7


def f(x):
    return tr.sin(x) * x * x


def derivative(n):
    """The n-th derivative of f at X, by hand."""
    s, c, x = np.sin(X), np.cos(X), X
    return {
        0: s * x * x,
        1: c * x * x + 2 * x * s,
        2: -s * x * x + 4 * x * c + 2 * s,
        3: -c * x * x - 6 * x * s + 6 * c,
    }[n]


def d_rev(g):
    return grad(g)


def d_fwd(g):
    return lambda x: jvp(g, (x,), (1.0,))[1]


def d_lin(g):
    return lambda x: linearize(g, x)[1](1.0)


def d_vjp(g):
    return lambda x: vjp(g, x)[1](1.0)[0]


def d_variable(g):
    def run(x):
        if not isinstance(x, float):
            return grad(g)(x)
        v = variable(x)
        g(v).backward()
        return v.grad

    return run


WAYS = {"rev": d_rev, "fwd": d_fwd, "lin": d_lin, "vjp": d_vjp, "variable": d_variable}


def test_first_derivative_every_way():
    for way in WAYS.values():
        for _ in range(3):  # by rule, rendering, rendered
            assert float(way(f)(X)) == pytest.approx(derivative(1), rel=1e-13)


@pytest.mark.parametrize("outer", WAYS)
@pytest.mark.parametrize("inner", WAYS)
def test_second_derivative_all_pairs(outer, inner):
    for _ in range(3):
        assert float(WAYS[outer](WAYS[inner](f))(X)) == pytest.approx(derivative(2), rel=1e-13)


@pytest.mark.parametrize("a", ["rev", "fwd", "lin"])
@pytest.mark.parametrize("b", ["rev", "fwd", "lin"])
@pytest.mark.parametrize("c", ["rev", "fwd", "lin"])
@pytest.mark.parametrize("compiled", [(), (0,), (1,), (2,), (3,), (0, 2), (0, 1, 2, 3)])
def test_third_derivative_with_programs_at_any_depth(a, b, c, compiled):
    g = tr.compile(f) if 0 in compiled else f
    for depth, way in enumerate((a, b, c), 1):
        g = WAYS[way](g)
        g = tr.compile(g) if depth in compiled else g
    for _ in range(2):
        assert float(g(tensor(X))) == pytest.approx(derivative(3), rel=1e-12)


def test_perturbations_are_not_confused():
    # d/dx x * (d/dy (x + y)) = 1; a tag by depth or by type would say 2.
    for inner in (d_rev, d_fwd, d_lin):
        for outer in (d_rev, d_fwd, d_lin):
            assert float(outer(lambda x: x * inner(lambda y: x + y)(1.0))(1.0)) == 1.0  # noqa: B023
            # d/dx x * d/dy (x y) = d/dx x^2
            assert float(outer(lambda x: x * inner(lambda y: x * y)(2.0))(3.0)) == 6.0  # noqa: B023


def test_inner_derivative_of_an_outer_constant_is_zero():
    assert float(grad(lambda x: x * grad(lambda y: x * 1.0)(1.0))(3.0)) == 0.0
    assert float(jvp(lambda x: x * jvp(lambda y: x, (1.0,), (1.0,))[1], (3.0,), (1.0,))[1]) == 0.0


def test_closure_over_outer_values_of_every_kind():
    w = variable(2.0)

    def loss(x):
        return grad(lambda y: y * y * x * w)(x)  # 2 x^2 w

    y = grad(loss)(3.0)  # 4 x w
    assert float(y) == 24.0
    y.backward()
    assert float(w.grad) == 12.0
    assert float(jvp(lambda a: grad(lambda x: x * x * a)(3.0), (5.0,), (1.0,))[1]) == 6.0


def test_threads_that_close_over_an_outer_value_keep_its_gradient():
    def loss(x):
        results: list[Any] = [None] * 4

        def work(i):
            # The same depth in every thread, and the same as in the main thread.
            results[i] = grad(lambda y: y * y * x * float(i + 1))(x)

        threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        return results[0] + results[1] + results[2] + results[3]  # 2 x^2 (1 + 2 + 3 + 4)

    assert float(grad(loss)(3.0)) == pytest.approx(4 * 3.0 * 10)


def test_many_threads_differentiate_at_once():
    results = {}

    def work(i):
        x = np.linspace(0.1, 1.0, 5) * (i + 1)
        for _ in range(20):
            results[i] = np.asarray(grad(lambda v: (tr.exp(v) * v / 3).sum())(x).numpy())

    threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for i, got in results.items():
        x = np.linspace(0.1, 1.0, 5) * (i + 1)
        np.testing.assert_allclose(got, np.exp(x) * (1 + x) / 3, rtol=1e-13)


def test_hessian_products_agree():
    rng = np.random.default_rng(0)
    a, x, t = rng.normal(size=(3, 3)), rng.normal(size=3), rng.normal(size=3)

    def energy(v):
        return (tr.tanh(tensor(a) @ v) ** 2).sum() + (v * v * v).sum()

    h = hessian(energy)(x).numpy()
    np.testing.assert_allclose(h, h.T, rtol=1e-12)
    np.testing.assert_allclose(hvp(energy, (x,), (t,)).numpy(), h @ t, rtol=1e-12)
    np.testing.assert_allclose(jacrev(grad(energy))(x).numpy(), h, rtol=1e-12)
    np.testing.assert_allclose(jacrev(jacfwd(energy))(x).numpy(), h, rtol=1e-12)
    np.testing.assert_allclose(tr.compile(hessian(energy))(x).numpy(), h, rtol=1e-12)
    product = linearize(grad(energy), x)[1]
    np.testing.assert_allclose(product(t).numpy(), h @ t, rtol=1e-12)
    np.testing.assert_allclose(product(2 * t).numpy(), 2 * h @ t, rtol=1e-12)


def test_value_and_grad_of_a_program_over_a_captured_variable():
    w = variable([2.0, 3.0])
    g = tr.compile(lambda x: (x * w * w).sum())
    for _ in range(3):
        value, gx = value_and_grad(g)(np.array([1.0, 2.0]))
        np.testing.assert_array_equal(gx.detach().numpy(), [4.0, 9.0])
        w.zero_grad()
        value.backward()
        np.testing.assert_array_equal(w.grad.numpy(), [4.0, 12.0])
