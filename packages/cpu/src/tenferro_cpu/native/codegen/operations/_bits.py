"""Rules of shifts and bit counts."""

from __future__ import annotations

from tenferro_cpu.native.codegen.builder import BITS, Vec
from tenferro_cpu.native.codegen.operations._convert import resized
from tenferro_cpu.native.codegen.operations._value import OpContext, Rule, Value


def shift(left: bool) -> Rule:
    """Bits moved up or down."""

    def rule(context: OpContext, x: Vec, y: Vec) -> Value:
        # Shifts by the width or more are not defined in LLVM; NumPy shifts everything out.
        width = BITS[x.kind]
        inside = y.compare("?", "ult", width)
        by = context.block.where(inside, y, y.like(0))
        shifted = x << by if left else x.unsigned_shift(by) if context.unsigned else x >> by
        rest = x.like(0) if left or context.unsigned else x >> (width - 1)
        return context.block.where(inside, shifted, rest)

    return rule


def population(context: OpContext, x: Vec) -> Value:
    size = x if context.unsigned else context.block.where(x < 0, 0 - x, x)
    return resized(context.block.call("ctpop", size), "i8", False)
