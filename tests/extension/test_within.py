"""Primitives that apply a program in a way of their own, and are differentiated by derivatives of the program."""

import numpy as np
import pytest

import tenferro_runtime as tr
from tenferro_ad import check_grads, grad, hessian, jvp, taylor
from tenferro_runtime.control_flow.primitives import ProgramHolding
from tenferro_runtime.extension import REGISTRY, Spec, Within
from tenferro_runtime.ir import applied

made = []


def mirrored(*xs: Spec, program):
    """Apply a program to the mirror images of the operands, and mirror its results."""
    return program.outputs


mirror = ProgramHolding(mirrored, family="tests.mirrored.v1")


def seen_in_mirror(*xs, program):
    return tuple([tr.flip(y) for y in applied(program, [tr.flip(x) for x in xs])])


def second(op, first, program, ins, outs):
    made.append((ins, outs))
    return mirror.op(program=program)


REGISTRY.expansion(mirror, seen_in_mirror)
REGISTRY.rule(mirror, Within("program", lambda op, program: mirror.op(program=program), second))

RAMP = tr.arange(4.0)


def body(x, y):
    return tr.sin(x) * y * RAMP, tr.cumulative_sum(x)


PROGRAM = tr.trace(body, tr.zeros(4), tr.zeros(4))


def by_primitive(x, y):
    return mirror(x, y, program=PROGRAM)


def plainly(x, y):
    return tuple([tr.flip(z) for z in body(tr.flip(x), tr.flip(y))])


def loss(f):
    return lambda x, y: tr.sum(f(x, y)[0] ** 2) + tr.sum(tr.cos(f(x, y)[1]))


X, Y = tr.asarray([0.3, -1.0, 0.7, 2.0]), tr.asarray([1.0, 0.5, -2.0, 0.1])


def close(found, expected):
    np.testing.assert_allclose(np.asarray(found), np.asarray(expected), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("argnum", [0, 1])
def test_gradients_of_both_orders(argnum):
    close(grad(loss(by_primitive), argnums=argnum)(X, Y), grad(loss(plainly), argnums=argnum)(X, Y))
    one = lambda f: lambda z: loss(f)(*((z, Y) if argnum == 0 else (X, z)))
    close(hessian(one(by_primitive))((X, Y)[argnum]), hessian(one(plainly))((X, Y)[argnum]))
    check_grads(one(by_primitive), ((X, Y)[argnum],), order=2)


def test_tangents_and_power_series():
    for found, expected in zip(jvp(by_primitive, (X, Y), (Y, X))[1], jvp(plainly, (X, Y), (Y, X))[1], strict=True):
        close(found, expected)
    series = ((tr.ones(4), tr.zeros(4)), (Y, tr.zeros(4)))
    found, expected = (taylor(loss(f), (X, Y), series)[1] for f in (by_primitive, plainly))
    for a, b in zip(found, expected, strict=True):
        close(a, b)


def test_compiled_and_with_one_cotangent_only():
    f = tr.compile(grad(lambda x: tr.sum(by_primitive(x, Y)[1] * Y)))
    close(f(X), grad(lambda x: tr.sum(plainly(x, Y)[1] * Y))(X))


def test_operands_are_no_residuals():
    """What the second part reads of the operands it gets as operands; only what the first part computes is kept."""
    made.clear()
    program = tr.trace(lambda x, y: x * y, tr.zeros(4), tr.zeros(4))
    x, y = tr.asarray([1.0, 2.0, 3.0, 4.0]), tr.asarray([5.0, 6.0, 7.0, 8.0])
    close(grad(lambda x: tr.sum(mirror(x, y, program=program)[0]))(x), y)
    ((ins, outs),) = made
    assert (ins, outs) == ((("output", 0), ("operand", 1)), (("operand", 0),))
