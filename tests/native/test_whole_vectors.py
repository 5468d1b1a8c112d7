"""Innermost loops as vectors: every way in which lanes lie in memory, against NumPy."""

import sys
from functools import partial

import numpy as np
import pytest

from guard_pages import require_inside
from native_kernels import FUNCTIONS, values
from native_rooms import Reduced
from tenferro_cpu.native import engine
from tenferro_cpu.native.codegen.whole._vectors import SHORT_ROW_MAX
from tenferro_cpu.native.kernels._fused_entry import ENTRY_MIN_ROW
from tenferro_tensor.catalog import analytic, arithmetic, bits, comparison, numbers
from tenferro_tensor.loop_ir import Affine, Order
from tenferro_tensor_core import dim
from whole_functions import Native, Writing, literal

pytestmark = FUNCTIONS
add, mul = arithmetic.add, arithmetic.mul
n, m = dim("n"), dim("m")
RNG = np.random.default_rng(11)
SIZES = [0, 1, 5, 31, 200]
DTYPES = ["bool", "int8", "uint16", "int32", "int64", "float32", "float64", "complex64", "complex128"]


def same(x, y):
    np.testing.assert_array_equal(x, y, strict=True)


def in_vectors(function):
    native = Native(function)
    assert "@llvm.masked" in native.rendered.text
    return native


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", SIZES)
def test_neighbours_and_single_elements(dtype, size):
    w = Writing("n", "m")
    x, y, out = w.input(dtype, n, m), w.input(dtype, n), w.output(dtype, n, m)
    with w.loop(n) as i, w.loop(m) as j:
        at = Affine.of(i) * m + j
        w.store(out, at, w.let(add, w.load(x, at), w.load(y, i)))
    a, b = values(RNG, dtype, (3, size)), values(RNG, dtype, 3)
    with np.errstate(over="ignore"):
        same(in_vectors(w.function())(a, b, sizes={"n": 3, "m": size})[0], a + b[:, None])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", SIZES)
def test_lanes_apart_backwards_and_at_computed_places(dtype, size):
    w = Writing("n")
    x, where, out = w.input(dtype, 3 * n), w.input("int32", n), w.output(dtype, n)
    scattered, far, roots = w.output(dtype, n), w.output(dtype, n * 2), w.output("f8", n)
    with w.loop(n) as i:
        k = Affine.of(i)
        w.store(out, -k + (n - 1), w.load(x, k * 3 + 1))
        at = w.load(where, i)
        w.store(scattered, at, w.load(x, Affine.of(at) * 2 + 1))
        w.store(far, k * 2, w.load(x, i))
        w.store(far, k * 2 + 1, w.load(x, k + n))
        w.store(roots, i, w.let(analytic.exp, w.let(numbers.convert.op(dtype=np.dtype("f8")), i, dtype="f8")))
    a, places = values(RNG, dtype, 3 * size), RNG.permutation(size).astype("i4")
    reverse, put, both, exps = in_vectors(w.function())(a, places, sizes={"n": size})
    same(reverse, a[1::3][::-1])
    want = np.empty_like(a[:size])
    want[places] = a[2 * places + 1]
    same(put, want)
    same(both, np.stack([a[:size], a[size : 2 * size]], 1).ravel())
    with np.errstate(over="ignore"):
        np.testing.assert_allclose(exps, np.exp(np.arange(size)), rtol=1e-15)


EVERY_OTHER = """
import numpy as np, tenferro_runtime as tr

def step(x, y):  # reads and writes up to the last element
    return tr.fori_loop(0, 2, lambda _, y: y.at[::2].set(y[::2] * x[::2]).at[0::2].add(x[::2]), y)

run = tr.compile(step)
for n in range(2, 60):
    x, y = np.arange(1.0, n + 1), np.arange(float(n))
    got = run(tr.asarray(guarded(x, True)), tr.asarray(guarded(y, True)))
    tr.fusion.wait()
    got = run(tr.asarray(guarded(x, True)), tr.asarray(guarded(y, True)))
    for _ in range(2):
        y[::2] = y[::2] * x[::2]
        y[::2] += x[::2]
    assert np.array_equal(got.numpy(), y), n
"""


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", range(1, 40, 3))
def test_every_other_element(dtype, size):
    w = Writing("n", "m")
    x, y, out = w.input(dtype, m), w.input(dtype, m), w.output(dtype, m)
    with w.loop(m) as i:
        w.store(out, i, w.load(y, i))
    with w.loop(n) as i:
        at = Affine.of(i) * 2
        w.store(out, at, w.let(add, w.load(out, at), w.load(x, at)))
    a, b = values(RNG, dtype, 2 * size - 1), values(RNG, dtype, 2 * size - 1)
    want = b.copy()
    with np.errstate(over="ignore"):
        want[::2] += a[::2]
        same(in_vectors(w.function())(a, b, sizes={"n": size, "m": 2 * size - 1})[0], want)


@pytest.mark.skipif(sys.platform != "linux", reason="pages are protected as on Linux")
def test_every_other_element_up_to_the_end_of_memory():
    require_inside(EVERY_OTHER)


@pytest.mark.parametrize("dtype", ["int32", "float32", "float64", "complex128"])
@pytest.mark.parametrize("few", [2, 3, 4, 8])
def test_loops_of_a_few_neighbours_inside_of_ordered_ones(dtype, few):
    w = Writing("n")
    x, out = w.input(dtype, n, few), w.output(dtype, n, few)
    with w.loop(1, order=Order.ANY), w.loop(n, order=Order.GIVEN) as i, w.loop(few) as j:
        at = Affine.of(i) * few + j
        w.store(out, at, w.let(add, w.load(x, at), w.load(x, at)))
    a = values(RNG, dtype, (5, few))
    native = Native(w.function())
    kinds = {"int32": "i32", "float32": "float", "float64": "double"}
    if dtype in kinds and few > 3:
        lanes = min(few, engine().host.lanes(np.dtype(dtype).itemsize))
        assert f"<{lanes} x {kinds[dtype]}>" in native.rendered.text
    with np.errstate(over="ignore"):
        same(native(a, sizes={"n": 5})[0], a + a)


def test_indices_as_numbers_and_booleans_between():
    w = Writing("n", "m")
    out, odd = w.output("i8", n, m), w.output("bool", n, m)
    with w.loop(n) as i, w.loop(m) as j:
        at = Affine.of(i) * m + j
        p = w.position(at * 2 + 3)
        w.store(out, at, w.let(mul, p, w.let(add, j, i)))
        w.store(odd, at, w.let(comparison.lt, w.let(arithmetic.remainder, p, literal(5, "i8")), j, dtype="bool"))
    got, less = in_vectors(w.function())(sizes={"n": 4, "m": 37})
    i, j = np.mgrid[:4, :37]
    p = 2 * (i * 37 + j) + 3
    same(got, p * (i + j))
    same(less, p % 5 < j)


def test_an_element_written_and_read_again_in_one_iteration():
    w = Writing("n")
    x, out, kept = w.input("f8", n), w.output("f8", n), w.temporary("f8", n)
    with w.loop(n) as i:
        w.store(kept, i, w.let(add, w.load(x, i), literal(1.0)))
        w.store(out, i, w.let(mul, w.load(kept, i), w.load(kept, i)))
    a = RNG.random(77)
    same(in_vectors(w.function())(a, sizes={"n": 77})[0], (a + 1) ** 2)


def test_numbers_from_outside_of_the_nest():
    w = Writing("n")
    x, out = w.input("c16", n), w.output("c16", n)
    factor = w.let(mul, w.load(x, 0), literal(2.0, "c16"))
    flag = w.let(comparison.eq, factor, factor, dtype="bool")
    with w.loop(n) as i:
        w.store(out, i, w.let(comparison.select, flag, w.let(add, w.load(x, i), factor), factor, dtype="c16"))
    a = RNG.random(21) + 1j
    same(in_vectors(w.function())(a, sizes={"n": 21})[0], a + 2 * a[0])


@pytest.mark.parametrize("dtype", DTYPES)
def test_stores_past_the_caches_begin_at_a_line(dtype):
    w = Writing("n", "m")
    x, out = w.input(dtype, n), w.output(dtype, 3, n + m)
    narrow, both = w.output("f4", n), w.output(dtype, n)
    with w.loop(3) as k, w.loop(n) as i:
        w.store(out, Affine.of(k) * (n + m) + i + m, w.load(x, i))
    with w.loop(n) as i:
        w.store(narrow, i, literal(2.0, "f4"))
        w.store(both, i, w.load(x, i))
    native = Native(w.function(), cache_bytes=1)
    assert "!nontemporal" in native.rendered.text
    for size in (0, 40, 3001):
        a = values(RNG, dtype, size)
        for offset in (0, 1, 3):
            got = native(a, sizes={"n": size, "m": offset})
            same(got[0][:, offset:], np.stack([a] * 3))
            same(got[0][:, :offset], np.full((3, offset), 77, a.dtype))
            same(got[1], np.full(size, 2, "f4"))
            same(got[2], a)


def test_small_nests_and_memory_that_is_read_stay_in_the_caches():
    def scaled(size, again=False):
        w = Writing("n")
        x, out = w.input("f8", size), w.output("f8", size)
        with w.loop(size) as i:
            w.store(out, i, w.load(x, i))
            if again:
                w.store(out, i, w.let(mul, w.load(out, i), literal(2.0)))
        return w.function()

    def streams(function):
        return "!nontemporal" in Native(function, cache_bytes=1 << 20).rendered.text

    assert streams(scaled(n)) and streams(scaled(1 << 20))
    assert not streams(scaled(1 << 10)) and not streams(scaled(n, again=True))


def test_nothing_beyond_the_last_element_is_touched():
    w = Writing("n")
    x, out = w.input("f8", 400), w.output("f8", 400)
    with w.loop(400) as i:
        w.store(out, i, literal(-1.0))
    with w.loop(n) as i:
        w.store(out, Affine.of(i) + 100, w.let(analytic.exp, w.load(x, Affine.of(i) + 100)))
    a = np.full(400, np.nan)
    for size in (0, 1, 9, 63, 64, 65, 200):
        a[100 : 100 + size] = 0.0
        got = Native(w.function())(a, sizes={"n": size})[0]
        same(got[100 : 100 + size], np.ones(size))
        assert (got == -1).sum() == 400 - size


OPS = {"sum": arithmetic.add, "prod": arithmetic.mul, "max": arithmetic.maximum, "min": arithmetic.minimum}
NEUTRAL = {
    "sum": lambda _: 0,
    "prod": lambda _: 1,
    "max": lambda d: -np.inf if d.kind == "f" else int(np.iinfo(d).min),
    "min": lambda d: np.inf if d.kind == "f" else int(np.iinfo(d).max),
}


def folded(kind, dtype, extent, first):
    """Rows of an array combined, and the same of products of two arrays."""
    w = Writing("n", "m")
    x, y, out, both = w.input(dtype, n, extent), w.input(dtype, extent), w.output(dtype, n), w.output(dtype, n)

    def term(i, j):
        return w.load(x, Affine.of(i) * extent + j)

    def step(c, value):
        return [w.let(OPS[kind], c, value)]

    with w.loop(n) as i:
        w.store(out, i, w.fold(extent, [first], lambda j, c: step(c, term(i, j)), Order.GROUPED)[0])
        products = w.fold(extent, [first], lambda j, c: step(c, w.let(mul, term(i, j), w.load(y, j))), Order.GROUPED)
        w.store(both, i, products[0])
    return w.function()


@pytest.mark.parametrize("kind", OPS)
@pytest.mark.parametrize("dtype", ["int8", "uint32", "int64", "float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("static", [False, True])
def test_reductions_have_the_bits_of_the_kernels(kind, dtype, static):
    dtype = np.dtype(dtype)
    if dtype.kind == "c" and kind in ("max", "min"):
        pytest.skip("no order")
    first = literal(NEUTRAL[kind](dtype), dtype)
    reduced = Reduced(kind, dtype)
    native = None if static else in_vectors(folded(kind, dtype, m, first))
    for size in [0, 1, 3, 17, 200] if static else [0, 1, ENTRY_MIN_ROW, 17, 200, 2047, 5000]:
        x, y = values(RNG, dtype, (2, size)), values(RNG, dtype, size)
        if kind == "prod" and dtype.kind in "fc":
            x, y = np.exp(x / 99).astype(dtype), np.exp(y / 99).astype(dtype)
        f = Native(folded(kind, dtype, size, first)) if native is None else native
        got, products = f(x, y, sizes={"n": 2, "m": size})
        if kind in ("max", "min") and not size:
            same(got, np.full(2, first.value, dtype))
            continue
        with np.errstate(over="ignore"):
            short = dtype.kind in "fc" and 1 < size <= SHORT_ROW_MAX  # such rows are lanes
            check = partial(np.testing.assert_allclose, rtol=1e-5) if short else same
            check(got, reduced(x, axes=(1,)))
            if dtype.kind != "c":  # NumPy may round products of complex numbers once
                check(products, reduced(x * y, axes=(1,)))


def test_nan_wins_over_extremes_and_the_first_value_counts():
    w = Writing("n")
    x, out, high = w.input("f8", n), w.output("f8"), w.output("f8")
    start = w.let(mul, w.load(x, 0), literal(2.0))
    for op, buffer in ((arithmetic.maximum, high), (add, out)):
        body = lambda i, c, op=op: [w.let(op, w.load(x, i), c)]
        w.store(buffer, 0, w.fold(n, [start], body, Order.GROUPED)[0])
    f = in_vectors(w.function())
    a = np.arange(1.0, 101.0)
    assert [v.item() for v in f(a, sizes={"n": 100})] == [5052.0, 100.0]
    a[60] = np.nan
    assert np.isnan(f(a, sizes={"n": 100})).all()


def test_sums_of_sums():
    w = Writing("n", "m")
    x, out = w.input("f8", n, m), w.output("f8")

    def row(i, total):
        return w.fold(m, [total], lambda j, c: [w.let(add, c, w.load(x, Affine.of(i) * m + j))], Order.GROUPED)

    w.store(out, 0, w.fold(n, [literal(0.0)], row, Order.GROUPED)[0])
    a = RNG.random((7, 90))
    np.testing.assert_allclose(in_vectors(w.function())(a, sizes={"n": 7, "m": 90})[0], a.sum(), rtol=1e-14)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", SIZES)
def test_columns_whose_loops_carry_numbers(dtype, size):
    w = Writing("n", "m")
    x, y, out = w.input(dtype, n, m), w.input(dtype, n), w.output(dtype, m)
    rows, odd = w.output("i8", m), w.output("bool", m)
    with w.loop(m) as j:

        def step(i, total, number, flag):
            here = w.load(x, Affine.of(i) * m + j)
            same = w.let(comparison.eq, here, w.load(y, i), dtype="bool")
            return [
                w.let(add, total, w.let(mul, here, w.load(y, i))),
                w.let(comparison.select, same, w.position(Affine.of(i) + 1), number, dtype="i8"),
                w.let(bits.bitwise_xor, flag, same),
            ]

        first = [w.load(x, j), w.position(j), literal(False, "bool")]
        for buffer, last in zip((out, rows, odd), w.fold(n, first, step), strict=True):
            w.store(buffer, j, last)
    f = in_vectors(w.function())
    for count in (1, 7):
        a, b = values(RNG, dtype, (count, size)), values(RNG, dtype, count)
        b[: min(count, size)] = a[range(min(count, size)), range(min(count, size))]
        total, number, flags = f(a, b, sizes={"n": count, "m": size})
        want = a[0].copy()
        with np.errstate(over="ignore"):
            for row, factor in zip(a, b, strict=True):
                want = want + row * factor
        if dtype.startswith("complex"):  # NumPy may round products of complex numbers once
            np.testing.assert_allclose(total, want, rtol=1e-5)
        else:
            same(total, want)
        equal = a == b[:, None]
        same(flags, np.logical_xor.reduce(equal, axis=0))
        places = np.where(equal, np.arange(1, count + 1)[:, None], 0).max(axis=0)
        same(number, np.where(equal.any(axis=0), places, np.arange(size)))


def test_loops_inside_of_no_iterations_keep_the_first_numbers():
    w = Writing("n", "m")
    x, out = w.input("f8", m), w.output("f8", m)
    with w.loop(m) as j:
        first = w.load(x, j)
        w.store(out, j, w.fold(n, [first], lambda i, c: [w.let(mul, c, w.load(x, j))])[0])
    a = RNG.random(21)
    same(in_vectors(w.function())(a, sizes={"n": 0, "m": 21})[0], a)


def test_sums_of_computed_indices_are_numbers_and_places():
    w = Writing("n", "m")
    x, where, out, sums = w.input("f8", m), w.input("int32", n), w.output("f8", n), w.output("i8", n)
    with w.loop(n) as i:
        at = w.load(where, i)

        def step(k, place, total):
            after = w.position(Affine.of(place) * 2 + at + k)
            inside = w.let(arithmetic.minimum, after, w.position(m - 1))
            return [inside, w.let(analytic.exp, w.let(add, total, w.load(x, inside)))]

        place, total = w.fold(3, [w.position(0), literal(0.0)], step)
        w.store(sums, i, w.position(Affine.of(place) + i))
        w.store(out, i, total)
    a, b = RNG.random(40) - 2.0, RNG.integers(0, 9, 77).astype("i4")
    got, places = in_vectors(w.function())(a, b, sizes={"n": 77, "m": 40})
    place, total = np.zeros(77, int), np.zeros(77)
    for k in range(3):
        place = np.minimum(2 * place + b + k, 39)
        total = np.exp(total + a[place])
    same(places, place + np.arange(77))
    np.testing.assert_allclose(got, total, rtol=1e-14)


@pytest.mark.parametrize("extent", [3, SHORT_ROW_MAX, SHORT_ROW_MAX + 1, 33])
def test_short_rows_are_lanes_and_long_ones_are_vectors(extent):
    def norms(extent):
        w = Writing("n", "m")
        x, out = w.input("f8", n, extent), w.output("f8", n)
        with w.loop(n) as i:

            def square(j, c):
                here = w.load(x, Affine.of(i) * extent + j)
                return [w.let(add, c, w.let(mul, here, here))]

            total = w.fold(extent, [literal(0.0)], square, Order.GROUPED)[0]
            w.store(out, i, w.let(analytic.exp, total))
        return in_vectors(w.function())

    known, opened = norms(extent), norms(m)
    assert ("llvm.masked.gather" in known.rendered.text) == (extent <= SHORT_ROW_MAX)
    assert "llvm.masked.gather" in opened.rendered.text
    for count in (0, 1, 5, 40):
        a = RNG.random((count, extent))
        for f in (known, opened):
            got = f(a, sizes={"n": count, "m": extent})[0]
            np.testing.assert_allclose(got, np.exp((a * a).sum(axis=1)), rtol=1e-14)


def test_any_and_all():
    w = Writing("n")
    x, some, every = w.input("bool", n), w.output("bool"), w.output("bool")
    for op, buffer, first in ((bits.bitwise_or, some, False), (bits.bitwise_and, every, True)):
        body = lambda i, c, op=op: [w.let(op, c, w.load(x, i))]
        w.store(buffer, 0, w.fold(n, [literal(first, "bool")], body, Order.GROUPED)[0])
    f = in_vectors(w.function())
    for a in (np.zeros(300, bool), np.arange(300) == 170, np.ones(300, bool), np.arange(300) != 299, np.ones(0, bool)):
        assert [v.item() for v in f(a, sizes={"n": a.size})] == [a.any(), a.all()]
