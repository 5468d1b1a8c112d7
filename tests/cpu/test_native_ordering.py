"""Native sorting, searching and positions of extremes against NumPy's stable ones."""

import sys
import warnings
from typing import Any

import numpy as np
import pytest

from guard_pages import require_inside
from native_rooms import compiled
from tenferro_cpu.native.kernels.ordering import _along
from tenferro_tensor import Spec, catalog
from tenferro_tensor.reference import kernels

native = pytest.mark.skipif(compiled is None, reason="a pure wheel")
linux = pytest.mark.skipif(sys.platform != "linux", reason="guard pages are made by Linux calls")

TYPES = ("float64", "float32", "int64", "int32", "uint64", "uint32")
NARROW = ("int16", "int8", "uint16", "uint8", "bool")
REFERENCE = kernels(np, lambda: __import__("scipy.special").special)


def kernel(primitive: Any, x: np.ndarray, **params: Any) -> Any:
    """The native kernel, which passes nothing on; that of the reference sorts in descending order along other axes."""
    spec = Spec(x.shape, x.dtype)
    made = _along.entries(REFERENCE)[primitive]((spec,), (primitive.infer(spec, **params),), **params)
    left = primitive is catalog.sort and params["descending"] and params["axis"] < x.ndim - 1
    assert left or isinstance(made, compiled.Along)
    return made


def inputs(dtype: str, shape: tuple[int, ...], rng: np.random.Generator) -> list[np.ndarray]:
    """Arrays with few and with many ties, with a wide and with a narrow range of values, and special ones."""
    if dtype == "bool":
        return [rng.random(shape) < 0.5]
    if np.dtype(dtype).kind in "iu":
        info = np.iinfo(dtype)
        wide = rng.integers(info.min, info.max, shape, dtype=dtype, endpoint=True)
        return [wide, rng.integers(0, 5, shape).astype(dtype), np.full(shape, info.max, dtype)]
    x = rng.standard_normal(shape)
    special = np.array([np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, 5e-324, -5e-324])
    clustered = np.where(rng.random(shape) < 0.1, 1e300 * x, 1 + 1e-13 * x)
    with np.errstate(over="ignore", under="ignore"):
        return [
            a.astype(dtype)
            for a in (x, np.round(x), special[rng.integers(0, 9, shape)], clustered, 1 + 1e-15 * np.round(9 * x))
        ]


def layouts(x: np.ndarray) -> list[np.ndarray]:
    """The same array contiguous, transposed in memory, and with gaps."""
    gaps = np.repeat(x, 2, axis=-1)[..., ::2]
    turned = np.ascontiguousarray(x.T).T
    turned.flags.writeable = False
    return [x, turned, gaps, x[..., ::-1]]


def stable_argsort(x: np.ndarray, axis: int, descending: bool) -> np.ndarray:
    if not descending:
        return np.argsort(x, axis, stable=True)
    # From the back, equal elements come in reverse; NaN goes last.
    line = np.moveaxis(x, axis, -1)
    backwards = line.shape[-1] - 1 - np.argsort(line[..., ::-1], -1, stable=True)[..., ::-1]
    numbers = ~np.isnan(np.take_along_axis(line, backwards, -1)) if x.dtype.kind == "f" else backwards >= 0
    found = np.take_along_axis(backwards, np.argsort(~numbers, -1, stable=True), -1)
    return np.moveaxis(found, -1, axis)


@native
@pytest.mark.parametrize("dtype", TYPES + NARROW)
def test_argsort_is_stable(dtype: str) -> None:
    rng = np.random.default_rng(0)
    for shape in ((0,), (1,), (9,), (24,), (25,), (700,), (5000,), (3, 40), (40, 3), (2, 30, 3), (3, 0), (0, 3)):
        for array in inputs(dtype, shape, rng):
            for x in layouts(array):
                for axis in range(x.ndim):
                    for descending in (False, True):
                        run = kernel(catalog.argsort, x, axis=axis, descending=descending)
                        found = run(x)
                        assert found.dtype == np.int64
                        np.testing.assert_array_equal(found, stable_argsort(x, axis, descending))


@native
@pytest.mark.parametrize("dtype", TYPES + NARROW)
def test_sort_is_that_of_the_reference(dtype: str) -> None:
    rng = np.random.default_rng(1)
    for shape in ((0,), (1,), (9,), (700,), (3, 40), (40, 3), (2, 0)):
        for array in inputs(dtype, shape, rng):
            for x in layouts(array):
                before = x.copy()
                for axis in range(x.ndim):
                    for descending in (False, True):
                        params = {"axis": axis, "descending": descending}
                        spec = Spec(x.shape, x.dtype)
                        expected = REFERENCE[catalog.sort]((spec,), (spec,), **params)(x)
                        np.testing.assert_array_equal(kernel(catalog.sort, x, **params)(x), expected)
                np.testing.assert_array_equal(x, before)


@native
@pytest.mark.parametrize("dtype", TYPES)
def test_positions_of_extremes_are_the_first(dtype: str) -> None:
    rng = np.random.default_rng(2)
    for shape in ((1,), (15,), (16,), (17,), (100,), (511,), (512,), (9000,), (3, 40), (300, 3), (2, 30, 300)):
        for array in inputs(dtype, shape, rng):
            for x in layouts(array):
                for axis in range(x.ndim):
                    for primitive, expected in ((catalog.argmax, np.argmax), (catalog.argmin, np.argmin)):
                        found = kernel(primitive, x, axis=axis)(x)
                        np.testing.assert_array_equal(found, expected(x, axis))


@native
def test_extremes_of_rising_and_falling_numbers_and_late_nan() -> None:
    x = np.arange(10000.0)
    for array in (x, -x, np.where(x == 9999, np.nan, x), np.where(x > 5000, np.nan, -x), np.zeros(10000)):
        for primitive, expected in ((catalog.argmax, np.argmax), (catalog.argmin, np.argmin)):
            assert kernel(primitive, array, axis=0)(array) == expected(array)


@native
@pytest.mark.parametrize("dtype", TYPES)
def test_searches_are_those_of_numpy(dtype: str) -> None:
    rng = np.random.default_rng(4)
    for n in (0, 1, 2, 3, 31, 1000):
        for known in inputs(dtype, (n,), rng):
            line = np.sort(known)
            for shape in ((), (1,), (33,), (5, 40)):
                for values in inputs(dtype, shape, rng):
                    for side in ("left", "right"):
                        ins = Spec(line.shape, line.dtype), Spec(values.shape, values.dtype)
                        out = Spec(values.shape, np.dtype("int64"))
                        made = _along.entries(REFERENCE)[catalog.searchsorted](ins, (out,), side=side)
                        assert isinstance(made, compiled.Search)
                        values = np.asarray(values, dtype)
                        expected = np.searchsorted(line, values, side)
                        for x in layouts(values) if values.ndim else [values]:
                            np.testing.assert_array_equal(made(np.repeat(line, 2)[::2], x), made(line, x))
                        np.testing.assert_array_equal(made(line, values), expected)


@native
def test_searches_of_other_arrays_are_passed_on() -> None:
    run: Any = compiled.Search(dtype=np.dtype("float64"), after=False, fallback=lambda *args: "passed on")
    line = np.arange(3.0)
    assert run(line, line).tolist() == [0, 1, 2]
    for other in ((line,), (line[None], line), (line, 1.0), (line, line.astype("float32")), (line, line, line)):
        assert run(*other) == "passed on"
    with pytest.raises(ValueError, match="no search"):
        compiled.Search(dtype=np.dtype("int8"), after=False, fallback=None)


def outcome(run: Any, x: np.ndarray) -> tuple[np.ndarray, list[str]]:
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        return run(x), [str(w.message) for w in seen]


@native
@pytest.mark.parametrize("dtype", TYPES)
def test_cumulative_sums_and_products_have_the_bits_and_the_warnings_of_numpy(dtype: str) -> None:
    rng = np.random.default_rng(3)
    for shape in ((0,), (1,), (9,), (700,), (3, 40), (40, 3), (2, 30, 3), (2, 0), (0, 2)):
        for array in inputs(dtype, shape, rng):
            for x in layouts(array):
                for axis in range(x.ndim):
                    for primitive in (catalog.cumsum, catalog.cumprod):
                        for reverse in (False, True):
                            params = {"axis": axis, "reverse": reverse}
                            spec = Spec(x.shape, x.dtype)
                            expected, said = outcome(REFERENCE[primitive]((spec,), (spec,), **params), x)
                            found, heard = outcome(kernel(primitive, x, **params), x)
                            assert (found.dtype, found.shape, heard) == (expected.dtype, expected.shape, said)
                            np.testing.assert_array_equal(found, expected)


@native
def test_other_arrays_are_passed_on() -> None:
    run: Any = compiled.Along(
        kernel="argsort", dtype=np.dtype("float64"), axis=1, reversed=False, longest=3, fallback=lambda x: "passed on"
    )
    assert isinstance(run(np.zeros((2, 3))), np.ndarray)
    for other in (np.zeros((2, 4)), np.zeros(3), np.zeros((2, 3), "float32"), np.zeros((2, 3), ">f8"), 1.0):
        assert run(other) == "passed on"
    with pytest.raises(TypeError, match="keyword"):
        run(x=np.zeros((2, 3)))


@native
@pytest.mark.parametrize(
    ("name", "dtype", "axis"),
    [("argsort", "complex64", 0), ("cumsum", "int8", 0), ("median", "float64", 0), ("sort", "f8", -1)],
)
def test_kernels_that_are_not_there(name: str, dtype: str, axis: int) -> None:
    with pytest.raises(ValueError, match="there is no kernel"):
        compiled.Along(kernel=name, dtype=np.dtype(dtype), axis=axis, reversed=False, longest=1, fallback=None)


GUARDED = """
import numpy as np
from tenferro_cpu.native._extension import compiled

rng = np.random.default_rng(0)
for name in ("sort", "argsort", "argmax", "cumsum", "cumprod"):
    for dtype in ("float64", "float32", "int64", "int32", "uint64", "uint32"):
        for n in (1, 15, 16, 17, 25, 63, 65, 513, 1000):
            for at_end in (False, True):
                for reversed in (False, True):
                    run = compiled.Along(
                        kernel=name, dtype=np.dtype(dtype), axis=0, reversed=reversed, longest=1 << 20, fallback=None
                    )
                    x = guarded(rng.integers(0, 3, n).astype(dtype), at_end)
                    search = compiled.Search(dtype=np.dtype(dtype), after=reversed, fallback=None)
                    search(guarded(np.sort(x), at_end), x)
                    np.testing.assert_array_equal(run(x), run(x.copy()))
"""


@native
@linux
def test_kernels_stay_inside_of_their_arrays() -> None:
    require_inside(GUARDED)
