"""Derivatives of `fori_loop` and `map`: both modes, against finite differences, for bounds of every kind."""

import numpy as np
import pytest

import tenferro_runtime as tr
from tenferro_ad import check_grads, grad, jvp, variable

X = np.array([0.5, -1.5, 2.0, 0.25])


def weighted(x):
    return lambda i, c: c * tr.tanh(x[i]) + x[i] * i


def triangle(x):
    n = x.shape[0]
    return tr.fori_loop(0, n, lambda i, c: tr.fori_loop(0, i, lambda j, d: d + x[i] * tr.sin(x[j]), c), 0.0)


LOOPS = {
    "known": lambda x: tr.fori_loop(0, 4, weighted(x), 1.0),
    "sizes": lambda x: tr.fori_loop(0, x.shape[0], weighted(x), 1.0),
    "unrolled": lambda x: tr.fori_loop(0, 4, weighted(x), 1.0, unroll=True),
    "blocks": lambda x: tr.fori_loop(0, 4, weighted(x), 1.0, unroll=3),
    "no steps": lambda x: tr.fori_loop(3, 1, weighted(x), tr.sum(x)),
    "triangle": triangle,
    "updates": lambda x: tr.sum(tr.fori_loop(1, 4, lambda i, c: c.at[i].set(c[i - 1] * c[i]), x) * x),
    "associative": lambda x: tr.sum(tr.associative_scan(tr.multiply, tr.sin(x)) * x),
    "rows": lambda x: tr.sum(tr.map(lambda v: tr.sin(v) * x, x)),
}


@pytest.mark.parametrize("name", LOOPS)
@pytest.mark.parametrize("compiled", [False, True])
def test_finite_differences(name, compiled):
    f = tr.compile(LOOPS[name]) if compiled else LOOPS[name]
    check_grads(f, (X,), order=2)


@pytest.mark.parametrize("name", LOOPS)
def test_compiled_gradients_are_those_of_eager_values(name):
    f = LOOPS[name]
    x = variable(X)
    f(x).backward()
    np.testing.assert_allclose(tr.compile(grad(f))(X), x.grad, rtol=1e-13)
    np.testing.assert_allclose(grad(tr.compile(f))(X), x.grad, rtol=1e-13)


def test_traced_bounds():
    def f(x, n):
        return tr.fori_loop(0, n, weighted(x), 1.0)

    def bounded(x, n):
        return tr.fori_loop(0, n, weighted(x), 1.0, max_steps=x.shape[0])

    for n in (0, 1, 3):
        want = grad(lambda x, n=n: f(x, n))(X)
        np.testing.assert_allclose(tr.compile(grad(bounded))(X, n), want, rtol=1e-13)
        np.testing.assert_allclose(grad(tr.compile(bounded))(X, n), want, rtol=1e-13)
        pushed = jvp(lambda x, n=n: tr.compile(f)(x, n), (X,), (np.ones(4),))[1]
        np.testing.assert_allclose(float(pushed), np.asarray(want).sum())


def test_traced_bounds_without_a_bound_of_their_own():
    def f(x, n):
        return tr.fori_loop(0, n, weighted(x), 1.0)

    for n in (0, 1, 3):
        want = grad(lambda x, n=n: f(x, n))(X)
        np.testing.assert_allclose(tr.compile(grad(f))(X, n), want, rtol=1e-13)
        np.testing.assert_allclose(grad(tr.compile(f))(X, n), want, rtol=1e-13)
