"""Rules of shifts and bit counts."""

from __future__ import annotations

from tenferro_cpu.native.builder import BITS, Vec
from tenferro_cpu.native.operations._convert import resized
from tenferro_cpu.native.operations._value import Rule, Site, Value


def shift(left: bool) -> Rule:
    """Bits moved up or down."""

    def rule(site: Site, x: Vec, y: Vec) -> Value:
        # Shifts by the width or more are not defined in LLVM; NumPy shifts everything out.
        width = BITS[x.kind]
        inside = y.compare("?", "ult", width)
        by = site.block.where(inside, y, y.like(0))
        shifted = x << by if left else x.unsigned_shift(by) if site.unsigned else x >> by
        rest = x.like(0) if left or site.unsigned else x >> (width - 1)
        return site.block.where(inside, shifted, rest)

    return rule


def population(site: Site, x: Vec) -> Value:
    size = x if site.unsigned else site.block.where(x < 0, 0 - x, x)
    return resized(site.block.call("ctpop", size), "i8", False)
