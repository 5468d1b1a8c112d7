"""Reductions of eager values in machine code: NumPy's results, warnings and errors, for every layout."""

import tracemalloc
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tenferro_runtime as tr
from native_kernels import reference, values
from tenferro_cpu.native import available
from tenferro_cpu.native.eager import _eager_reduce
from tenferro_tensor import Spec, catalog
from tenferro_tensor.reference import kernels

pytestmark = pytest.mark.skipif(not available(), reason="native kernels are off")

PRIMITIVES = (catalog.reduce_sum, catalog.reduce_prod, catalog.reduce_max, catalog.reduce_min)
LOGICAL = (catalog.reduce_any, catalog.reduce_all)
DTYPES = ("float64", "float32", "complex128", "complex64", "int64", "int8", "uint16")


def entry(primitive, x, axes):
    """The native entry and NumPy's kernel."""
    spec = Spec(x.shape, x.dtype)
    out = primitive.infer(spec, axes=axes)
    made = _eager_reduce.entries(kernels(np, lambda: None))[primitive]
    return made((spec,), (out,), axes=axes), reference(primitive.op(axes=axes), (spec,), out)


def agree(primitive, x, axes):
    with np.errstate(all="ignore"):
        native, plain = entry(primitive, x, axes)
        got, expected = native(x), plain(x)
    assert np.shape(got) == np.shape(expected)
    assert got.dtype == expected.dtype
    if x.dtype.kind in "fc" and primitive in PRIMITIVES[:2]:
        size = np.finfo(x.dtype).eps * (x.size + 1)
        with np.errstate(all="ignore"):
            scale = np.abs(x).sum(axes) if primitive is catalog.reduce_sum else np.abs(expected)
            assert np.all(np.isnan(got) == np.isnan(expected))
            near = np.abs(got - expected) <= 4 * size * scale + np.finfo(x.dtype).tiny
        assert np.all(near | ~np.isfinite(expected))
    else:
        np.testing.assert_array_equal(got, expected)


LAYOUTS = ("plain", "reversed", "turned", "every other")


@st.composite
def problems(draw):
    shape = tuple(draw(st.lists(st.integers(1, 12), min_size=1, max_size=4)))
    axes = tuple(sorted(draw(st.sets(st.integers(0, len(shape) - 1), min_size=1))))
    return (
        shape,
        axes,
        draw(st.integers(0, 2**32)),
        draw(st.sampled_from(LAYOUTS)),
    )


def laid(x, how):
    """The elements in another order of memory."""
    if how == "turned":
        return np.asfortranarray(x)
    if how == "every other":
        return np.repeat(x, 2, axis=-1)[..., ::2]
    return x[::-1] if how == "reversed" else x


@settings(max_examples=150, deadline=None)
@given(problem=problems(), dtype=st.sampled_from(DTYPES), primitive=st.sampled_from(PRIMITIVES), special=st.booleans())
def test_reductions_are_those_of_numpy(problem, dtype, primitive, special):
    shape, axes, seed, how = problem
    if np.dtype(dtype).kind == "c" and primitive in PRIMITIVES[2:]:
        primitive = catalog.reduce_sum
    agree(primitive, laid(values(np.random.default_rng(seed), dtype, shape, special), how), axes)


@settings(max_examples=60, deadline=None)
@given(problem=problems(), primitive=st.sampled_from(LOGICAL))
def test_logic_is_that_of_numpy(problem, primitive):
    shape, axes, seed, how = problem
    agree(primitive, laid(values(np.random.default_rng(seed), "bool", shape), how), axes)


@pytest.mark.parametrize("shape", [(70_000,), (300, 300), (40, 50, 60), (20_000, 5), (5, 20_000)])
@pytest.mark.parametrize("primitive", PRIMITIVES)
@pytest.mark.parametrize("dtype", ["float64", "int64"])
def test_large_arrays_of_any_layout(shape, primitive, dtype):
    x = values(np.random.default_rng(0), dtype, shape) % 3
    for how in LAYOUTS:
        for axes in {tuple(range(len(shape))), (0,), (len(shape) - 1,), (len(shape) // 2,)}:
            agree(primitive, laid(x, how), axes)


@pytest.mark.parametrize("shape", [(700, 40), (1500, 3), (60, 511), (60, 513), (2, 20_000), (4, 300, 30)])
@pytest.mark.parametrize("primitive", [*PRIMITIVES[2:], *LOGICAL])
def test_many_narrow_rows_with_special_values(shape, primitive):
    dtype = "bool" if primitive in LOGICAL else "float64"
    x = values(np.random.default_rng(1), dtype, shape, dtype == "float64")
    agree(primitive, x, (0,))
    agree(primitive, x, tuple(range(len(shape) - 1)))


def test_small_arrays_do_not_reach_numpy():
    x = np.linspace(0.0, 1.0, 24).reshape(4, 6)
    for primitive in PRIMITIVES:
        for axes in ((0, 1), (0,)):
            spec = Spec(x.shape, x.dtype)
            made = _eager_reduce.entries({primitive: lambda *a, **k: lambda x: pytest.fail("NumPy was called")})
            made[primitive]((spec,), (primitive.infer(spec, axes=axes),), axes=axes)(x)


@pytest.mark.parametrize("n", [3, 100, 50_000])
@pytest.mark.parametrize(
    "call, elements, text",
    [
        (tr.sum, (1e308, 1e308), "overflow encountered in reduce"),
        (tr.prod, (1e200, 1e200), "overflow encountered in reduce"),
        (tr.sum, (np.inf, -np.inf), "invalid value encountered in reduce"),
    ],
)
def test_warnings_are_those_of_numpy(n, call, elements, text):
    x = np.ones(n)
    x[:2] = elements
    with pytest.warns(RuntimeWarning, match=text):
        call(tr.asarray(x))


def test_not_a_number_needs_no_warning():
    x = np.ones(100)
    x[3] = np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for call in (tr.sum, tr.prod, tr.max, tr.min):
            assert np.isnan(np.asarray(call(tr.asarray(x))))


@pytest.mark.parametrize(
    "shape, axes", [((0,), (0,)), ((3, 0), (1,)), ((0, 3), (0,)), ((0, 3), (1,)), ((0, 0), (0, 1))]
)
def test_nothing_to_reduce_is_the_concern_of_numpy(shape, axes):
    x = np.zeros(shape)
    for primitive in PRIMITIVES:
        with np.errstate(all="ignore"):
            try:
                native, plain = entry(primitive, x, axes)
                expected = plain(x)
            except (ValueError, TypeError) as error:
                with pytest.raises(type(error)):
                    entry(primitive, x, axes)[0](x)
                continue
            np.testing.assert_array_equal(native(x), expected)


@pytest.mark.parametrize("primitive", PRIMITIVES[:2])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape, axes", [((2, 0, 33), (0, 2)), ((40, 0), (0,)), ((0, 9, 9), (1, 2)), ((0, 40), (0, 1))])
def test_long_sums_of_nothing(primitive, dtype, shape, axes):
    """As many terms as take another way, of arrays that have no rows."""
    agree(primitive, np.zeros(shape, dtype), axes)


def test_sums_have_pairwise_accuracy():
    x = np.random.default_rng(1).uniform(0, 1, 1 << 20).astype("float32")
    exact = x.astype("float64").sum()
    for axes, y in (((0,), x), ((0, 1), x.reshape(1024, 1024)), ((1,), x.reshape(1, -1))):
        got = entry(catalog.reduce_sum, y, axes)[0](y)
        assert abs(np.asarray(got, "float64").sum() - exact) <= 2 * np.finfo("float32").eps * exact


def test_memory_stays_level_over_many_calls():
    x = np.linspace(0.5, 1.0, 24).reshape(4, 6)
    odd = np.full((4, 6), np.inf)
    runs = [entry(p, x, axes)[0] for p in PRIMITIVES for axes in ((0, 1), (0,), (1,))]
    for run in runs:
        run(x), run(odd)
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(9000):
            for run in runs:
                run(x)
        for _ in range(500):
            for run in runs:
                run(odd)
        assert tracemalloc.get_traced_memory()[0] - before < 20_000
    finally:
        tracemalloc.stop()
