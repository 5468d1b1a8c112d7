"""The interpreter of `LoopIR` against NumPy, its order of effects, and its errors."""

from dataclasses import replace

import numpy as np
import pytest

from tenferro_tensor import Spec, catalog
from tenferro_tensor.loop_interpreter import interpret
from tenferro_tensor.loop_ir import (
    INDEX,
    Affine,
    Buffer,
    Call,
    Carried,
    Case,
    For,
    Let,
    Literal,
    Load,
    LoopFunction,
    LoopIRError,
    Order,
    Position,
    Reg,
    Role,
    Store,
    Switch,
    View,
    While,
)
from tenferro_tensor_core import dim

F8, BOOL = np.dtype("float64"), np.dtype("bool")
N, M = dim("n"), dim("m")
ADD, MUL, LT = catalog.add.op(), catalog.mul.op(), catalog.lt.op()


def i8(number):
    return Reg(number, INDEX)


def f8(number):
    return Reg(number, F8)


def real(value):
    return Literal(value, F8)


def whole(value):
    return Literal(value, INDEX)


def buffers(*shapes, role=Role.TEMPORARY, first=0):
    return tuple(Buffer(first + i, F8, shape, role) for i, shape in enumerate(shapes))


def function(body, inputs=(), outputs=(), temporaries=(), constants=(), sizes=()):
    return LoopFunction(tuple(sizes), tuple(inputs), tuple(outputs), tuple(constants), tuple(temporaries), tuple(body))


def test_a_transposed_copy_with_open_sizes():
    (x,), (y,) = buffers((N, M), role=Role.INPUT), buffers((M, N), role=Role.OUTPUT, first=1)
    i, j = Affine.of(i8(0)), Affine.of(i8(1))
    inner = For(i8(1), M, (Load(f8(2), x, i * M + j), Store(y, j * N + i, f8(2))), order=Order.ANY)
    f = function([For(i8(0), N, (inner,), order=Order.ANY)], [x], [y], sizes=("n", "m"))
    a = np.arange(6.0).reshape(2, 3)
    (got,) = interpret(f, [a], (2, 3))
    np.testing.assert_array_equal(got, a.T)
    assert interpret(f, [a[:0]], (0, 3))[0].shape == (3, 0)


def test_carries_are_replaced_at_the_same_time():
    (out,) = buffers((2,), role=Role.OUTPUT)
    fibonacci = For(
        i8(0),
        10,
        (Let(f8(5), ADD, (f8(1), f8(2))),),
        carries=(Carried(f8(1), real(0.0), f8(2), f8(3)), Carried(f8(2), real(1.0), f8(5), f8(4))),
    )
    f = function([fibonacci, Store(out, Affine(0), f8(3)), Store(out, Affine(1), f8(4))], outputs=[out])
    np.testing.assert_array_equal(interpret(f, [])[0], [55.0, 89.0])


@pytest.mark.parametrize("steps", range(4))
def test_swapped_buffers_stay_traded(steps):
    """x, y = y, 2 x: in each iteration the new value is written to the spare memory."""
    a, b = buffers((1,), (1,))
    (out,) = buffers((2,), role=Role.OUTPUT, first=2)
    start = (Store(a, Affine(0), real(1.0)), Store(b, Affine(0), real(10.0)))
    double = (Load(f8(1), a, Affine(0)), Let(f8(2), MUL, (f8(1), real(2.0))), Store(a, Affine(0), f8(2)))
    end = (Load(f8(3), a, Affine(0)), Load(f8(4), b, Affine(0)))
    store = (Store(out, Affine(0), f8(3)), Store(out, Affine(1), f8(4)))
    f = function([*start, For(i8(0), steps, double, swaps=((a, b),)), *end, *store], [], [out], [a, b])
    x, y = 1.0, 10.0
    for _ in range(steps):
        x, y = y, 2 * x
    np.testing.assert_array_equal(interpret(f, [])[0], [x, y])


def test_outputs_are_the_callers_memory_whatever_is_swapped():
    (a,), (out,) = buffers((1,)), buffers((1,), role=Role.OUTPUT, first=1)
    body = [For(i8(0), 1, (Store(out, Affine(0), real(5.0)),), swaps=((a, out),)), Store(out, Affine(0), real(7.0))]
    np.testing.assert_array_equal(interpret(function(body, [], [out], [a]), [])[0], [5.0])


@pytest.mark.parametrize(("most", "want"), [(None, 16.0), (3, 8.0), (0, 1.0)])
def test_while_tests_before_each_iteration(most, want):
    (out,) = buffers((1,), role=Role.OUTPUT)
    loop = While(
        (Let(Reg(2, BOOL), LT, (f8(1), real(10.0))),),
        Reg(2, BOOL),
        i8(0),
        (Let(f8(3), MUL, (f8(1), real(2.0))),),
        (Carried(f8(1), real(1.0), f8(3), f8(4)),),
        most,
    )
    assert interpret(function([loop, Store(out, Affine(0), f8(4))], outputs=[out]), [])[0] == want


@pytest.mark.parametrize(("index", "want"), [(-5, 1.0), (0, 1.0), (1, 2.0), (2, 3.0), (9, 3.0)])
def test_switch_takes_the_nearest_case(index, want):
    (out,) = buffers((1,), role=Role.OUTPUT)
    cases = tuple(Case((Let(f8(k), ADD, (real(float(k)), real(1.0))),), (f8(k),)) for k in range(3))
    body = [Switch(whole(index), cases, (f8(7),)), Store(out, Affine(0), f8(7))]
    assert interpret(function(body, outputs=[out]), [])[0] == want


def test_a_switch_by_a_boolean():
    (out,) = buffers((1,), role=Role.OUTPUT)
    cases = (Case((), (real(1.0),)), Case((), (real(2.0),)))
    body = [Switch(Literal(True, BOOL), cases, (f8(7),)), Store(out, Affine(0), f8(7))]
    assert interpret(function(body, outputs=[out]), [])[0] == 2.0


def test_calls_take_views_and_write_views():
    """A product of a matrix and the reversed columns of another one, into a part of the output."""
    x, y = buffers((2, 3), (2, 3), role=Role.INPUT)
    (out,) = buffers((3, 2, 2), role=Role.OUTPUT, first=2)
    op = catalog.dot_general.op(contract=((1,), (0,)), batch=((), ()))
    wide, tall = Spec((2, 3), F8), Spec((3, 2), F8)
    # y as its transpose with both axes reversed
    views = (View(x, Affine(0), (2, 3), (3, 1)), View(y, Affine(5), (3, 2), (-1, -3)))
    call = Call(op, views, (View(out, Affine(4), (2, 2), (2, 1)),), (wide, tall))
    a, b = np.arange(6.0).reshape(2, 3), np.arange(6.0, 12.0).reshape(2, 3)
    (got,) = interpret(function([call], [x, y], [out]), [a, b])
    np.testing.assert_array_equal(got[1], a @ b[::-1, ::-1].T)
    assert np.isnan(got[[0, 2]]).all()


def test_calls_with_open_metadata():
    (x,), (out,) = buffers((N,), role=Role.INPUT), buffers((N, N), role=Role.OUTPUT, first=1)
    op = catalog.broadcast_in_dim.op(shape=(N, N), dims=(1,))
    call = Call(op, (View(x, Affine(0), (N,), (1,)),), (View(out, Affine(0), (N, N), (N, 1)),), (Spec((N,), F8),))
    f = function([call], [x], [out], sizes=("n",))
    for n in (0, 1, 3):
        a = np.arange(float(n))
        np.testing.assert_array_equal(interpret(f, [a], (n,))[0], np.broadcast_to(a, (n, n)))


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int64", "float32", "complex64"])
def test_undefined_memory_shows(dtype):
    out = Buffer(0, np.dtype(dtype), (2,), Role.OUTPUT)
    (got,) = interpret(function([], outputs=[out]), [])
    assert np.isnan(got).all() if got.dtype.kind in "fc" else (got != 0).all()


def test_constants_and_literals_keep_their_bits():
    table = Buffer(0, F8, (2,), Role.CONSTANT)
    (out,) = buffers((2,), role=Role.OUTPUT, first=1)
    body = [Load(f8(0), table, Affine(1)), Store(out, Affine(0), f8(0)), Store(out, Affine(1), real(-0.0))]
    (got,) = interpret(function(body, [], [out], (), [(table, np.array([1.0, -0.0]))]), [])
    assert np.signbit(got).all()


@pytest.mark.parametrize("at", [-1, 2])
def test_an_index_outside_is_an_error(at):
    (x,), (out,) = buffers((2,), role=Role.INPUT), buffers((2,), role=Role.OUTPUT, first=1)
    with pytest.raises(
        LoopIRError, match=rf"r0: float64 = b0\[{at}\] leaves input b0: float64\[2\]: element {at} of 2"
    ):
        interpret(function([Load(f8(0), x, Affine(at))], [x], [out]), [np.zeros(2)])
    with pytest.raises(LoopIRError, match="leaves output b1"):
        interpret(function([Store(out, Affine(at), real(1.0))], [x], [out]), [np.zeros(2)])


def test_what_does_not_fit_is_an_error():
    (x,), (out,) = buffers((2,), role=Role.INPUT), buffers((2,), role=Role.OUTPUT, first=1)
    f = function([], [x], [out])
    with pytest.raises(LoopIRError, match=r"input b0: float64\[2\] is given int64\[2\]"):
        interpret(f, [np.zeros(2, "int64")])
    with pytest.raises(LoopIRError, match=r"takes 1 inputs and 0 sizes, got 0 and 0"):
        interpret(f, [])
    with pytest.raises(LoopIRError, match=r"r0: float32 = add\(.*\) is float64"):
        interpret(replace(f, body=(Let(Reg(0, np.dtype("float32")), ADD, (real(1.0), real(2.0))),)), [np.zeros(2)])
    with pytest.raises(LoopIRError, match=r"for r0 < n - 3: the extent is -1"):
        interpret(function([For(i8(0), N - 3, ())], sizes=("n",)), [], (2,))
    view = View(x, Affine(0), (2,), (-1,))
    with pytest.raises(LoopIRError, match=r"leaves input b0: float64\[2\]: elements -1 to 0 of 2"):
        interpret(function([Call(catalog.neg.op(), (view,), (), (Spec((2,), F8),))], [x]), [np.zeros(2)])


def test_inputs_are_not_written_to():
    (x,) = buffers((2,), role=Role.INPUT)
    with pytest.raises(ValueError, match="read-only"):
        interpret(function([Store(x, Affine(0), real(1.0))], [x]), [np.zeros(2)])


def test_positions_are_indices_as_numbers():
    out = Buffer(0, INDEX, (3,), Role.OUTPUT)
    body = (Position(i8(1), Affine(N) - i8(0)), Store(out, Affine.of(i8(0)), i8(1)))
    (got,) = interpret(function([For(i8(0), 3, body)], outputs=[out], sizes=("n",)), [], (7,))
    np.testing.assert_array_equal(got, [7, 6, 5])


def test_positions_wrap():
    out = Buffer(0, INDEX, (1,), Role.OUTPUT)
    body = (Let(i8(0), ADD, (whole(2**62), whole(2**62 - 1))), Position(i8(1), Affine.of(i8(0)) * 2 + 5))
    (got,) = interpret(function([*body, Store(out, Affine(0), i8(1))], outputs=[out]), [])
    assert got == 3
