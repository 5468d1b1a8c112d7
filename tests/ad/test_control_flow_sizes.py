"""Branches and loops under symbolic sizes: one program, and its derivatives, for every extent."""

from typing import Any

import numpy as np
import pytest

import tenferro_runtime as tr
from runtime_rooms import COUNTERS
from tenferro_ad import grad, hvp, jvp, linearize, value_and_grad
from tenferro_runtime import Spec
from tenferro_runtime.extension import check_program, flatten, optimise

F8 = np.dtype("float64")
N, M = tr.dim("n"), tr.dim("m")
EXAMPLES = {"n": 3, "m": 2}
MATRIX = (Spec((N, M), F8),)
PAIR = (Spec((N,), F8), Spec((M,), F8))


def data(*shape):
    return np.random.default_rng(sum(shape) + 1).standard_normal(shape)


def smooth(x):
    """Arrays made of sizes alone, inside of the body."""

    def step(c, v):
        m = x.shape[1]
        return tr.tanh(c + tr.ones(m) * v / m) @ tr.eye(m), None

    return tr.sum(tr.scan(step, tr.zeros(x.shape[1]), x)[0])


def branching(x):
    return tr.sum(
        tr.cond(x.sum() > 0, lambda v: v * tr.sum(v, axis=0) / v.shape[0], lambda v: tr.zeros_like(v) + v.mean(), x)
    )


def bounded(x):
    return tr.sum(tr.while_loop(lambda c: tr.sum(c * c) < 50.0, lambda c: c * 1.3 + x / x.shape[0], x, max_steps=7))


multiplied = tr.compile(lambda a, b: tr.tanh(a * b))

FUNCTIONS: dict[str, Any] = {
    "arrays of symbolic sizes in the body": (
        lambda x: tr.scan(
            lambda c, v: (c + tr.zeros(x.shape[1]) + v, tr.sum(c) / x.shape[0]), tr.zeros(x.shape[1]), x
        ),
        MATRIX,
        [(data(3, 2),), (data(0, 4),), (data(1, 1),)],
    ),
    "as many steps as a size": (
        lambda x: tr.scan(lambda c, _: (c + x.sum(), c), 0.0, length=x.shape[0]), MATRIX, [(data(3, 2),), (data(2, 4),)]
    ),
    "a size in the condition": (
        lambda x: tr.while_loop(lambda c: c[0] < x.shape[0], lambda c: (c[0] + 1, c[1] * 1.5), (0, x)),
        MATRIX,
        [(data(3, 2),), (data(2, 4),)],
    ),
    "a size in the carry": (
        lambda x: tr.while_loop(lambda c: c[0] > 0, lambda c: (c[0] - 1, c[1] * 1.5), (x.shape[0], x)),
        MATRIX,
        [(data(3, 2),), (data(2, 4),)],
    ),
    "two arrays of one length": (
        lambda x, y: tr.scan(lambda c, v: (c + v[0] * v[1], None), 0.0, (x, y))[0], PAIR, [(data(4), data(4))]
    ),
    "slices and flips": (
        lambda x: tr.scan(lambda c, v: (c + v, v[::-1] * 2), tr.zeros(2), x[:, :2]),
        MATRIX,
        [(data(3, 2),), (data(2, 4),)],
    ),
    "a compiled function in the body": (
        lambda x: tr.scan(lambda c, v: (multiplied(c, v), c), tr.ones(x.shape[1]), x),
        MATRIX,
        [(data(3, 2),), (data(2, 4),)],
    ),
    "gradient of a loop": (grad(smooth), MATRIX, [(data(3, 2),), (data(2, 4),), (data(1, 1),)]),
    "tangents of a loop": (lambda x: jvp(smooth, (x,), (x * x,)), MATRIX, [(data(3, 2),), (data(2, 4),)]),
    "second derivative of a loop": (lambda x: hvp(smooth, (x,), (x * x,)), MATRIX, [(data(3, 2),), (data(2, 4),)]),
    "linear part of a loop": (lambda x: linearize(smooth, x)[1](x * x), MATRIX, [(data(3, 2),), (data(2, 4),)]),
    "gradient of a branch": (grad(branching), MATRIX, [(data(3, 2),), (-data(3, 2),), (data(2, 4),)]),
    "second derivative of a branch": (
        lambda x: hvp(branching, (x,), (x * x,)), MATRIX, [(data(3, 2),), (-data(3, 2),), (data(2, 4),)]
    ),
    "gradient of a bounded loop": (grad(bounded), MATRIX, [(data(3, 2),), (-data(3, 2),), (data(2, 4),)]),
    "gradient of rows": (
        value_and_grad(
            lambda x: tr.sum(
                tr.scan(lambda c, v: (multiplied(c, v), c * v), tr.ones(x.shape[1]), x, reverse=True)[1]
            )
        ),
        MATRIX,
        [(data(3, 2),), (data(2, 4),)],
    ),
}  # fmt: skip


def flat(out):
    return [np.asarray(v) for v in flatten(out)[0]]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_one_program_serves_every_size(name):
    f, specs, calls = FUNCTIONS[name]
    program = check_program(tr.trace(f, *specs, examples=EXAMPLES if len(specs) == 1 else {"n": 4, "m": 4}))
    for run in (program, check_program(optimise(program))):
        for args in calls:
            for got, want in zip(run.run(*args), flat(f(*map(tr.asarray, args))), strict=True):
                np.testing.assert_allclose(np.asarray(got), want, rtol=1e-10, atol=1e-12)


def test_a_symbolic_program_is_differentiated_as_it_is():
    program = tr.trace(smooth, *MATRIX)
    for x in (data(3, 2), data(2, 4)):
        np.testing.assert_allclose(np.asarray(grad(lambda v: program.run(v)[0])(x)), np.asarray(grad(smooth)(x)))


def test_a_loop_may_have_a_length_that_depends_on_data():
    def f(x, k):
        return tr.scan(lambda c, v: (c * 0.5 + v, None), 0.0, tr.truncate(x, k))[0]

    x, compiled, gradient = data(5), tr.compile(f), tr.compile(grad(f))
    for k in (3, 1, 5):
        want = [0.0] * 5
        want[:k] = [0.5**i for i in reversed(range(k))]
        np.testing.assert_allclose(compiled(x, tr.asarray(k)).item(), np.dot(want, x))
        np.testing.assert_allclose(np.asarray(gradient(x, tr.asarray(k))), want)
    assert compiled.cache_info().traces == gradient.cache_info().traces == 1


def test_new_sizes_neither_trace_nor_render():
    def loss(w, xs):
        h, ys = tr.scan(lambda h, x: (tr.tanh(w @ h + x), h), xs[0], xs)
        return tr.sum(tr.cond(tr.sum(h) > 0, tr.sin, tr.cos, h)) + tr.sum(ys)

    compiled = tr.compile(value_and_grad(loss, (0, 1)))
    calls = [(data(m, m), data(n, m)) for n, m in ((4, 3), (7, 2), (1, 1), (2, 5))]
    wanted = [value_and_grad(loss, (0, 1))(*map(tr.asarray, args)) for args in calls]
    compiled(*calls[0])
    renders = COUNTERS.renders
    found = [compiled(*args) for args in calls]
    assert COUNTERS.renders == renders
    assert compiled.cache_info().traces == 1
    for got, want in zip(flat(found), flat(wanted), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-10)


def doubled(x):
    """Bodies with a size that is no extent of what they are given."""
    z = tr.concat([x, x])

    def step(c, row):
        c = tr.cond(tr.sum(row) > 0, lambda v: v + z[-1] * z.shape[0], lambda v: tr.sin(v * row), c)
        return c, row @ z.T

    last, rows = tr.scan(step, z[0], z, reverse=True)
    return tr.sum(last) * tr.sum(rows)


def counted(x):
    steps = lambda c: (c[0] + 1, c[1] * tr.ones(x.shape[0]).sum())
    return tr.sum(tr.while_loop(lambda c: c[0] < x.shape[0], steps, (0, x[0]), max_steps=4)[1])


@pytest.mark.parametrize("shape", [(N, M), (N, 2), (3, M)], ids=str)
@pytest.mark.parametrize("f", [doubled, counted], ids=lambda f: f.__name__)
def test_gradients_are_traced_where_operands_of_bodies_do_not_tell_their_sizes(f, shape):
    x = data(3, 2)
    examples = {str(d): EXAMPLES[str(d)] for d in shape if not isinstance(d, int)}
    expected = grad(f)(tr.asarray(x))
    program = tr.trace(f, Spec(shape, F8), examples=examples)
    for g in (f, lambda v: program.run(v)[0]):
        found = tr.trace(grad(g), Spec(shape, F8), examples=examples)
        np.testing.assert_allclose(check_program(found).run(x)[0], expected, rtol=1e-12)


def test_a_derivative_made_in_a_trace_keeps_nothing_of_it():
    """Cheap steps of constants, spread over symbolic sizes, are made again in the backward part."""

    def f(x):
        return tr.sum(tr.scan(lambda c, _: (tr.sin(c) + 1, None), x, None, length=x.shape[0])[0])

    def twice(g):
        return grad(lambda x: tr.sum(grad(g)(x) ** 2))

    program = tr.trace(f, *MATRIX, examples=EXAMPLES)
    found = tr.trace(twice(lambda v: program.run(v)[0]), *MATRIX, examples=EXAMPLES)
    x = data(3, 2)
    np.testing.assert_allclose(found.run(x)[0], twice(f)(tr.asarray(x)), rtol=1e-12)
