"""Bit patterns of numbers by exact arithmetic: every float is an integer times a power of two."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tenferro_runtime.extension import Spec, catalog, tensor
from tenferro_tensor_core import finfo
from tenferro_xla.importing._reader import unknown


def unsigned(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the unsigned integer dtype of the same size."""
    return np.dtype(f"uint{8 * dtype.itemsize}")


def layout(dtype: np.dtype[Any]) -> tuple[int, int, int]:
    """Return the bits of a float, the bits of its fraction, and the largest exponent, whose half is the bias."""
    info = finfo(dtype)
    fraction = -round(math.log2(info.eps))
    return info.bits, fraction, (1 << (info.bits - 1 - fraction)) - 1


def leading_zeros(x: Any) -> Any:
    """Return the number of bits above the highest set bit."""
    bits = 8 * x.spec.dtype.itemsize
    seen = catalog.convert(x, dtype=unsigned(x.spec.dtype))
    shift = 1
    while shift < bits:  # set all bits below the highest set bit
        seen = catalog.bitwise_or(seen, catalog.shift_right(seen, shift))
        shift *= 2
    return catalog.sub(bits, catalog.convert(catalog.population_count(seen), dtype=x.spec.dtype))


def bitcast(op: Any, x: Any, out: Spec) -> Any:
    """Return the bits of `x` as another dtype of the same size."""
    have, want = x.spec.dtype, out.dtype
    if have.itemsize != want.itemsize or "c" in have.kind + want.kind or x.spec.shape != out.shape:
        raise unknown(op, f"bits of {have.name} cannot be reinterpreted as {want.name}, which has another size")
    if have == want:
        return x
    if "b" in have.kind + want.kind or (have.kind in "iu" and want.kind in "iu"):
        return catalog.convert(x, dtype=want)
    if have.kind in "iu":
        return _float_of(catalog.convert(x, dtype=unsigned(have)), want)
    bits = _bits_of(x)
    return catalog.convert(bits, dtype=want) if want.kind == "i" else bits


def _float_of(bits: Any, want: np.dtype[Any]) -> Any:
    """Return the number with the given bits; all NaN become the same NaN."""
    size, fraction, largest = layout(want)
    wide = np.dtype("float64")
    exponent = catalog.bitwise_and(catalog.shift_right(bits, fraction), largest)
    rest = catalog.bitwise_and(bits, (1 << fraction) - 1)
    # Subnormal numbers have no hidden bit and the exponent of the smallest normal number.
    hidden = catalog.select(catalog.eq(exponent, 0), 0.0, _alike(exponent, 2.0**fraction))
    whole = catalog.add(catalog.convert(rest, dtype=wide), hidden)
    powers = np.ldexp(1.0, np.maximum(np.arange(largest + 1), 1) - largest // 2 - fraction)
    powers[largest] = 0.0  # the exponent of infinities and NaN
    found = catalog.mul(whole, _entries(powers, exponent))
    special = catalog.eq(exponent, largest)
    found = catalog.select(special, catalog.select(catalog.eq(rest, 0), np.inf, _alike(exponent, np.nan)), found)
    negative = catalog.ne(catalog.shift_right(bits, size - 1), 0)
    return catalog.convert(catalog.select(negative, catalog.neg(found), found), dtype=want)


def _bits_of(x: Any) -> Any:
    """Return the bits of a number; every NaN becomes the quiet NaN."""
    x = catalog.stop_gradient(x)
    size, fraction, largest = layout(x.spec.dtype)
    kind = unsigned(x.spec.dtype)
    found = catalog.abs(catalog.convert(x, dtype=np.dtype("float64")))
    usual = catalog.is_finite(found)
    found = catalog.select(usual, found, 0.0)
    normal = np.arange(1, largest)
    exponent = catalog.searchsorted(tensor(np.ldexp(1.0, normal - largest // 2)), found, side="right")
    # In two steps, because the power that scales a small number to an integer overflows.
    up = largest // 2 + fraction - np.maximum(np.arange(largest + 1), 1)
    half = up // 2
    for part in (half, up - half):
        found = catalog.mul(found, _entries(np.ldexp(1.0, part), exponent))
    rest = catalog.bitwise_and(catalog.convert(found, dtype=kind), (1 << fraction) - 1)
    bits = catalog.bitwise_or(catalog.shift_left(catalog.convert(exponent, dtype=kind), fraction), rest)
    infinite = largest << fraction
    bits = catalog.select(usual, bits, infinite)
    bits = catalog.select(catalog.is_nan(x), infinite | (1 << (fraction - 1)), bits)
    sign = catalog.shift_left(catalog.convert(catalog.signbit(x), dtype=kind), size - 1)
    return catalog.bitwise_or(bits, sign)


def _entries(table: np.ndarray[Any, Any], index: Any) -> Any:
    """Return ``table[index]`` for integers of any shape."""
    vectors = catalog.reshape(index, shape=(*index.spec.shape, 1))
    return catalog.gather(
        tensor(table), vectors, offset_dims=(), collapsed_dims=(0,), start_index_map=(0,), slice_sizes=(1,)
    )


def _alike(x: Any, number: float) -> Any:
    """Return an array of the shape of `x` filled with a number."""
    return catalog.broadcast_in_dim(tensor(np.asarray(number)), shape=x.spec.shape, dims=())
