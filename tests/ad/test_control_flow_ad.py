"""Derivatives of branches and loops: against finite differences, and against the loop that Python runs."""

from typing import Any

import numpy as np
import pytest

import tenferro_runtime as tr
from tenferro_ad import (
    check_grads,
    checkpoint,
    custom_rule,
    grad,
    hvp,
    jacfwd,
    jacrev,
    jvp,
    linear_transpose,
    linearize,
    value_and_grad,
    vjp,
)
from tenferro_runtime.extension import flatten

RNG = np.random.default_rng(5)
X = RNG.standard_normal(3)
W = 0.4 * RNG.standard_normal((3, 3))
XS = RNG.standard_normal((4, 3))
Z = (RNG.standard_normal((4, 3)) + 1j * RNG.standard_normal((4, 3))) * 0.5


@custom_rule(jvp=lambda primals, tangents, outs: (3 * primals[0] ** 2 * tangents[0],), infer=lambda x: x)
def cube(x):
    return np.power(x.numpy(), 3)


@checkpoint
def block(w, h):
    return tr.tanh(w @ h) * 1.5


def rnn(w, xs):
    def step(h, x):
        h = tr.tanh(w @ h + x * tr.sum(w * w))
        return h, h * x

    h, ys = tr.scan(step, tr.ones_like(xs[0]), xs)
    return tr.sum(tr.abs2(h)) + tr.sum(tr.abs2(ys))


def branches(x):
    y = tr.cond(x[0] * x[1] > 0, lambda v: (tr.sin(v) * x, v[0]), lambda v: (v * v, 2.0), 2 * x)
    return tr.sum(y[0]) * y[1]


def three(x):
    fs = [tr.sin, lambda v: x * x, lambda v: tr.exp(v) * v]
    return tr.sum(tr.scan(lambda c, i: (tr.switch(i, fs, c), None), x, np.array([0, 2, 1, 0]))[0])


def power(x):
    return tr.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] * tr.sin(x)), (0, x), max_steps=5)[1].sum()


def loops(w, xs):
    def outer(h, x):
        def inner(c, v):
            return tr.cond(v > 0, lambda u: tr.tanh(w @ u), lambda u: u * v + x, c), None

        return tr.scan(inner, h, x)[0], tr.sum(h)

    h, ys = tr.scan(outer, xs[0], xs, reverse=True)
    return tr.sum(h * h) + tr.sum(ys * ys)


def ruled(w, xs):
    return tr.sum(tr.scan(lambda h, x: (cube(block(w, h)) + x, None), xs[0], xs)[0])


def gradient_inside(x):
    def step(c, v):
        return c + grad(lambda u: tr.sum(tr.sin(u) * u * v))(c), None

    return tr.sum(tr.scan(step, x, np.array([0.3, 0.2]))[0])


def constant_carry(x):
    """A carry that the body forgets, rows that do not depend on the carry, and slices that are not used."""

    def step(c, v):
        return (x * 2, c[0]), (v * x[0], 1.0)

    (a, b), (rows, _) = tr.scan(step, (x, tr.zeros_like(x)), XS)
    return tr.sum(a * b) + tr.sum(rows)


def several(x):
    """More outputs than there are backward programs for one alone."""
    a, b, c, _, e = tr.cond(x[0] > 100, lambda v: (v,) * 5, lambda v: (v, v * v, tr.sin(v), 3.0 * v, tr.exp(v)), x)
    return tr.sum(a + b * c) + tr.sum(e)


FUNCTIONS: dict[str, Any] = {
    "rnn": (rnn, W, XS),
    "rnn, complex": (rnn, 0.5 * (W + 0.2j * W.T), 0.2 * Z),
    "branches": (branches, X),
    "branches, the other way": (branches, X * np.array([-1.0, 1.0, 1.0])),
    "switch in a loop": (three, X),
    "bounded while": (power, X),
    "nested": (loops, W, XS),
    "rules and checkpoints": (ruled, W, XS),
    "gradient inside": (gradient_inside, X),
    "forgotten carry": (constant_carry, X),
    "several outputs": (several, X),
}


def recorded(f):
    """`f` with everything traced, but called as it is: its loops are recorded as programs."""
    compiled = tr.compile(f)
    return lambda *args: compiled(*args)


def flat(out):
    return [np.asarray(v) for v in flatten(out)[0]]


def same(got, want, tol=1e-10):
    for a, b in zip(flat(got), flat(want), strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=tol, atol=tol)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_way_to_differentiate_agrees_with_the_python_loop(name):
    f, *raw = FUNCTIONS[name]
    args = [tr.asarray(a) for a in raw]
    nums = tuple(range(len(args)))
    want = value_and_grad(f, nums)(*args)
    same(value_and_grad(recorded(f), nums)(*args), want)
    same(tr.compile(value_and_grad(f, nums))(*args), want)
    tangents = [tr.asarray(RNG.standard_normal(a.shape).astype(a.dtype)) for a in raw]
    pushed = jvp(f, args, tangents)
    same(jvp(recorded(f), args, tangents), pushed)
    same(tr.compile(lambda *xs: jvp(f, xs, tangents))(*args), pushed)
    y, push = linearize(recorded(f), *args)
    same((y, push(*tangents)), pushed)
    same(tr.compile(lambda *xs: linearize(f, *xs)[1](*tangents))(*args), pushed[1])


@pytest.mark.parametrize("name", FUNCTIONS)
def test_derivatives_agree_with_finite_differences(name):
    f, *raw = FUNCTIONS[name]
    check_grads(recorded(f), raw, order=2)


@pytest.mark.parametrize("name", ["rnn", "branches", "nested", "bounded while"])
def test_second_derivatives_agree_with_the_python_loop(name):
    f, *raw = FUNCTIONS[name]
    args = tuple(tr.asarray(a) for a in raw)
    ts = tuple(tr.asarray(RNG.standard_normal(a.shape)) for a in raw)
    want = hvp(f, args, ts)
    same(hvp(recorded(f), args, ts), want)
    same(tr.compile(lambda *xs: hvp(f, xs, ts))(*args), want)


def test_jacobians_of_a_fold():
    f = lambda x: tr.scan(lambda c, v: (c * v, c + v), 1.5, x)[1]
    want = jacrev(f)(X)
    for jac in (jacrev(recorded(f)), jacfwd(recorded(f)), tr.compile(jacrev(f)), tr.compile(jacfwd(f))):
        same(jac(X), want)


def test_forward_mode_of_an_unbounded_loop():
    def root(a):
        return tr.while_loop(lambda x: tr.abs(x * x - a) > 1e-14, lambda x: 0.5 * (x + a / x), a)

    same(jvp(tr.compile(root), (2.0,), (1.0,)), (np.sqrt(2.0), 0.5 / np.sqrt(2.0)))
    same(tr.compile(lambda a: jvp(root, (a,), (1.0,))[1])(2.0), 0.5 / np.sqrt(2.0))
    same(grad(root)(2.0), 0.5 / np.sqrt(2.0))  # Python's own loop


def test_reverse_mode_of_an_unbounded_loop():
    f = tr.compile(lambda x: tr.while_loop(lambda c: c < 9, lambda c: c * c, x))
    same(grad(f)(2.0), 4 * 2.0**3)
    same(grad(f)(10.0), 1.0)


def test_a_branch_that_is_not_taken_puts_no_nan_into_the_gradient():
    f = tr.compile(lambda x: tr.cond(x > 0, lambda: tr.log(x) * tr.sqrt(x), lambda: 3 * x))
    assert grad(f)(0.0).item() == 3.0
    assert tr.compile(grad(lambda x: tr.cond(x > 0, lambda: tr.log(x) * tr.sqrt(x), lambda: 3 * x)))(0.0).item() == 3.0


def test_what_is_the_same_in_all_steps_is_kept_once():
    compiled = tr.compile(lambda w, xs: tr.scan(lambda h, x: (tr.tanh(tr.exp(w) @ h) + x, None), xs[0], xs)[0])
    program = tr.compile(lambda w, xs: vjp(compiled, w, xs)[1](xs[0])).program(W, XS)
    scans = [eq for eq in program.equations if eq.op.primitive.name == "scan"]
    stacked = [s.shape for eq in scans for s in (program.specs[v] for v in eq.results)]
    assert len(scans) == 2
    assert (4, 3, 3) not in stacked
    assert sum(shape == (4, 3) for shape in stacked) <= 3


def test_a_gradient_of_symbolic_sizes():
    n, m = tr.dim("n"), tr.dim("m")
    f8 = np.dtype("float64")
    program = tr.trace(value_and_grad(rnn, (0, 1)), tr.Spec((m, m), f8), tr.Spec((n, m), f8), examples={"n": 4, "m": 3})
    for k, d in ((4, 3), (1, 2), (7, 1)):
        w, xs = RNG.standard_normal((d, d)), RNG.standard_normal((k, d))
        want = value_and_grad(rnn, (0, 1))(w, xs)
        same(program.run(w, xs), flat(want))


def test_the_derivative_of_no_steps_is_that_of_the_start():
    n = tr.dim("n")
    program = tr.trace(
        grad(lambda c, xs: tr.sum(tr.scan(lambda h, x: (x, None), c, xs)[0] ** 2)),
        tr.Spec((2,), np.dtype("float64")), tr.Spec((n, 2), np.dtype("float64")),
    )  # fmt: skip
    c = np.array([1.0, 3.0])
    same(program.run(c, np.zeros((0, 2)))[0], 2 * c)
    same(program.run(c, np.ones((3, 2)))[0], 0 * c)


def test_the_transpose_of_a_linear_loop():
    f = tr.compile(lambda x: tr.scan(lambda c, v: (c * 0.5 + v, c), 0.0, x)[1])
    same(linear_transpose(f, X)(np.ones(3)), np.asarray(jacrev(f)(X)).sum(axis=0))
