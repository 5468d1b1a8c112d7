"""Loops over columns with loops over rows inside: all lanes together, against NumPy."""

import numpy as np
import pytest

from native_kernels import FUNCTIONS, values
from tenferro_tensor.catalog import analytic, arithmetic, comparison
from tenferro_tensor.loop_interpreter import interpret
from tenferro_tensor.loop_ir import Affine, Order, verify
from tenferro_tensor_core import dim
from whole_functions import Native, Writing, literal

pytestmark = FUNCTIONS
add, mul = arithmetic.add, arithmetic.mul
n, m = dim("n"), dim("m")
RNG = np.random.default_rng(12)
BAND, CHUNK = 64, 512
OPS = {"sum": add, "prod": mul, "max": arithmetic.maximum, "min": arithmetic.minimum}
ROWS = [0, 1, 7, BAND, BAND + 1, 3 * BAND + 5]
COLUMNS = [0, 1, 5, 33, 200, CHUNK + 70]


def in_columns(function):
    """Compiled; rows are read whole vectors at a time."""
    verify(function)
    native = Native(function)
    assert "@llvm.masked" in native.rendered.text and "@llvm.masked.gather" not in native.rendered.text
    return native


def first_of(kind, dtype):
    dtype = np.dtype(dtype)
    if kind in ("sum", "prod"):
        return literal(dtype.type(kind == "prod").item(), dtype)
    limits = np.iinfo(dtype) if dtype.kind in "iu" else None
    low, high = (-np.inf, np.inf) if limits is None else (int(limits.min), int(limits.max))
    return literal(low if kind == "max" else high, dtype)


def combined(kind, dtype, rows, columns):
    """Columns combined, and what follows from the result in the same loop."""
    w = Writing("n", "m")
    x, out, after = w.input(dtype, rows, columns), w.output(dtype, columns), w.output(dtype, columns)
    with w.loop(columns) as j:
        total = w.fold(
            rows, [first_of(kind, dtype)],
            lambda i, c: [w.let(OPS[kind], c, w.load(x, Affine.of(i) * columns + j))], Order.GROUPED,
        )[0]  # fmt: skip
        w.store(out, j, total)
        w.store(after, j, w.let(add, total, total))
    return w.function()


@pytest.mark.parametrize("kind", OPS)
@pytest.mark.parametrize("dtype", ["int8", "uint32", "int64", "float32", "float64", "complex128"])
def test_rows_are_combined(kind, dtype):
    dtype = np.dtype(dtype)
    if dtype.kind == "c" and kind in ("max", "min"):
        pytest.skip("no order")
    native = in_columns(combined(kind, dtype, n, m))
    for rows in ROWS:
        for columns in COLUMNS:
            x = values(RNG, dtype, (rows, columns))
            if kind == "prod" and dtype.kind in "fc":
                x = np.exp(x / 999).astype(dtype)
            ufunc = {"sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum}[kind]
            want = ufunc.reduce(x, axis=0, dtype=dtype, initial=first_of(kind, dtype).value)
            with np.errstate(over="ignore"):
                got, twice = native(x, sizes={"n": rows, "m": columns})
                if dtype.kind in "iu" or kind in ("max", "min"):
                    np.testing.assert_array_equal(got, want)
                else:
                    bound = np.finfo(dtype).eps * (1 + np.abs(x).sum() + np.abs(want).max(initial=0.0))
                    np.testing.assert_allclose(got, want, rtol=100 * np.finfo(dtype).eps, atol=bound)
                np.testing.assert_array_equal(twice, got + got)


def test_known_sizes_give_the_same_bits():
    native = in_columns(combined("sum", "f8", n, m))
    for rows in (3, BAND, 300):
        for columns in (2, 9, 70):
            x = RNG.standard_normal((rows, columns))
            found = Native(combined("sum", "f8", rows, columns))(x, sizes={"n": rows, "m": columns})[0]
            np.testing.assert_array_equal(found, native(x, sizes={"n": rows, "m": columns})[0])


@pytest.mark.parametrize("rows", [5, BAND, 1000])
def test_bits_of_a_column_depend_on_its_length_alone(rows):
    native, x = in_columns(combined("sum", "f8", n, m)), RNG.standard_normal((rows, 1))
    alone = native(x, sizes={"n": rows, "m": 1})[0]
    for columns in (2, 8, 45, CHUNK + 3):
        many = native(np.repeat(x, columns, axis=1), sizes={"n": rows, "m": columns})[0]
        np.testing.assert_array_equal(many, np.repeat(alone, columns))


def test_threads_give_the_same_bits():
    native, x = Native(combined("sum", "f8", n, m)), RNG.standard_normal((700, 2000))
    done = []

    def reverse(piece, count):
        for k in reversed(range(count)):
            done.append(k)
            piece(k)

    sizes = {"n": 700, "m": 2000}
    status, (alone, _), _ = native.run(x, sizes=sizes)
    assert status == 0
    status, (shared, _), _ = native.run(x, sizes=sizes, threads=2, parallel_for=reverse)
    assert status == 0 and len(done) > 1
    np.testing.assert_array_equal(alone, shared)


def test_numbers_of_a_row_and_several_sums_at_once():
    w = Writing("n", "m")
    x, weights, out, squares = w.input("f8", n, m), w.input("f8", n), w.output("f8", m), w.output("f8", m)

    with w.loop(m) as j:

        def both(i, c, d):
            a = w.load(x, Affine.of(i) * m + j)
            factor = w.let(mul, w.load(weights, i), literal(2.0))
            return [w.let(add, c, w.let(mul, a, factor)), w.let(add, d, w.let(mul, a, a))]

        first, second = w.fold(n, [literal(0.0), literal(0.0)], both, Order.GROUPED)
        w.store(out, j, first)
        w.store(squares, j, second)
    x, weights = RNG.standard_normal((150, 90)), RNG.standard_normal(150)
    got = in_columns(w.function())(x, weights, sizes={"n": 150, "m": 90})
    np.testing.assert_allclose(got[0], (2 * weights) @ x, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(got[1], (x * x).sum(0), rtol=1e-12)


@pytest.mark.parametrize("columns", [1, 6, 77])
def test_loops_in_order_and_independent_ones(columns):
    """A cumulative sum, the row of the largest element, and rows that are scaled by what was found."""
    w = Writing("n", "m")
    x, sums, where, scaled = w.input("f8", n, m), w.output("f8", n, m), w.output("i8", m), w.output("f8", n, m)
    with w.loop(m) as j:

        def step(i, total, best, at):
            a = w.load(x, Affine.of(i) * m + j)
            total = w.let(add, total, w.let(analytic.exp, a))
            w.store(sums, Affine.of(i) * m + j, total)
            wins = w.let(comparison.gt, a, best, dtype="bool")
            p = w.position(Affine.of(i))
            return [
                total,
                w.let(comparison.select, wins, a, best, dtype="f8"),
                w.let(comparison.select, wins, p, at, dtype="i8"),
            ]

        total, _, at = w.fold(n, [literal(0.0), literal(-np.inf), literal(-1, "i8")], step, Order.GIVEN)
        w.store(where, j, at)
        with w.loop(n) as i:
            w.store(scaled, Affine.of(i) * m + j, w.let(arithmetic.div, w.load(sums, Affine.of(i) * m + j), total))
    f = w.function()
    for rows in (0, 1, 9):
        x = RNG.standard_normal((rows, columns))
        sizes = {"n": rows, "m": columns}
        for got, want in zip(Native(f)(x, sizes=sizes), interpret(f, [x], list(sizes.values())), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-13)


def test_columns_of_a_row_major_product():
    w = Writing("n", "m")
    a, b, out = w.input("f8", n, 100), w.input("f8", 100, m), w.output("f8", n, m)
    with w.loop(n) as i, w.loop(m) as j:
        terms = w.fold(
            100, [literal(0.0)],
            lambda k, c: [
                w.let(add, c, w.let(mul, w.load(a, Affine.of(i) * 100 + k), w.load(b, Affine.of(k) * m + j)))
            ], Order.GROUPED,
        )  # fmt: skip
        w.store(out, Affine.of(i) * m + j, terms[0])
    x, y = RNG.standard_normal((5, 100)), RNG.standard_normal((100, 41))
    np.testing.assert_allclose(
        in_columns(w.function())(x, y, sizes={"n": 5, "m": 41})[0], x @ y, rtol=1e-10, atol=1e-12
    )
