"""Programs that write to views run as they do with NumPy: operation by operation, differentiated, and compiled."""

from functools import partial

import numpy as np
import pytest

import tenferro_runtime as tr
from tenferro_ad import grad, jvp, vjp
from views_programs import PROGRAMS


@pytest.fixture(params=PROGRAMS)
def program(request):
    return PROGRAMS[request.param]


def tensors(arrays):
    return [tr.asarray(a) for a in arrays]


def directions(arguments):
    rng = np.random.default_rng(5)
    drawn = [
        rng.normal(size=np.shape(a)) + (1j * rng.normal(size=np.shape(a)) if a.dtype.kind == "c" else 0)
        for a in arguments
    ]
    return [np.asarray(d) for d in drawn]


def difference(f, arguments, along, step=1e-5):
    """The central difference of NumPy's results."""
    ends = [f(np, *[a + s * step * d for a, d in zip(arguments, along, strict=True)]) for s in (1, -1)]
    return (ends[0] - ends[1]) / (2 * step)


def inner(us, vs):
    return sum(np.vdot(np.asarray(u), np.asarray(v)).real for u, v in zip(us, vs, strict=True))


def test_values_and_derivatives(program):
    f, arguments = program
    wanted, operands = f(np, *arguments), tensors(arguments)
    along = directions(arguments)
    slope = difference(f, arguments, along)
    np.testing.assert_allclose(np.asarray(f(tr, *operands)), wanted, rtol=1e-12, atol=1e-13)
    value, tangent = jvp(partial(f, tr), tuple(operands), tuple(tensors(along)))
    np.testing.assert_allclose(np.asarray(value), wanted, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(np.asarray(tangent), slope, rtol=1e-6, atol=1e-8)
    weights = directions([wanted])[0]
    value, pull = vjp(partial(f, tr), *operands)
    np.testing.assert_allclose(np.asarray(value), wanted, rtol=1e-12, atol=1e-13)
    assert inner(pull(tr.asarray(weights)), along) == pytest.approx(inner([weights], [np.asarray(tangent)]), rel=1e-10)
    for x, a in zip(operands, arguments, strict=True):
        np.testing.assert_array_equal(np.asarray(x), a)


def test_mapped(program):
    f, arguments = program
    lanes = [arguments, [a * 1.01 for a in arguments]]
    found = tr.vmap(partial(f, tr))(*[tr.asarray(np.stack(group)) for group in zip(*lanes, strict=True)])
    for got, lane in zip(np.asarray(found), lanes, strict=True):
        np.testing.assert_allclose(got, f(np, *lane), rtol=1e-12, atol=1e-13)


def test_compiled(program):
    f, arguments = program
    operands = tensors(arguments)
    np.testing.assert_allclose(
        np.asarray(tr.compile(partial(f, tr))(*operands)), f(np, *arguments), rtol=1e-12, atol=1e-13
    )
    weights = directions([f(np, *arguments)])[0]

    def loss(*xs):
        return tr.sum(tr.real(tr.conj(tr.asarray(weights)) * f(tr, *xs)))

    derivative = grad(loss, argnums=tuple(range(len(operands))))
    for got, want in zip(tr.compile(derivative)(*operands), derivative(*operands), strict=True):
        np.testing.assert_allclose(np.asarray(got), np.asarray(want), rtol=1e-10, atol=1e-11)


def test_loops_over_views_of_the_carry():
    """The body of a loop names views of what it carries, at a position that the loop knows."""

    def smoothed(i, u):
        row, inner = u[i], u[1:-1, 1:-1]
        row *= 0.5
        inner += 0.1 * u[:-2, 1:-1]
        u.T[0] -= row[0]
        return u

    u = np.random.default_rng(2).normal(size=(5, 5))
    wanted = u.copy()
    for i in range(4):
        smoothed(i, wanted)

    def f(u):
        return tr.fori_loop(0, 4, smoothed, u)

    for way in (f, tr.compile(f), lambda u: tr.vmap(f)(u[None])[0]):
        np.testing.assert_allclose(np.asarray(way(tr.asarray(u))), wanted, rtol=1e-13)
    d = np.random.default_rng(3).normal(size=(5, 5))

    def stepped(s):
        v = u + s * 1e-6 * d
        for i in range(4):
            smoothed(i, v)
        return v

    tangent = jvp(f, (tr.asarray(u),), (tr.asarray(d),))[1]
    np.testing.assert_allclose(np.asarray(tangent), (stepped(1) - stepped(-1)) / 2e-6, rtol=1e-7, atol=1e-9)
    gradient = grad(lambda u: tr.sum(f(u) * tr.asarray(d)))
    for g in (gradient, tr.compile(gradient)):
        assert inner([g(tr.asarray(u))], [d]) == pytest.approx(inner([d], [tangent]), rel=1e-12)


def test_a_transposed_sweep_trains():
    """A step that updates parameters in a list is what NumPy does, for all who hold them."""
    w = tr.asarray([1.0, 2.0]) * 1.0
    params, name = [w], w
    for p in params:
        p -= 0.5 * tr.asarray([2.0, 2.0])
    assert name is params[0] is w and w.tolist() == [0.0, 1.0]
