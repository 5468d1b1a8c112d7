"""Random functions: every way to differentiate gives one gradient, forward mode pairs with it, and XLA agrees."""

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings

import tenferro_runtime as tr
from random_programs import Random, random_functions, same
from tenferro_ad import grad, jvp, variable
from tenferro_runtime.extension import check_program
from tenferro_xla import XlaExecutor

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")
XLA = XlaExecutor()


def moving(f: Random) -> list[int]:
    """Positions of the inputs that can be differentiated."""
    return [i for i, t in enumerate(f.inputs) if t.spec.inexact]


def loss_of(f: Random):
    """A real number from all outputs, as a function of the inputs that can move."""
    where = moving(f)

    def loss(*xs):
        full = list(f.inputs)
        for i, x in zip(where, xs, strict=True):
            full[i] = x
        total = tr.asarray(0.0)
        for y in f(*full):
            if y.spec.inexact:
                total = total + tr.sum(tr.real(y * (0.5 - 0.25j if y.spec.cplx else 0.5)) ** 2 * 0.1)
        return total

    return loss, [f.inputs[i] for i in where]


@given(random_functions())
def test_every_way_to_differentiate_a_random_function(f):
    loss, xs = loss_of(f)
    assume(xs)
    every = tuple(range(len(xs)))
    want = grad(loss, every)(*xs)
    assert all(g.spec is x.spec for g, x in zip(want, xs, strict=True))
    for way in (tr.compile(grad(loss, every)), grad(tr.compile(loss), every)):
        for got, expected in zip(way(*xs), want, strict=True):
            same(got, expected, rtol=1e-4)
    leaves = [variable(x) for x in xs]
    value = loss(*leaves)
    if hasattr(value, "backward"):
        value.backward()
        for leaf, expected in zip(leaves, want, strict=True):
            same(tr.zeros_like(expected) if leaf.grad is None else leaf.grad, expected, rtol=1e-4)


@given(random_functions())
def test_forward_mode_pairs_with_reverse_mode(f):
    loss, xs = loss_of(f)
    assume(xs)
    rng = np.random.default_rng(0)
    directions = []
    for x in xs:
        t = rng.normal(size=x.shape) + (1j * rng.normal(size=x.shape) if x.spec.cplx else 0.0)
        directions.append(tr.asarray(np.asarray(t).astype(x.dtype)))
    value, slope = jvp(loss, tuple(xs), tuple(directions))
    same(value, loss(*xs), rtol=1e-4)
    gradient = grad(loss, tuple(range(len(xs))))(*xs)
    paired = sum(
        np.sum(np.real(np.conj(np.asarray(g)) * np.asarray(t))) for g, t in zip(gradient, directions, strict=True)
    )
    scale = 1.0 + sum(float(np.sum(np.abs(np.asarray(g)))) for g in gradient)
    assert abs(float(slope) - paired) <= 1e-4 * scale
    compiled = tr.compile(lambda xs, ts: jvp(loss, xs, ts)[1])(tuple(xs), tuple(directions))
    assert abs(float(compiled) - float(slope)) <= 1e-4 * scale


@settings(suppress_health_check=[HealthCheck.filter_too_much])  # only functions of a real first operand qualify
@given(random_functions(max_steps=6))
def test_a_second_derivative_is_symmetric_and_the_same_compiled(f):
    loss, xs = loss_of(f)
    assume(xs and xs[0].spec.dtype == np.float64 and xs[0].size)
    rng = np.random.default_rng(1)
    u, v = (tr.asarray(rng.normal(size=xs[0].shape)) for _ in range(2))
    of_first = lambda x: loss(x, *xs[1:])
    second = lambda a: jvp(grad(of_first), (xs[0],), (a,))[1]
    uv, vu = float(tr.sum(second(u) * v)), float(tr.sum(second(v) * u))
    assert abs(uv - vu) <= 1e-6 * (1 + abs(uv))
    same(tr.compile(second)(u), second(u), rtol=1e-6)


@given(random_functions(max_steps=8))
def test_xla_agrees_on_random_functions(f):
    program = check_program(tr.trace(f, *f.inputs))
    for got, want in zip(XLA.run(program, *f.inputs), f(*f.inputs), strict=True):
        same(got, want, rtol=1e-4)
