"""Reductions, scans, sorting and searching against loops over the elements of a line."""

from itertools import combinations
from typing import Any

import numpy as np
import pytest

from kernel_check import check, kernel_of, sample, spec_of
from structural_oracles import ORACLES
from tenferro_tensor import catalog as c
from tenferro_tensor.reference.scan import accumulated_by_doubling
from tenferro_tensor_core import DTYPES

NAMES = [dt.name for dt in DTYPES]
ORDERED = [dt.name for dt in DTYPES if dt.kind != "c"]
FLOATS = ["float32", "float64"]
SHAPES = ((4,), (2, 3), (3, 2, 4), (1, 3), (2, 1))
AXES = [axes for n in range(4) for axes in combinations(range(3), n)]


def checked(primitive: Any, *arrays: Any, **params: Any) -> None:
    check(primitive, ORACLES[primitive], *arrays, **params)


def table(*rows: tuple[Any, list[str]]) -> Any:
    return pytest.mark.parametrize(
        ("primitive", "dtype"), [pytest.param(p, dt, id=f"{p.name}-{dt}") for p, dtypes in rows for dt in dtypes]
    )


@table(
    (c.reduce_sum, NAMES), (c.reduce_prod, NAMES), (c.reduce_max, ORDERED), (c.reduce_min, ORDERED),
    (c.reduce_all, ["bool"]), (c.reduce_any, ["bool"]),
)  # fmt: skip
def test_reductions(primitive: Any, dtype: str) -> None:
    """Over every set of axes; the dtype is kept where NumPy would widen it."""
    rng = np.random.default_rng(0)
    x = sample(rng, dtype, (2, 3, 4), -9, 9)
    for axes in AXES:
        checked(primitive, x, axes=axes)
    checked(primitive, x, axes=(2, 0))
    checked(primitive, sample(rng, dtype), axes=())
    checked(primitive, sample(rng, dtype, (0, 3)), axes=(1,))


@table((c.reduce_sum, NAMES), (c.reduce_prod, NAMES), (c.reduce_all, ["bool"]), (c.reduce_any, ["bool"]))
def test_reductions_of_no_elements(primitive: Any, dtype: str) -> None:
    x = np.zeros((2, 0, 3), dtype)
    for axes in AXES:
        checked(primitive, x, axes=axes)


@table((c.argmax, ORDERED), (c.argmin, ORDERED))
def test_the_first_of_several_winners(primitive: Any, dtype: str) -> None:
    rng = np.random.default_rng(1)
    for shape in SHAPES:
        for axis in range(len(shape)):
            checked(primitive, sample(rng, dtype, shape, -1, 1), axis=axis)
    checked(primitive, np.zeros((3, 0), dtype), axis=0)


@table((c.reduce_max, FLOATS), (c.reduce_min, FLOATS))
def test_nan_wins_extrema(primitive: Any, dtype: str) -> None:
    x = np.array([[1, np.nan, 3], [np.inf, 0, -np.inf]], dtype)
    for axes in ((), (0,), (1,), (0, 1)):
        checked(primitive, x, axes=axes)


@table((c.argmax, FLOATS), (c.argmin, FLOATS))
def test_the_first_nan_wins(primitive: Any, dtype: str) -> None:
    checked(primitive, np.array([[1, np.nan, np.nan], [np.nan, 9, -9]], dtype), axis=1)


@table((c.cumsum, NAMES), (c.cumprod, NAMES), (c.cummax, ORDERED), (c.cummin, ORDERED), (c.cumlogsumexp, FLOATS))
@pytest.mark.parametrize("reverse", [False, True])
def test_scans(primitive: Any, dtype: str, reverse: bool) -> None:
    rng = np.random.default_rng(2)
    for shape in (*SHAPES, (0,), (2, 0), (0, 3)):
        for axis in range(len(shape)):
            checked(primitive, sample(rng, dtype, shape, -9, 9), axis=axis, reverse=reverse)


@pytest.mark.parametrize("reverse", [False, True])
def test_scans_of_special_values(reverse: bool) -> None:
    x = np.array([-np.inf, -np.inf, 1.0, np.inf, 2.0])
    checked(c.cumlogsumexp, x, axis=0, reverse=reverse)
    checked(c.cumlogsumexp, np.array([800.0, 801.0, -900.0]), axis=0, reverse=reverse)
    for primitive in (c.cummax, c.cummin):
        checked(primitive, np.array([1.0, np.nan, 3.0, 2.0]), axis=0, reverse=reverse)


@pytest.mark.parametrize("n", [0, 1, 2, 3, 5, 8, 13])
def test_the_scan_for_libraries_without_accumulate(n: int) -> None:
    x = sample(np.random.default_rng(n), "float64", (2, n, 3))
    for combine in (np.maximum, np.logaddexp):
        np.testing.assert_allclose(accumulated_by_doubling(np, combine, x, 1), combine.accumulate(x, 1), rtol=1e-14)


@table((c.sort, NAMES), (c.argsort, NAMES))
@pytest.mark.parametrize("descending", [False, True])
def test_sorting(primitive: Any, dtype: str, descending: bool) -> None:
    """Few different values, so that equal elements test the stability of `argsort`."""
    rng = np.random.default_rng(3)
    for shape in ((17,), *SHAPES, (0,), (2, 0)):
        for axis in range(len(shape)):
            x = sample(rng, dtype, shape, -2, 2)
            x = (x.real.round() + 1j * x.imag.round()).astype(dtype) if x.dtype.kind == "c" else x
            checked(primitive, x.round() if x.dtype.kind == "f" else x, axis=axis, descending=descending)


@pytest.mark.parametrize("descending", [False, True])
def test_sorting_extreme_values(descending: bool) -> None:
    """NaN last in both orders; no key overflows."""
    for primitive in (c.sort, c.argsort):
        checked(primitive, np.array([1, np.nan, -np.inf, 3, np.nan, np.inf]), axis=0, descending=descending)
        for dt in [d for d in DTYPES if d.kind in "iu"]:
            info = np.iinfo(dt)
            checked(primitive, np.array([0, info.min, info.max, info.min, 1], dt), axis=0, descending=descending)


@pytest.mark.parametrize("dtype", ORDERED)
@pytest.mark.parametrize("side", ["left", "right"])
def test_searchsorted(dtype: str, side: str) -> None:
    rng = np.random.default_rng(4)
    for n in (0, 1, 9):
        table = np.sort(sample(rng, dtype, (n,), -4, 4))
        for shape in ((), (5,), (2, 3), (0,)):
            checked(c.searchsorted, table, sample(rng, dtype, shape, -5, 5), side=side)
        checked(c.searchsorted, table, table, side=side)


def test_complex_order_is_lexicographic() -> None:
    z = np.array([1 + 2j, 1 + 1j, 0 + 5j])
    kernel, _ = kernel_of(c.sort, (spec_of(z),), {"axis": 0, "descending": False})
    np.testing.assert_array_equal(kernel(z), [5j, 1 + 1j, 1 + 2j])
