"""float16 and bfloat16 in registers: their bits as 16-bit integers, which are widened and rounded.

Moving them moves integers. Rounding is to nearest, ties to even; NaN stays NaN. Processors of the vector levels convert
float16 by an instruction; for others the conversion is written out (after F. Giesen).
"""

from __future__ import annotations

import struct
from typing import Any, Final

import numpy as np

from tenferro_cpu.native.codegen.builder import Vec
from tenferro_cpu.native.codegen.operations._value import OpContext, Value
from tenferro_tensor_core import float16

_SIGN: Final = 1 << 15
_INFINITE: Final = 0x7C00 << 13
"""The exponent bits of float16, at the fraction bits of float32."""


def widened(x: Vec, dtype: np.dtype[Any]) -> Vec:
    """Convert numbers of a narrow type to float32."""
    block = x.block
    if dtype is not float16:
        return (block.cast("zext", x, "i32") << 16).float
    if block.fused:
        return block.cast("fpext", x.float, "f32")
    bits, where = block.cast("zext", x, "i32"), block.where
    size = (bits & (_SIGN - 1)) << 13
    exponent = size & _INFINITE
    moved = size + ((127 - 15) << 23)
    endless = moved + ((128 - 16) << 23)
    small = ((moved + (1 << 23)).float - _number(113 << 23)).bits  # a subnormal one is normal in float32
    size = where(exponent.equals(_INFINITE), endless, where(exponent.equals(0), small, moved))
    return (size | ((bits & _SIGN) << 16)).float


def rounded(x: Vec, dtype: np.dtype[Any]) -> Vec:
    """Convert float32 numbers to the bits of a narrow type."""
    block = x.block
    bits, where = x.bits, block.where
    if dtype is not float16:
        near = (bits + ((bits.unsigned_shift(16) & 1) + 0x7FFF)).unsigned_shift(16)
        return block.cast("trunc", where(x.is_nan, bits.unsigned_shift(16) | 0x40, near), "i16")
    if block.fused:
        return block.cast("fptrunc", x, "f16").bits
    size = bits & 0x7FFFFFFF
    # Adding this number shifts the bits of a subnormal one into place, and rounds them.
    magic = (127 - 15) + (23 - 10) + 1 << 23
    small = (size.float + _number(magic)).bits - magic
    near = (size + (size.unsigned_shift(13) & 1) + (((15 - 127) << 23) + 0xFFF)).unsigned_shift(13)
    endless = where(x.is_nan, size.like(0x7E00), 0x7C00)
    size = where(size < (113 << 23), small, where(size >= (127 + 16 << 23), endless, near))
    return block.cast("trunc", size | (bits.unsigned_shift(16) & _SIGN), "i16")


def to_odd(x: Vec) -> Vec:
    """Convert float64 to float32, with an odd last bit if inexact, so that a second rounding rounds only once."""
    block, where = x.block, x.block.where
    near = block.cast("fptrunc", x, "f32")
    back = block.cast("fpext", near, "f64")
    inexact = back.differs(x) & ~x.is_nan
    beyond = (back.bits & _MAGNITUDE) > (x.bits & _MAGNITUDE)
    # The bits of numbers of one sign are in the order of their sizes.
    towards_zero = near.bits + where(inexact & beyond, near.bits.like(-1), 0)
    return where(inexact, towards_zero | 1, towards_zero).float


_MAGNITUDE: Final = (1 << 63) - 1


def nextafter(context: OpContext, x: Vec, y: Vec) -> Value:
    """Next representable number, as for wider types."""
    where, (a, b) = context.block.where, (widened(v, context.dtype) for v in (x, y))
    away = (a < b) ^ (x < 0)
    stepped = x + where(away, x.like(1), -1)
    stepped = where(a.equals(0.0), (y & -_SIGN) | 1, stepped)
    stepped = where(a.equals(b), y, stepped)
    return where(a.is_nan, x, where(b.is_nan, y, stepped))


def _number(bits: int) -> float:
    return float(struct.unpack("<f", struct.pack("<I", bits))[0])
