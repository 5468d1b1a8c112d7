"""Reductions against NumPy: kinds, dtypes, axes, layouts; accuracy and reproducibility of sums."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from native_kernels import values
from reduced_entries import by_rows
from tenferro_cpu.native import available
from tenferro_tensor_core import ArgumentError, AxisError, DTypeError, ShapeError
from thorough import THOROUGH

pytestmark = pytest.mark.skipif(not available(), reason="native kernels are off")


def reduced(kind, dtype, engine=None):
    from native_rooms import Reduced

    return Reduced(kind, np.dtype(dtype), engine)


def by_numpy(kind, x, axes):
    options = {"dtype": x.dtype} if kind in ("sum", "prod") else {}
    return np.asarray(getattr(x, kind)(tuple(axes), **options))


def require_same(got, expected, size=1.0):
    """Equal, or for floating point within rounding errors of terms whose magnitudes sum up to `size`."""
    assert got.dtype == expected.dtype and got.shape == expected.shape
    if expected.dtype.kind in "biu":
        np.testing.assert_array_equal(got, expected)
    else:
        eps = float(np.finfo(expected.dtype).eps)
        with np.errstate(all="ignore"):
            close = np.isclose(got, expected, rtol=200 * eps, atol=0, equal_nan=True)
            close |= np.abs(got - expected) <= 16 * eps * size
        assert np.all(close), (got, expected)


RUNS: dict = {}
KINDS = ("sum", "prod", "max", "min")


@pytest.mark.parametrize("dtype", ["float64", "float32", "complex64", "complex128", "int64", "uint8", "int16", "bool"])
@pytest.mark.parametrize("kind", KINDS)
@given(st.data())
def test_axes_and_layouts(kind, dtype, data):
    if np.dtype(dtype).kind == "c" and kind not in ("sum", "prod"):
        with pytest.raises(DTypeError, match="complex numbers have no order"):
            reduced(kind, dtype)
        return
    shape = tuple(data.draw(st.lists(st.sampled_from([1, 2, 3, 7, 25, 40]), min_size=1, max_size=3)))
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    x = values(rng, dtype, tuple(2 * d for d in shape))
    if kind == "prod" and x.dtype.kind in "fc":
        x = (np.exp(x / 100)).astype(dtype)
    steps = data.draw(st.lists(st.sampled_from([1, 2, -1, -2]), min_size=len(shape), max_size=len(shape)))
    x = x[tuple(slice(0, d * abs(s), abs(s)) for d, s in zip(shape, steps))]
    x = x[tuple(slice(None, None, int(np.sign(s))) for s in steps)]
    x = x.transpose(data.draw(st.permutations(range(x.ndim))))
    count = data.draw(st.integers(0, x.ndim))
    axes = data.draw(st.permutations(range(x.ndim)))[:count]
    run = RUNS.setdefault((kind, dtype), reduced(kind, dtype))
    expected = by_numpy(kind, x, sorted(axes))
    # Of a product every factor may bring one rounding error; NumPy multiplies one after the other.
    size = 1.0
    if x.dtype.kind in "fc":
        size = x.size * np.abs(expected) if kind == "prod" else np.abs(x).sum(tuple(axes), dtype="float64")
    require_same(np.asarray(run(x, axes=axes)), expected, size)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(3000,), (3000, 5), (5, 3000), (2050, 3, 2), (100_003,), (1, 1)])
def test_long_axes(kind, shape):
    x = np.random.default_rng(0).standard_normal(shape)
    if kind == "prod":
        x = 1 + x * 1e-6
    run = reduced(kind, "float64")
    for count in range(1, len(shape) + 1):
        for axes in itertools.combinations(range(len(shape)), count):
            size = np.abs(x).sum(axes) if kind == "sum" else 1.0
            require_same(np.asarray(run(x, axes=axes)), by_numpy(kind, x, axes), size)


@pytest.mark.parametrize("kind", ["max", "min"])
@pytest.mark.parametrize("axis", [0, 1])
def test_nan_wins_and_the_first_of_equals(kind, axis):
    rng = np.random.default_rng(1)
    for n in (5, 40, 100):
        x = rng.integers(0, 3, (n, n)).astype(float)
        require_same(reduced(kind, "float64")(x, axes=(axis,)), by_numpy(kind, x, (axis,)))
        x[rng.random((n, n)) < 0.05] = np.nan
        x[rng.random((n, n)) < 0.05] = np.inf
        require_same(reduced(kind, "float64")(x, axes=(axis,)), by_numpy(kind, x, (axis,)))
        low = np.full((n, n), -np.inf)
        require_same(reduced(kind, "float64")(low, axes=(axis,)), by_numpy(kind, low, (axis,)))


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_sums_are_as_accurate_as_pairwise_ones(dtype, axis):
    x = np.random.default_rng(3).random((1_000_000, 2) if axis == 0 else (2, 1_000_000)).astype(dtype)
    exact = x.astype(np.longdouble).sum(axis)
    error = np.abs(reduced("sum", dtype)(x, axes=(axis,)) - exact) / exact
    assert error.max() <= 4 * np.finfo(dtype).eps  # one after the other loses hundreds


def test_equal_input_gives_equal_bits():
    x = np.random.default_rng(4).standard_normal((300, 700))
    run = reduced("sum", "float64")
    for axes in ((0,), (1,), (0, 1)):
        first = run(x, axes=axes)
        for _ in range(3):
            np.testing.assert_array_equal(run(x.copy(), axes=axes), first)


def test_no_elements():
    empty = np.zeros((0, 3))
    np.testing.assert_array_equal(reduced("sum", "float64")(empty, axes=(0,)), np.zeros(3))
    np.testing.assert_array_equal(reduced("prod", "float64")(empty, axes=(0,)), np.ones(3))
    assert reduced("max", "float64")(empty, axes=(1,)).shape == (0,)
    with pytest.raises(ShapeError, match="max of no elements is not defined, got \\(0, 3\\) over axes \\(0,\\)"):
        reduced("max", "float64")(empty, axes=(0,))


def test_wrong_axes_are_typed_errors():
    x = np.zeros((2, 3))
    with pytest.raises(AxisError, match="axes \\(2,\\) of an array with 2 axes"):
        reduced("sum", "float64")(x, axes=(2,))
    with pytest.raises(AxisError, match="each once"):
        reduced("sum", "float64")(x, axes=(0, -2))
    with pytest.raises(ArgumentError, match="there is no reduction 'mean'; use one of sum, prod, max, min"):
        reduced("mean", "float64")


@pytest.mark.parametrize("limit", ["avx2", "generic"])
def test_narrower_vectors(limit):
    from tenferro_cpu.native import Engine

    engine = Engine(limit=limit)
    for dtype, kind in itertools.product(("float64", "complex64", "int8"), ("sum", "prod", "max", "min")):
        if dtype == "complex64" and kind not in ("sum", "prod"):
            continue
        x = values(np.random.default_rng(5), dtype, (33, 29))
        if kind == "prod" and dtype != "int8":
            x = np.exp(x / 100).astype(dtype)
        for axis in (0, 1):
            got = reduced(kind, dtype, engine)(x, axes=(axis,))
            require_same(got, by_numpy(kind, x, (axis,)), 100.0)


@pytest.mark.parametrize("kind", ["sum", "prod", "max", "min"])
@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128", "int32", "int8", "bool"])
@pytest.mark.parametrize("rows", [64, 65, 70, 1003])
def test_short_rows_lie_side_by_side(kind, dtype, rows):
    """As many rows at once as a vector has lanes; the last ones are read under a mask."""
    if dtype == "complex128" and kind in ("max", "min"):
        pytest.skip("no order")
    rng = np.random.default_rng(rows)
    run = reduced(kind, dtype)
    for length in range(2, 19) if THOROUGH else range(2 + rows % 4, 19, 4):
        x = values(rng, dtype, (rows, length))
        got = run(x, axes=(1,))
        if dtype == "bool" and kind in ("sum", "prod"):
            expected = np.any(x, 1) if kind == "sum" else np.all(x, 1)
        elif dtype in ("int32", "int8"):
            expected = getattr(np, kind)(x, axis=1, **({"dtype": dtype} if kind in ("sum", "prod") else {}))
        else:
            expected = getattr(np, kind)(x, axis=1)
        close = 1e-4 if dtype == "float32" else 1e-12
        np.testing.assert_allclose(got, expected, rtol=close, atol=close)
        for start in {0, rows - 64}:  # a row has the same result wherever it stands
            np.testing.assert_array_equal(run(x[start : start + 64], axes=(1,)), got[start : start + 64])


def test_short_rows_of_one_element_for_all():
    x = np.broadcast_to(np.float64(0.1), (1000, 6))
    np.testing.assert_allclose(reduced("sum", "float64")(x, axes=(1,)), np.full(1000, 0.6), rtol=1e-15)


def test_short_rows_write_nothing_else():
    run = reduced("sum", "float64")
    x = np.random.default_rng(1).random((10_007, 6))
    whole = run(x, axes=(1,))
    np.testing.assert_allclose(whole, x.sum(1), rtol=1e-15)
    np.testing.assert_array_equal(by_rows(run)(x), whole)


def test_a_copy_leaves_no_plan_for_its_original():
    """An operand that is copied first has another layout than one of equal shape and strides that is not."""
    run, raw = reduced("sum", "float64"), np.zeros(16 * 40 * 3 + 1, np.uint8)
    odd = raw[1:].view("f8")[: 40 * 6].reshape(40, 6)[:, ::2]
    odd[...] = np.arange(120.0).reshape(40, 3)
    even = np.zeros((40, 6))[:, ::2]
    even[...] = odd + 1
    assert not odd.flags.aligned and odd.strides == even.strides
    for x in (odd, even, odd):
        np.testing.assert_array_equal(run(x, axes=(0,)), x.copy().sum(0))
