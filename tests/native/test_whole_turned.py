"""Nests that read some arrays across: squares in registers, against NumPy."""

import numpy as np
import pytest

from native_kernels import FUNCTIONS, values
from tenferro_tensor.catalog import analytic, arithmetic, numbers
from tenferro_tensor.loop_ir import Affine
from tenferro_tensor_core import dim
from whole_functions import Native, Writing, literal

pytestmark = FUNCTIONS
add, mul = arithmetic.add, arithmetic.mul
n, m = dim("n"), dim("m")
RNG = np.random.default_rng(13)
SHAPES = [(0, 3), (1, 1), (5, 70), (16, 16), (40, 17), (64, 200), (131, 67)]


def same(x, y):
    np.testing.assert_array_equal(x, y, strict=True)


def in_squares(function):
    native = Native(function)
    assert native.rendered.text.count("shufflevector") >= 8
    return native


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int32", "int64", "float32", "float64", "complex64", "complex128"])
def test_an_array_beside_one_that_is_read_across(dtype):
    w = Writing("n", "m")
    x, y, out = w.input(dtype, n, m), w.input(dtype, m, n), w.output(dtype, n, m)
    with w.loop(n) as i, w.loop(m) as j:
        at = Affine.of(i) * m + j
        w.store(out, at, w.let(add, w.load(x, at), w.load(y, Affine.of(j) * n + i)))
    native = in_squares(w.function())
    for rows, columns in SHAPES:
        a, b = values(RNG, dtype, (rows, columns)), values(RNG, dtype, (columns, rows))
        with np.errstate(over="ignore"):
            same(native(a, b, sizes={"n": rows, "m": columns})[0], a + b.T)


@pytest.mark.parametrize("shape", [(16, 16), (33, 100)])
def test_known_extents_several_arrays_and_numbers_of_a_row(shape):
    rows, columns = shape
    w = Writing()
    x, y, v, u = w.input("f8", columns, rows), w.input("f4", columns, rows), w.input("f8", rows), w.input("f8", columns)
    out, exps = w.output("f8", rows, columns), w.output("f8", rows, columns)
    with w.loop(rows) as i, w.loop(columns) as j:
        across, at = Affine.of(j) * rows + i, Affine.of(i) * columns + j
        narrow = w.let(arithmetic.maximum, w.load(y, across), literal(0.0, "f4"))
        wide = w.let(numbers.convert.op(dtype=np.dtype("f8")), narrow, dtype="f8")
        w.store(out, at, w.let(mul, w.let(add, w.load(x, across), wide), w.let(add, w.load(v, i), w.load(u, j))))
        w.store(exps, at, w.let(analytic.exp, w.load(x, across)))
    a, b = RNG.standard_normal((columns, rows)), RNG.standard_normal((columns, rows)).astype("f4")
    c, d = RNG.standard_normal(rows), RNG.standard_normal(columns)
    got, raised = in_squares(w.function())(a, b, c, d)
    same(got, (a.T + np.maximum(b.T, 0).astype("f8")) * (c[:, None] + d))
    np.testing.assert_allclose(raised, np.exp(a.T), rtol=1e-15)


def test_each_layer_of_three_axes():
    w = Writing("n", "m")
    x, out = w.input("f8", 3, m, n), w.output("f8", 3, n, m)
    with w.loop(3) as k, w.loop(n) as i, w.loop(m) as j:
        layer = Affine.of(k) * (n * m)
        w.store(out, layer + Affine.of(i) * m + j, w.load(x, layer + Affine.of(j) * n + i))
    native = in_squares(w.function())
    a = RNG.standard_normal((3, 50, 41))
    same(native(a, sizes={"n": 41, "m": 50})[0], a.transpose(0, 2, 1).copy())


def test_what_is_read_across_and_written_is_not_read_ahead():
    """Both triangles of a matrix, of which each iteration reads what it alone wrote."""
    w = Writing("n")
    x, out = w.input("f8", n, n), w.output("f8", n, n)
    with w.loop(n) as i, w.loop(n) as j:
        across = Affine.of(j) * n + i
        w.store(out, across, w.load(x, Affine.of(i) * n + j))
        w.store(out, across, w.let(add, w.load(out, across), literal(1.0)))
    a = RNG.standard_normal((70, 70))
    same(Native(w.function())(a, sizes={"n": 70})[0], a.T + 1)


def test_pieces_in_any_order():
    w = Writing("n", "m")
    x, out = w.input("f8", m, n), w.output("f8", n, m)
    with w.loop(n) as i, w.loop(m) as j:
        w.store(out, Affine.of(i) * m + j, w.load(x, Affine.of(j) * n + i))
    native, seen = Native(w.function()), []
    a = RNG.standard_normal((1500, 333))

    def backwards(piece, count):
        seen.append(count)
        for number in reversed(range(count)):
            piece(number)

    status, (got,), _ = native.run(a, sizes={"n": 333, "m": 1500}, threads=2, parallel_for=backwards)
    assert status == 0 and seen and max(seen) > 1
    same(got, a.T.copy())
