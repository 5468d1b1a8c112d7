"""Conversion between dtypes: exact if the number fits, otherwise as follows.

Integers wrap. Floating-point numbers beyond the range of an integer dtype convert as in NumPy on x86: they
wrap if they fit into 32 bits, or 64 for wider dtypes, and otherwise become the lowest of these. NumPy warns about them,
so the conversion raises the processor's invalid-operation flag. Conversions to bfloat16 go through float32.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tenferro_cpu.native.codegen.builder import BITS, Vec
from tenferro_cpu.native.codegen.operations._narrow import rounded, to_odd, widened
from tenferro_cpu.native.codegen.operations._value import OpContext, Pair, Value, kind_of
from tenferro_tensor_core import float16, float32, float64, is_narrow


def resized(x: Vec, kind: str, signed: bool) -> Vec:
    """Convert integer lanes to another width."""
    if BITS[kind] < BITS[x.kind]:
        return x.block.cast("trunc", x, kind)
    return x.block.cast("sext" if signed else "zext", x, kind)


def resized_float(x: Vec, kind: str) -> Vec:
    """Convert floating-point lanes to another width."""
    return x.block.cast("fptrunc" if kind == "f32" else "fpext", x, kind)


def converted(x: Value, source: np.dtype[Any], target: np.dtype[Any]) -> Value:
    """Convert `x` to another dtype, with any loss of information."""
    if is_narrow(source):
        return converted(widened(x, source), float32, target)  # type: ignore[arg-type]
    if is_narrow(target):
        if isinstance(x, Pair):
            return converted(x.re, np.dtype(f"f{source.itemsize // 2}"), target)
        if source is float64 and target is float16:
            return rounded(to_odd(x), target)
        return rounded(converted(x, source, float32), target)  # type: ignore[arg-type]
    if isinstance(x, Pair):
        if target.kind == "b":
            return x.re.differs(0.0) | x.im.differs(0.0)
        if target.kind != "c":
            return converted(x.re, np.dtype(f"f{source.itemsize // 2}"), target)
        return Pair(resized_float(x.re, kind_of(target)), resized_float(x.im, kind_of(target)))
    if target.kind == "c":
        part = converted(x, source, np.dtype(f"f{target.itemsize // 2}"))
        assert isinstance(part, Vec)
        return Pair(part, part.like(0.0))
    kind = kind_of(target)
    if target.kind == "b":
        return x if source.kind == "b" else x.differs(0)
    if source.kind == "f":
        return resized_float(x, kind) if target.kind == "f" else _rounded_to_zero(x, kind, target.kind == "u")
    if target.kind == "f":
        return x.block.cast("uitofp" if source.kind in "bu" else "sitofp", x, kind)
    return resized(x, kind, source.kind == "i")


def _rounded_to_zero(x: Vec, kind: str, unsigned: bool) -> Vec:
    block, bits = x.block, BITS[kind]
    low, end = (0.0, 2.0**bits) if unsigned else (-(2.0 ** (bits - 1)), 2.0 ** (bits - 1))
    whole = block.call("trunc", x)
    block.signal(~((whole >= low) & (whole < end)))
    if unsigned and bits == 64:
        negative = block.saturated(x, kind, unsigned=False)
        return block.where(whole < 2.0**63, negative, block.saturated(x, kind, unsigned=True))
    wide = "i32" if bits < 32 or (bits == 32 and not unsigned) else "i64"
    found = block.saturated(x, wide, unsigned=False)
    edge = 2.0 ** (BITS[wide] - 1)
    found = block.where((whole >= -edge) & (whole < edge), found, found.like(-(2 ** (BITS[wide] - 1))))
    return found if wide == kind else resized(found, kind, True)


def convert(context: OpContext, x: Value, *, dtype: Any) -> Value:
    """The rule of `convert`."""
    return converted(x, context.dtype, context.out)
