"""Whole programs as one native function: every statement and control flow, against NumPy."""

import re

import numpy as np
import pytest

from tenferro_cpu.native.codegen.machine._jit import FINISHED, engine
from tenferro_cpu.native.codegen.whole import render
from tenferro_tensor import Spec
from tenferro_tensor.catalog import analytic, arithmetic, bits, comparison, numbers
from tenferro_tensor.loop_ir import Affine, Order, View
from tenferro_tensor_core import UnsupportedError, dim, dim_max, dim_min, floordiv
from whole_functions import Native, Writing, literal

add, mul, sub = arithmetic.add, arithmetic.mul, arithmetic.sub
n, m = dim("n"), dim("m")
RNG = np.random.default_rng(7)
INTEGERS = [f"{sign}int{width}" for sign in ("", "u") for width in (8, 16, 32, 64)]


def same(x, y):
    np.testing.assert_array_equal(x, y, strict=True)


@pytest.mark.parametrize("size", [0, 1, 7, 100])
def test_a_sum_of_scaled_vectors_of_symbolic_size(size):
    w = Writing("n")
    x, y, out = w.input("f8", n), w.input("f8", n), w.output("f8", n)
    with w.loop(n) as i:
        w.store(out, i, w.let(add, w.let(mul, literal(2.5), w.load(x, i)), w.load(y, i)))
    a, b = RNG.random((2, size))
    same(Native(w.function())(a, b, sizes={"n": size})[0], 2.5 * a + b)


@pytest.mark.parametrize("dtype", [*INTEGERS, "bool", "float32", "float64", "complex64", "complex128"])
def test_transposed_copies_of_every_dtype(dtype):
    w = Writing("n", "m")
    x, kept, out = w.input(dtype, n, m), w.temporary(dtype, m, n), w.output(dtype, n, m)
    with w.loop(n) as i, w.loop(m) as j:
        w.store(kept, Affine.of(j) * n + i, w.load(x, Affine.of(i) * m + j))
    with w.loop(n) as i, w.loop(m) as j:
        w.store(out, Affine.of(i) * m + j, w.load(kept, Affine.of(j) * n + i))
    a = np.frombuffer(RNG.bytes(15 * 16), np.uint8).astype(dtype)[:15].reshape(3, 5)
    same(Native(w.function())(a, sizes={"n": 3, "m": 5})[0], a)


def test_booleans_are_bits_in_registers_and_bytes_in_memory():
    w = Writing()
    x, out, count = w.input("bool", 6), w.output("bool", 6), w.output("int64")
    with w.loop(6) as i:
        w.store(out, i, w.let(bits.bitwise_not, w.load(x, i)))

    def step(i, c):
        return [w.let(add, c, w.let(numbers.convert.op(dtype=np.dtype("int64")), w.load(x, i), dtype="int64"))]

    w.store(count, 0, w.fold(6, [literal(0, "int64")], step)[0])
    a = np.array([1, 0, 0, 1, 1, 0], bool)
    inverted, counted = Native(w.function())(a)
    same(inverted, ~a)
    assert counted == 3


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers_of_every_width(dtype):
    ops = {
        add: np.add, sub: np.subtract, mul: np.multiply, arithmetic.floor_divide: np.floor_divide,
        arithmetic.remainder: np.remainder, arithmetic.maximum: np.maximum, bits.bitwise_xor: np.bitwise_xor,
    }  # fmt: skip
    w = Writing()
    x, y = w.input(dtype, 9), w.input(dtype, 9)
    outs = [w.output(dtype, 9) for _ in ops]
    less = w.output("bool", 9)
    with w.loop(9) as i:
        a, b = w.load(x, i), w.load(y, i)
        for op, out in zip(ops, outs, strict=True):
            w.store(out, i, w.let(op, a, b))
        w.store(less, i, w.let(comparison.lt, a, b, dtype="bool"))
    a, b = np.frombuffer(RNG.bytes(18 * 8), dtype)[:18].reshape(2, 9)
    b = np.where(b == 0, b.dtype.type(3), b)
    found = Native(w.function())(a, b)
    with np.errstate(over="ignore"):
        for got, f in zip(found, [*ops.values(), np.less], strict=True):
            same(got, f(a, b))


def test_complex_numbers():
    w = Writing()
    x, y, out, size = w.input("c16", 5), w.input("c16", 5), w.output("c16", 5), w.output("f8", 5)
    with w.loop(5) as i:
        a, b = w.load(x, i), w.load(y, i)
        product = w.let(mul, a, w.let(numbers.conj, b))
        w.store(out, i, w.let(add, product, literal(1 + 2j, "c16")))
        w.store(size, i, w.let(numbers.real, product, dtype="f8"))
    a, b = RNG.random((2, 5)) + 1j * RNG.random((2, 5))
    got, real = Native(w.function())(a, b)
    np.testing.assert_allclose(got, a * b.conj() + (1 + 2j), rtol=1e-15)
    np.testing.assert_allclose(real, (a * b.conj()).real, rtol=1e-15)


@pytest.mark.parametrize("rows", [0, 1, 5])
def test_reductions_over_leading_and_trailing_axes(rows):
    w = Writing("n")
    x, trailing, leading = w.input("i8", n, 4), w.output("i8", n), w.output("i8", 4)
    with w.loop(n) as i:
        total = w.fold(
            4,
            [literal(0, "i8")],
            lambda j, c: [w.let(add, c, w.load(x, Affine.of(i) * 4 + j))],
            Order.GROUPED,
        )
        w.store(trailing, i, total[0])
    with w.loop(4) as j:
        w.store(leading, j, literal(0, "i8"))
    with w.loop(n, Order.GIVEN) as i, w.loop(4) as j:
        w.store(leading, j, w.let(add, w.load(leading, j), w.load(x, Affine.of(i) * 4 + j)))
    a = RNG.integers(-99, 99, (rows, 4))
    by_row, by_column = Native(w.function())(a, sizes={"n": rows})
    same(by_row, a.sum(1))
    same(by_column, a.sum(0))


def test_prefix_sums_and_results_of_carries():
    w = Writing("n")
    x, sums, last = w.input("f8", n), w.output("f8", n), w.output("f8", 2)

    def step(i, total, before):
        following = w.let(add, total, w.load(x, i))
        w.store(sums, i, following)
        return [following, total]

    for place, result in enumerate(w.fold(n, [literal(1.0), literal(-1.0)], step)):
        w.store(last, place, result)
    f = Native(w.function())
    a = RNG.random(9)
    got, ends = f(a, sizes={"n": 9})
    want = np.add.accumulate(np.r_[1.0, a])
    same(got, want[1:])
    same(ends, want[[-1, -2]])
    same(f(a[:0], sizes={"n": 0})[1], np.array([1.0, -1.0]))


def collatz(w, start, most=None):
    """Steps to 1, by a while loop with a switch."""

    def step(_, x, count):
        odd = w.let(bits.bitwise_and, x, literal(1, "i8"))
        following = w.switch(
            odd,
            lambda: [w.let(bits.shift_right, x, literal(1, "i8"))],
            lambda: [w.let(add, w.let(mul, x, literal(3, "i8")), literal(1, "i8"))],
        )
        return [following[0], w.let(add, count, literal(1, "i8"))]

    def test(x, _):
        return w.let(comparison.ne, x, literal(1, "i8"), dtype="bool")

    return w.loop_while([start, literal(0, "i8")], test, step, most)[1]


@pytest.mark.parametrize("most", [None, 0, 10])
def test_while_loops_inside_of_loops_with_switches_inside(most):
    def steps(x):
        count = 0
        while x != 1 and count != most:
            x, count = (x * 3 + 1 if x % 2 else x // 2), count + 1
        return count

    w = Writing()
    x, out = w.input("i8", 20), w.output("i8", 20)
    with w.loop(20) as i:
        w.store(out, i, collatz(w, w.load(x, i), most))
    a = np.arange(1, 21)
    same(Native(w.function())(a)[0], np.array([steps(int(v)) for v in a]))


@pytest.mark.parametrize("index", [-5, 0, 1, 2, 9])
@pytest.mark.parametrize("dtype", ["int8", "int64"])
def test_an_index_outside_of_a_switch_means_the_nearest_case(index, dtype):
    w = Writing()
    x, out = w.input(dtype), w.output("f8")
    cases = [lambda k=k: [literal(float(k))] for k in range(3)]
    w.store(out, 0, w.switch(w.load(x, 0), *cases)[0])
    assert Native(w.function())(np.array(index, dtype))[0] == min(max(index, 0), 2)


@pytest.mark.parametrize(("rounds", "inner"), [(0, 3), (1, 0), (1, 1), (2, 3), (3, 2), (5, 5)])
def test_buffers_that_trade_their_memory_in_nested_loops_and_cases(rounds, inner):
    w = Writing("n", "m")
    x, y, out = w.temporary("f8", 2), w.temporary("f8", 2), w.output("f8", 4)
    for k, buffer in enumerate((x, y)):
        for j in (0, 1):
            w.store(buffer, j, literal(float(10 * k + j)))

    def bump(buffer, by):
        w.store(buffer, 0, w.let(add, w.let(mul, w.load(buffer, 0), literal(2.0)), literal(by)))

    def once():
        with w.loop(1, Order.GIVEN, [(x, y)]):
            bump(y, 5.0)
        return []

    with w.loop(n, Order.GIVEN, [(x, y)]) as i:
        bump(x, 1.0)
        with w.loop(m, Order.GIVEN, [(x, y)]):
            bump(y, 3.0)
        w.switch(i, list, once)
    for k, buffer in enumerate((x, y)):
        with w.loop(2) as j:
            w.store(out, Affine.of(j) + 2 * k, w.load(buffer, j))

    p, q = np.array([0.0, 1.0]), np.array([10.0, 11.0])
    for i in range(rounds):
        p[0] = p[0] * 2 + 1
        for _ in range(inner):
            q[0] = q[0] * 2 + 3
            p, q = q, p
        if i > 0:
            q[0] = q[0] * 2 + 5
            p, q = q, p
        p, q = q, p
    same(Native(w.function())(sizes={"n": rounds, "m": inner})[0], np.r_[p, q])


def test_a_trade_inside_of_the_only_case_of_a_switch_stays():
    w = Writing()
    x, y, out = w.temporary("f8", 1), w.temporary("f8", 1), w.output("f8", 2)

    def trade():
        with w.loop(3, Order.GIVEN, [(x, y)]):
            w.store(x, 0, w.let(add, w.load(x, 0), literal(1.0)))
        return []

    for buffer, value in ((x, 1.0), (y, 5.0)):
        w.store(buffer, 0, literal(value))
    w.switch(literal(0, "i8"), trade)
    for k, buffer in enumerate((x, y)):
        w.store(out, k, w.load(buffer, 0))
    same(Native(w.function())()[0], np.array([6.0, 3.0]))


def test_stores_at_computed_places():
    w = Writing()
    where, values, out = w.input("int32", 8), w.input("f8", 8), w.output("f8", 5)
    with w.loop(5) as i:
        w.store(out, i, literal(0.0))
    with w.loop(8, Order.GIVEN) as k:
        at = w.load(where, k)
        inside = w.let(comparison.lt, at, literal(5, "i4"), dtype="bool")

        def put(at=at, k=k):
            w.store(out, at, w.let(add, w.load(out, at), w.load(values, k)))
            return []

        w.switch(inside, list, put)
    at, x = np.array([0, 3, 3, 7, 1, 4, 0, 9], "i4"), RNG.random(8)
    want = np.zeros(5)
    np.add.at(want, at[at < 5], x[at < 5])
    same(Native(w.function())(at, x)[0], want)


@pytest.mark.parametrize("sizes", [(0, 1), (5, 2), (9, 4), (3, 9)])
def test_sizes_that_are_quotients_and_extrema(sizes):
    a, b = sizes
    exprs = [n * m - 3, floordiv(n - 7, m), floordiv(n, 2) + m, dim_max(n - m, 2), dim_min(n, m, 6) * n]
    w = Writing("n", "m")
    out = w.output("i8", len(exprs))
    for k, e in enumerate(exprs):
        w.store(out, k, w.position(e))
    want = np.array([e.evaluate({"n": a, "m": b}) for e in exprs])
    same(Native(w.function())(sizes={"n": a, "m": b})[0], want)


def test_constants_follow_the_inputs():
    w = Writing()
    table, x, out = w.constant(np.arange(5) ** 2.0), w.input("i8", 3), w.output("f8", 3)
    with w.loop(3) as i:
        w.store(out, i, w.load(table, w.load(x, i)))
    same(Native(w.function())(np.array([4, 0, 2]))[0], np.array([16.0, 0.0, 4.0]))


def test_special_functions_are_written_out():
    w = Writing()
    x, out, cube = w.input("f8"), w.output("f8"), w.output("i8")
    w.store(out, 0, w.let(analytic.lgamma, w.load(x, 0)))
    w.store(cube, 0, w.let(arithmetic.pow, w.position(7), literal(3, "i8")))
    value, power = Native(w.function())(np.array(4.5))
    np.testing.assert_allclose(value, 2.453736570842442, rtol=1e-14)
    assert power == 343


def test_an_op_without_a_native_form_is_refused():
    w = Writing()
    x, out = w.input("i8"), w.output("i8")
    w.store(out, 0, w.let(arithmetic.pow, w.load(x, 0), w.load(x, 0)))
    with pytest.raises(UnsupportedError, match=r"^pow of int64, int64 has no native form on this CPU"):
        render(w.function(), engine().host)


def test_calls_are_handed_addresses_and_extents():
    w = Writing("n")
    x, out = w.input("f8", n, 3), w.output("f8", n, 3)
    spec = Spec((n,), np.dtype("f8"))
    op = arithmetic.neg.op()

    def column(buffer, j):
        return View(buffer, Affine.of(j), (n,), (3,))

    with w.loop(3, Order.GIVEN) as j:
        w.call(op, (column(x, j),), (column(out, j),), (spec,))
    w.call(op, (column(x, 1),), (column(out, 0),), (spec,))
    f, seen = Native(w.function()), []
    a = RNG.random((4, 3))

    def call(number, pointers, extents):
        import ctypes

        places = (ctypes.c_void_p * 2).from_address(pointers)
        seen.append((number, places[0] - a.ctypes.data, list((ctypes.c_int64 * 4).from_address(extents))))
        return 5 if number == 1 else 0

    assert f.run(a, sizes={"n": 4}, call=call)[0] == 5
    assert seen == [(0, 8 * j, [4, 3, 4, 3]) for j in range(3)] + [(1, 8, [4, 3, 4, 3])]
    assert [c.op for c in f.rendered.calls] == [op, op]


def test_a_long_loop_is_left_where_the_poll_says_so():
    w = Writing("n")
    out = w.output("i8")
    w.store(out, 0, w.fold(n, [literal(0, "i8")], lambda i, c: [w.let(bits.bitwise_xor, c, i)])[0])
    f, polls = Native(w.function()), []

    def poll():
        polls.append(1)
        return 3 * (len(polls) > 1)

    status, _, context = f.run(sizes={"n": 1 << 20}, poll=poll, countdown=5000)
    assert (status, len(polls)) == (3, 2)
    assert context.countdown <= 0
    assert f.run(sizes={"n": 1 << 20}, poll=lambda: 1)[0] == 0


def test_zero_extents_run_nothing():
    w = Writing("n")
    x, out = w.input("f8", n, 0), w.output("f8", n)
    with w.loop(n) as i:
        total = w.fold(0, [literal(4.0)], lambda j, c: [w.let(add, c, w.load(x, j))], Order.GROUPED)
        w.store(out, i, total[0])
    same(Native(w.function())(np.empty((2, 0)), sizes={"n": 2})[0], np.full(2, 4.0))
    assert Native(w.function())(np.empty((0, 0)), sizes={"n": 0})[0].size == 0


@pytest.mark.parametrize("level", [0, 1])
def test_ten_thousand_statements(level):
    w = Writing()
    x, out = w.input("f8"), w.output("f8")
    value, want, a = w.load(x, 0), 0.3, np.array(0.3)
    for k in range(10_000):
        value = w.let(mul, value, literal(1.0009765625)) if k % 2 else w.let(sub, literal(1.0), value)
        want = want * 1.0009765625 if k % 2 else 1.0 - want
    w.store(out, 0, value)
    assert Native(w.function(), level)(a)[0] == want


def stencils(count, distinct):
    """Nests one after the other between two buffers, as they should run."""
    w = Writing("n")
    x, out = w.input("f8", n), w.output("f8", n)
    kept = [w.temporary("f8", n) for _ in range(2)]
    for buffer in (*kept, out):
        with w.loop(n) as i:
            w.store(buffer, i, w.load(x, i))
    source = x
    for k in range(count):
        target = out if k == count - 1 else kept[k % 2]
        with w.loop(n - 2) as i:
            total = w.let(add, w.load(source, i), w.load(source, Affine.of(i) + 2))
            w.store(target, Affine.of(i) + 1, w.let(mul, total, literal(0.5 + (k if distinct else 0))))
        source = target
    return w.function()


@pytest.mark.parametrize("distinct", [False, True])
def test_equal_nests_are_written_once(distinct):
    f = Native(stencils(12, distinct))
    assert len(re.findall(r"define private void @nest\d+\(", f.rendered.text)) == 1 + (12 if distinct else 1)
    a = RNG.random(50)
    want, kept, source = a.copy(), [a.copy(), a.copy()], a
    for k in range(12):
        target = want if k == 11 else kept[k % 2]
        target[1:-1] = (source[:-2] + source[2:]) * (0.5 + (k if distinct else 0))
        source = target
    same(f(a, sizes={"n": 50})[0], want)


def test_nests_of_vectors_are_left_alone_by_the_optimiser():
    def marked(step):
        w = Writing("n")
        x, out = w.input("f8", n), w.output("f8", n)
        with w.loop(n) as i:
            w.store(out, i, step(w, i, w.load(x, i)))
        return FINISHED in render(w.function(), engine().host).text

    def counted(w, i, value):
        flag = w.let(comparison.lt, value, literal(0.5), dtype="bool")
        return w.let(add, value, w.let(numbers.convert.op(dtype=np.dtype("float64")), flag, dtype="f8"))

    assert marked(lambda w, i, value: w.let(mul, value, value))
    assert not marked(counted), "its masks are simplified"


def test_a_nest_uses_a_buffer_under_one_name_in_all_cases():
    w = Writing()
    out, picks = w.output("f8", 400), w.input("i8", 400)
    with w.loop(400) as i:
        w.store(out, i, literal(1.0))
        bodies = [lambda k=k: w.store(out, i, w.let(add, w.load(out, i), literal(float(k)))) or [] for k in range(3)]
        w.switch(w.load(picks, i), *bodies)
        w.store(out, i, w.let(mul, w.load(out, i), literal(2.0)))
    f = Native(w.function())
    assert f.rendered.text.count("ptr noalias") == 2
    a = RNG.integers(0, 3, 400)
    same(f(a)[0], 2.0 * (1 + a))


def test_large_nests_poll_between_pieces():
    w = Writing("n")
    out = w.output("i8", n)
    with w.loop(n) as i:
        w.store(out, i, w.let(bits.bitwise_xor, i, literal(5, "i8")))
    f, polls, size = Native(w.function()), [], 3 << 20
    status, (got,), _ = f.run(sizes={"n": size}, poll=lambda: polls.append(1) or 0, countdown=1)
    assert status == 0
    assert len(polls) > 3
    same(got, np.arange(size) ^ 5)
    assert f.run(sizes={"n": size}, poll=lambda: 9, countdown=1)[0] == 9


def test_small_functions_have_the_same_bits_with_half_of_the_code():
    w = Writing("n")
    x, out, total = w.input("f8", n), w.output("f8", n), w.output("f8")
    with w.loop(n) as i:
        w.store(out, i, w.let(mul, w.load(x, i), literal(3.0)))
    (found,) = w.fold(n, [literal(1.0)], lambda i, c: [w.let(add, c, w.load(x, i))], Order.GROUPED)
    w.store(total, 0, found)
    usual, small = Native(w.function()), Native(w.function(), small=True)
    assert 2 * len(small.rendered.text) < len(usual.rendered.text)
    for size in (0, 1, 7, 100, 3001):
        a = RNG.random(size)
        for one, other in zip(usual(a, sizes={"n": size}), small(a, sizes={"n": size}), strict=True):
            same(one, other)


def test_results_of_nested_reductions_come_back_from_nests():
    w = Writing("n")
    x, out, squares = w.input("c16", n), w.output("c16"), w.output("i8")

    def step(i, total, count):
        return [w.let(add, total, w.load(x, i)), w.let(add, count, i)]

    first = [literal(0, "c16"), literal(0, "i8")]
    for buffer, result in zip((out, squares), w.fold(n, first, step, Order.GROUPED), strict=True):
        w.store(buffer, 0, result)
    a = np.arange(300) + 1j
    got, count = Native(w.function())(a, sizes={"n": 300})
    assert (got, count) == (a.sum(), a.real.sum())


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_large_nests_have_the_same_bits_on_any_number_of_threads(threads):
    w = Writing("n")
    x, out, flags = w.input("f8", n, 3), w.output("f8", n, 3), w.output("bool", n)
    factor = w.let(mul, w.load(x, 0), literal(3.0))
    flag = w.let(comparison.lt, factor, literal(0.0), dtype="bool")
    with w.loop(n) as i:
        for j in range(3):
            at = Affine.of(i) * 3 + j
            w.store(out, at, w.let(analytic.exp, w.let(mul, w.load(x, at), factor)))
        w.store(flags, i, flag)
    f, size, seen = Native(w.function()), 150_001, []
    a = RNG.random((size, 3)) - 0.5
    status, (got, signs), _ = f.run(a, sizes={"n": size}, threads=threads)
    assert status == 0
    np.testing.assert_allclose(got, np.exp(a * (3 * a[0, 0])), rtol=1e-15)

    def backwards(piece, count):
        seen.append(count)
        for number in reversed(range(count)):
            piece(number)

    same(got, f.run(a, sizes={"n": size}, threads=threads, parallel_for=backwards)[1][0])
    assert (threads > 1) == bool(seen)
    same(signs, np.full(size, a[0, 0] < 0))
