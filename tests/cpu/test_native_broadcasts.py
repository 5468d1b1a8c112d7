"""Entries on two operands that broadcast: results of equal shapes, NumPy's warnings, no call of NumPy's kernel."""

import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tenferro_cpu.native import available
from tenferro_cpu.native.eager import _eager
from tenferro_tensor import Spec, catalog
from tenferro_tensor.reference import kernels

REFERENCE = kernels(np, lambda: __import__("scipy.special").special)
PAIRS = [p for p in _eager.EAGER if len(p.operands) == 2]
DTYPES = ("float64", "float32", "complex128", "int64", "int8", "uint16", "bool")

pytestmark = pytest.mark.skipif(not available(), reason="native kernels are turned off, or llvmlite is missing")


def entry_of(primitive: Any, dtype: Any, run: Any = None) -> Any:
    """The entry of a primitive in front of `run`, where the primitive takes the dtype."""
    spec = Spec((4, 4), np.dtype(dtype))
    try:
        out = primitive.infer(spec, spec)
    except TypeError:
        return None
    table = REFERENCE if run is None else {primitive: lambda ins, outs: run}
    return _eager.entries(table)[primitive]((spec, spec), (out,))


def numbers(rng: np.random.Generator, dtype: Any, shape: Any, special: bool) -> Any:
    d = np.dtype(dtype)
    if d.kind in "biu":
        return rng.integers(0, 2 if d.kind == "b" else 7, shape).astype(d)
    real = rng.normal(size=shape) * 3
    if special:
        real = np.where(rng.random(shape) < 0.2, rng.choice([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e300], shape), real)
    with np.errstate(all="ignore"):
        return (real + 0.5j if d.kind == "c" else real).astype(d)


@pytest.mark.parametrize("primitive", PAIRS, ids=lambda p: p.name)
@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 2**32), n=st.integers(0, 9), m=st.integers(0, 40), which=st.integers(0, 5),
    dtype=st.sampled_from(DTYPES), special=st.booleans(), swap=st.booleans(),
)  # fmt: skip
def test_broadcasts_are_equal_shapes(
    primitive: Any, seed: int, n: int, m: int, which: int, dtype: str, special: bool, swap: bool
) -> None:
    run = entry_of(primitive, dtype)
    if run is None:
        return
    rng, kind = np.random.default_rng(seed), np.dtype(dtype).kind
    special = special and kind != "c"  # which part of a product is NaN is a convention
    shapes = [
        ((n, m), (m,)),
        ((n, m), (n, 1)),
        ((n, 1), (1, m)),
        ((n, m), ()),
        ((2, n, m), (n, 1)),
        ((n, m, 1), (m, 3)),
    ]
    x, y = [numbers(rng, dtype, shape, special) for shape in shapes[which]]
    x, y = np.asarray(x), np.asarray(y)
    if swap:
        x, y = y, x
    wide = [np.ascontiguousarray(v) for v in np.broadcast_arrays(x, y)]
    with np.errstate(all="ignore"):
        found, wanted = run(x, y), run(*wide)
    if kind != "c" and primitive not in (*_eager.ANALYTIC, catalog.pow):
        np.testing.assert_array_equal(found, wanted, strict=True)
        return
    assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype)  # narrow rows are NumPy's, which rounds otherwise
    eps = np.finfo(wanted.dtype).eps if wanted.dtype.kind in "fc" else 0
    np.testing.assert_allclose(found, wanted, rtol=64 * eps, atol=64 * eps)


@pytest.mark.parametrize("rows", [300, 4_500])  # the latter in memory of the pool, within a cache of 8 MB
def test_no_call_of_numpys_kernel(rows: int) -> None:
    calls: list[Any] = []
    run = entry_of(catalog.mul, "float64", lambda *args: calls.append(args))
    x = np.random.default_rng(0).random((rows, 30)) + 1
    for y in (x[0], x[:, :1], x[:1], np.array(2.0), x[:, :1].copy()):
        np.testing.assert_array_equal(run(x, y), x * y)
        np.testing.assert_array_equal(run(y, x), y * x)
    assert not calls
    assert run(x, x[0].astype("f4")) is None
    assert run(x, x[0][::-1]) is None
    assert len(calls) == 2


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "complex64"])
def test_selection_and_clamping_with_numbers(dtype: str) -> None:
    calls: list[Any] = []
    d, m, rng = np.dtype(dtype), np.dtype("bool"), np.random.default_rng(0)
    x = (rng.standard_normal((4, 9)) * 5).astype(d)
    mask = rng.random((4, 9)) < 0.5
    mask_, x_ = Spec((4, 9), m), Spec((4, 9), d)

    def noted(*args: Any) -> Any:
        calls.append(args)
        return np.where(*args)

    select = _eager.entries({catalog.select: lambda ins, outs: noted})[catalog.select]((mask_, x_, x_), (x_,))
    for args in ((mask, x, 0), (mask, 2, x), (mask, x, d.type(3)), (mask, np.array(1, d), x), (mask, x, x[0])):
        for _ in range(3):
            np.testing.assert_array_equal(select(*args), np.where(*args).astype(d), strict=True)
    assert len(calls) <= 2 or d.kind == "c"  # one each for numbers in either place; complex ones stay with NumPy
    if d.kind != "c":
        clamp = entry_of_three(catalog.clamp, d)
        for low, high in ((-1, 2), (d.type(-1), x), (x, 3), (-x, x + 1)):
            for _ in range(3):
                np.testing.assert_array_equal(clamp(x, low, high), np.minimum(np.maximum(x, low), high), strict=True)


def entry_of_three(primitive: Any, dtype: Any) -> Any:
    spec = Spec((4, 9), dtype)
    return _eager.entries(REFERENCE)[primitive]((spec,) * 3, (spec,))


def test_numpy_warns_once() -> None:
    run, x = entry_of(catalog.div, "float64"), np.ones((5, 30))
    for row in (np.zeros(30), np.where(np.arange(30) == 29, 0.0, 1.0)):
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            found = run(x, row)
        assert [str(w.message) for w in seen] == ["divide by zero encountered in divide"]
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(found, x / row)
        with np.errstate(all="raise"), pytest.raises(FloatingPointError, match="divide by zero"):
            run(x, row)
    overflow, invalid = entry_of(catalog.mul, "float32"), entry_of(catalog.sub, "float64")
    with np.errstate(all="raise"), pytest.raises(FloatingPointError, match="overflow"):
        overflow(np.full((3, 4), 1e30, "f4"), np.full(4, 1e30, "f4"))
    with np.errstate(all="raise"), pytest.raises(FloatingPointError, match="invalid"):
        invalid(np.full((3, 4), np.inf), np.full((3, 1), np.inf))
    scanned = entry_of(catalog.nextafter, "float64")
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(
            scanned(np.full((2, 3), np.finfo("f8").max), np.full(3, np.inf)), np.full((2, 3), np.inf)
        )
    with np.errstate(all="raise"):  # a status from before is not ours
        np.testing.assert_array_equal(run(x, np.full(30, 2.0)), x / 2)
