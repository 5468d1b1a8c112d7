"""Long sums in parts: the same bits on any number of threads, polls in between."""

import numpy as np
import pytest

from native_kernels import FUNCTIONS, values
from tenferro_cpu.native.codegen.whole._parts import MAX_PARTS
from tenferro_tensor.catalog import arithmetic, bits, numbers
from tenferro_tensor.loop_ir import Affine, Order
from tenferro_tensor_core import dim
from whole_functions import Native, Writing, literal

pytestmark = FUNCTIONS
n = dim("n")
RNG = np.random.default_rng(14)
LONG = 700_001
OPS = {
    "add": (arithmetic.add, np.add),
    "mul": (arithmetic.mul, np.multiply),
    "max": (arithmetic.maximum, np.maximum),
    "min": (arithmetic.minimum, np.minimum),
    "or": (bits.bitwise_or, np.bitwise_or),
    "xor": (bits.bitwise_xor, np.bitwise_xor),
    "and": (bits.bitwise_and, np.bitwise_and),
}


def folded(op, dtype, first):
    w = Writing("n")
    x, out = w.input(dtype, n), w.output(dtype)
    total = w.fold(n, [first], lambda i, c: [w.let(op, c, w.load(x, i))], Order.GROUPED)[0]
    w.store(out, 0, total)
    return w.function()


def in_all_ways(native, *arrays, sizes):
    """The results with one thread, with two, and of parts in another order."""

    def backwards(piece, count):
        for number in reversed(range(count)):
            piece(number)

    ways = ({}, {"threads": 2}, {"threads": 3, "parallel_for": backwards})
    runs = [native.run(*arrays, sizes=sizes, **way) for way in ways]
    assert all(status == 0 for status, _, _ in runs)
    for _, outputs, _ in runs[1:]:
        for x, y in zip(runs[0][1], outputs, strict=True):
            np.testing.assert_array_equal(x, y)
    return runs[0][1]


@pytest.mark.parametrize("name", OPS)
@pytest.mark.parametrize("dtype", ["bool", "uint8", "int64", "float32", "float64", "complex128"])
def test_every_op(name, dtype):
    op, ufunc = OPS[name]
    dtype = np.dtype(dtype)
    if (dtype.kind in "fc" and name in ("or", "xor", "and")) or (dtype.kind == "c" and name in ("max", "min")):
        pytest.skip("not of these numbers")
    if dtype.kind == "b" and name in ("add", "mul", "max", "min"):
        pytest.skip("booleans have ops of their own")
    x = values(RNG, dtype, LONG)
    if name == "mul" and dtype.kind in "fc":
        x = np.exp(x / 1e6).astype(dtype)
    first = literal(dtype.type(x[0]).item(), dtype)
    native = Native(folded(op, dtype, first))
    for size in (0, 1, 1000, LONG):
        with np.errstate(over="ignore"):
            want = ufunc.reduce(x[:size], dtype=dtype, initial=x[0]) if size else x[0]
            got = in_all_ways(native, x[:size], sizes={"n": size})[0]
        if dtype.kind in "fc":
            np.testing.assert_allclose(got, want, rtol=1e-2 if dtype == "f4" else 1e-8, atol=1e-6 * np.abs(x).sum())
        else:
            np.testing.assert_array_equal(got, want)


def test_sums_are_exact_to_rounding():
    x = RNG.standard_normal(LONG)
    got = in_all_ways(Native(folded(arithmetic.add, "f8", literal(0.0))), x, sizes={"n": LONG})[0]
    assert abs(float(got) - np.sum(x.astype(np.longdouble))) < 1e-10


def test_several_carries_and_loops_inside():
    w = Writing("n")
    x, out, high, where = w.input("f8", n, 9), w.output("f8"), w.output("f4"), w.output("c16")

    def body(i, total, best, both):
        row = Affine.of(i) * 9
        inner = w.fold(9, [total], lambda k, c: [w.let(arithmetic.add, c, w.load(x, row + k))], Order.GROUPED)
        a = w.load(x, row)
        narrow = w.let(convert("f4"), a, dtype="f4")
        wide = w.let(convert("c16"), a, dtype="c16")
        return [inner[0], w.let(arithmetic.maximum, best, narrow), w.let(arithmetic.add, both, wide)]

    firsts = [literal(1.0), literal(-np.inf, "f4"), literal(2j, "c16")]
    results = w.fold(n, firsts, body, Order.GROUPED)
    for buffer, value in zip((out, high, where), results, strict=True):
        w.store(buffer, 0, value)
    x = RNG.standard_normal((200_001, 9))
    total, best, both = in_all_ways(Native(w.function()), x, sizes={"n": len(x)})
    np.testing.assert_allclose(total, 1 + x.sum(), rtol=1e-9)
    assert best == x[:, 0].max().astype("f4")
    np.testing.assert_allclose(both, 2j + x[:, 0].sum(), rtol=1e-9)


def convert(dtype):
    return numbers.convert.op(dtype=np.dtype(dtype))


def test_polls_between_parts_end_a_run():
    native, x = Native(folded(arithmetic.add, "f8", literal(0.0))), np.ones(LONG)
    polled = []

    def poll():
        polled.append(1)
        return 9 if len(polled) > 1 else 0

    status, _, _ = native.run(x, sizes={"n": LONG}, poll=poll, countdown=1)
    assert status == 9 and len(polled) == 2 < MAX_PARTS
