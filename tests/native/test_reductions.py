"""Reductions that are compiled ahead of time have the bits of those that are compiled for a program."""

import ctypes
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenferro_cpu.native import engine
from tenferro_cpu.native.codegen.whole._row import render_row
from tenferro_cpu.native.kernels._forms import Access
from tenferro_cpu.native.kernels._rows import combined_rows, reduced_row

compiled = pytest.importorskip("tenferro_cpu.native._compiled")

FUNCTION = ctypes.CFUNCTYPE(
    None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p
)  # fmt: skip


def dtype_of(letters: str) -> np.dtype:
    return np.dtype(f"{letters[0]}{int(letters[1:]) // 8}")


def reduced(address: int, x: np.ndarray, leading: bool) -> np.ndarray:
    m, n = x.shape
    out = np.full(n if leading else 1, 7, x.dtype)
    data = (ctypes.c_void_p * 2)(x.ctypes.data, out.ctypes.data)
    FUNCTION(address)(data, n, None, m, (ctypes.c_int64 * 2)(x.strides[0], 0))
    return out


def numbers(rng: np.random.Generator, dtype: np.dtype, shape: tuple[int, int], special: bool) -> np.ndarray:
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        return rng.integers(limits.min, limits.max, shape, dtype, endpoint=True)
    x = rng.standard_normal(shape)
    if dtype.kind == "c":
        x = x + 1j * rng.standard_normal(shape)
    if special and x.size:
        x.flat[rng.integers(x.size)] = rng.choice([np.nan, np.inf, -0.0])
    return x.astype(dtype)


@cache
def generated(kind: str, dtype: np.dtype, leading: bool) -> int:
    """Address of the kernel that is compiled for a program."""
    unit = Access.UNIT
    function = combined_rows(kind, dtype, unit, unit) if leading else reduced_row(kind, dtype, unit)
    return engine().function(render_row(function, "reduce", engine().host), "reduce")


@pytest.mark.parametrize("leading", [False, True], ids=["trailing", "leading"])
@pytest.mark.parametrize("name", sorted(compiled.REDUCTIONS))
@given(n=st.integers(0, 3000), m=st.integers(1, 150), seed=st.integers(0, 9), special=st.booleans())
def test_bits_are_those_of_generated_kernels(
    name: str, leading: bool, n: int, m: int, seed: int, special: bool
) -> None:
    if engine().host.level != compiled.LEVEL:
        pytest.skip("the two are for different vector levels")
    kind, letters = name.split()
    dtype = dtype_of(letters)
    m, n = (m, n % 200 + 1) if leading else (1, n)
    x = numbers(np.random.default_rng(seed), dtype, (m, n), special)
    address = compiled.REDUCTIONS[name][leading]
    with np.errstate(all="ignore"):
        assert reduced(address, x, leading).tobytes() == reduced(generated(kind, dtype, leading), x, leading).tobytes()
