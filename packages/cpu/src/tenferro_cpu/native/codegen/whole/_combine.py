"""How values are reduced: the neutral element, and combining two values."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from tenferro_cpu.native.codegen.builder import Block, Vec
from tenferro_cpu.native.codegen.operations._arithmetic import larger, smaller
from tenferro_cpu.native.codegen.operations._ops import apply
from tenferro_cpu.native.codegen.operations._value import OpContext, Value, literal
from tenferro_cpu.native.codegen.whole._values import joined, parts
from tenferro_tensor.catalog import arithmetic


@dataclass(frozen=True, slots=True)
class Combiner:
    """One kind of reduction of one dtype, in one block."""

    block: Block
    kind: str
    dtype: np.dtype[Any]

    @property
    def context(self) -> OpContext:
        return OpContext(self.block, self.dtype, self.dtype)

    def neutral(self) -> Value:
        """The value of no elements."""
        if self.kind in ("sum", "prod"):
            return literal(self.block, int(self.kind == "prod"), self.dtype)
        low = self.kind == "max"
        if self.dtype.kind == "f":
            extreme: float = -math.inf if low else math.inf
        elif self.dtype.kind == "b":
            extreme = not low
        else:
            limits = np.iinfo(self.dtype)
            extreme = int(limits.min if low else limits.max)
        return literal(self.block, extreme, self.dtype)

    def combine(self, x: Value, y: Value) -> Value:
        """Combine two values; of equal extremes, the first."""
        if self.kind in ("sum", "prod"):
            op = (arithmetic.add if self.kind == "sum" else arithmetic.mul).op()
            return apply(self.block, op, (self.dtype, self.dtype), self.dtype, x, y)
        assert isinstance(x, Vec) and isinstance(y, Vec)
        return (larger if self.kind == "max" else smaller)(self.context, x, y)

    def masked(self, value: Value, mask: Vec) -> Value:
        """`value` in the lanes of a mask, neutral in the others."""
        wide = Vec(self.block, "i1", mask.names[:1] * self.block.interleave)
        both = zip(parts(value), parts(self.neutral()), strict=True)
        return joined([self.block.where(wide, x, n) for x, n in both])

    def interleaved(self, value: Value) -> Value:
        """Combine the interleaved vectors of a value pairwise into one; the block then has one vector."""
        values = [joined([x.one(u) for x in parts(value)]) for u in range(self.block.interleave)]
        self.block.interleave = 1
        while len(values) > 1:
            values = [self.combine(x, y) for x, y in zip(values[::2], values[1::2], strict=True)]
        return values[0]
