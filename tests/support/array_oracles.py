"""Random arrays for the array functions, and the comparison with NumPy's results."""

from typing import Any

import numpy as np
from hypothesis import strategies as st

import tenferro_runtime as tr

REALS = ("int8", "int32", "int64", "uint8", "uint64", "float32", "float64")
NUMBERS = (*REALS, "complex64", "complex128")
ALL = ("bool", *NUMBERS)
FLOATS = ("float32", "float64")
INEXACT = (*FLOATS, "complex64", "complex128")

shapes = st.lists(st.integers(0, 4), max_size=3).map(tuple)
seeds = st.integers(0, 2**32 - 1)


def array(shape: tuple[int, ...], dtype: str, seed: int = 0) -> np.ndarray[Any, Any]:
    """Moderate random numbers, with ties among integers."""
    rng = np.random.default_rng(seed)
    kind = np.dtype(dtype).kind
    if kind == "b":
        values = rng.random(shape) < 0.5
    elif kind in "iu":
        values = rng.integers(0 if kind == "u" else -5, 7, shape)
    else:
        values = rng.normal(size=shape) + (1j * rng.normal(size=shape) if kind == "c" else 0)
    return np.asarray(values, dtype)


@st.composite
def arrays(draw: Any, dtypes: tuple[str, ...] = NUMBERS, shape: Any = shapes) -> np.ndarray[Any, Any]:
    """Arrays of random dtype and shape, 0-d and empty ones among them."""
    return array(draw(shape), draw(st.sampled_from(dtypes)), draw(seeds))


@st.composite
def axes_of(draw: Any, ndim: int, several: bool = True) -> Any:
    """None, one axis or a tuple of axes of an array with `ndim` axes."""
    if not ndim:
        return draw(st.sampled_from([None, ()])) if several else None
    one = st.integers(-ndim, ndim - 1)
    if not several:
        return draw(st.none() | one)
    kind = draw(st.sampled_from(["all", "one", "some"]))
    if kind == "some":
        return tuple(draw(st.lists(st.integers(0, ndim - 1), unique=True, max_size=ndim)))
    return None if kind == "all" else draw(one)


def assert_same(got: Any, want: Any, rtol: float | None = None) -> None:
    """Same dtype, shape and elements: exact ones, unless a tolerance is given or the dtype is inexact."""
    if isinstance(want, (tuple, list)):
        assert len(got) == len(want)
        for g, w in zip(got, want, strict=True):
            assert_same(g, w, rtol)
        return
    want = np.asarray(want)
    assert isinstance(got, tr.asarray(0.0).__class__), type(got)
    assert got.shape == want.shape
    assert got.dtype == want.dtype
    raw = got.numpy()
    assert (raw.shape, raw.dtype) == (want.shape, want.dtype), "data and spec disagree"
    if want.dtype.kind in "fc":
        fine = 1e-5 if want.dtype.itemsize // (2 if want.dtype.kind == "c" else 1) == 4 else 1e-12
        np.testing.assert_allclose(raw, want, rtol=rtol or fine, atol=fine)
    else:
        np.testing.assert_array_equal(raw, want)
