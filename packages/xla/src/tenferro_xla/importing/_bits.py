"""Bits of numbers by arithmetic: every float is an integer times a power of two, both of which are exact."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tenferro_runtime.extension import Spec, catalog, tensor
from tenferro_tensor_core import finfo
from tenferro_xla.importing._reader import unknown


def unsigned(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The unsigned integers of as many bits."""
    return np.dtype(f"uint{8 * dtype.itemsize}")


def layout(dtype: np.dtype[Any]) -> tuple[int, int, int]:
    """Bits of a float, bits of its fraction, and the largest exponent; half of that, rounded down, is the bias."""
    info = finfo(dtype)
    fraction = -round(math.log2(info.eps))
    return info.bits, fraction, (1 << (info.bits - 1 - fraction)) - 1


def leading_zeros(x: Any) -> Any:
    """Number of bits above the highest one that is set."""
    bits = 8 * x.spec.dtype.itemsize
    seen = catalog.convert(x, dtype=unsigned(x.spec.dtype))
    shift = 1
    while shift < bits:  # all bits below the highest one become set
        seen = catalog.bitwise_or(seen, catalog.shift_right(seen, shift))
        shift *= 2
    return catalog.sub(bits, catalog.convert(catalog.population_count(seen), dtype=x.spec.dtype))


def bitcast(op: Any, x: Any, out: Spec) -> Any:
    """The bits of `x` under another dtype of as many bits."""
    have, want = x.spec.dtype, out.dtype
    if have.itemsize != want.itemsize or "c" in have.kind + want.kind or x.spec.shape != out.shape:
        raise unknown(op, f"bits of {have.name} cannot be taken for those of {want.name}, which has another size")
    if have == want:
        return x
    if "b" in have.kind + want.kind or (have.kind in "iu" and want.kind in "iu"):
        return catalog.convert(x, dtype=want)
    if have.kind in "iu":
        return _float_of(catalog.convert(x, dtype=unsigned(have)), want)
    bits = _bits_of(x)
    return catalog.convert(bits, dtype=want) if want.kind == "i" else bits


def _float_of(bits: Any, want: np.dtype[Any]) -> Any:
    """The number with the given bits; every NaN is one NaN."""
    size, fraction, largest = layout(want)
    wide = np.dtype("float64")
    exponent = catalog.bitwise_and(catalog.shift_right(bits, fraction), largest)
    rest = catalog.bitwise_and(bits, (1 << fraction) - 1)
    # Below the smallest normal number, the leading bit is missing and the power stays what it is.
    hidden = catalog.select(catalog.eq(exponent, 0), 0.0, _alike(exponent, 2.0**fraction))
    whole = catalog.add(catalog.convert(rest, dtype=wide), hidden)
    powers = np.ldexp(1.0, np.maximum(np.arange(largest + 1), 1) - largest // 2 - fraction)
    powers[largest] = 0.0  # no numbers, but infinities and NaN
    found = catalog.mul(whole, _entries(powers, exponent))
    special = catalog.eq(exponent, largest)
    found = catalog.select(special, catalog.select(catalog.eq(rest, 0), np.inf, _alike(exponent, np.nan)), found)
    negative = catalog.ne(catalog.shift_right(bits, size - 1), 0)
    return catalog.convert(catalog.select(negative, catalog.neg(found), found), dtype=want)


def _bits_of(x: Any) -> Any:
    """The bits of a number; every NaN is the quiet one."""
    x = catalog.stop_gradient(x)
    size, fraction, largest = layout(x.spec.dtype)
    kind = unsigned(x.spec.dtype)
    found = catalog.abs(catalog.convert(x, dtype=np.dtype("float64")))
    usual = catalog.is_finite(found)
    found = catalog.select(usual, found, 0.0)
    normal = np.arange(1, largest)
    exponent = catalog.searchsorted(tensor(np.ldexp(1.0, normal - largest // 2)), found, side="right")
    # In two steps, because the power that makes a small number an integer overflows.
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
    """``table[index]`` for integers of any shape."""
    vectors = catalog.reshape(index, shape=(*index.spec.shape, 1))
    return catalog.gather(
        tensor(table), vectors, offset_dims=(), collapsed_dims=(0,), start_index_map=(0,), slice_sizes=(1,)
    )


def _alike(x: Any, number: float) -> Any:
    """An array of the shape of `x` that is filled with a number."""
    return catalog.broadcast_in_dim(tensor(np.asarray(number)), shape=x.spec.shape, dims=())
