"""Operations of reductions: the neutral element, combining two states, folding the lanes of a vector."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from tenferro_cpu.native.builder import Block, Vec
from tenferro_cpu.native.kernels._forms import LOCATED
from tenferro_cpu.native.operations._arithmetic import larger, smaller
from tenferro_cpu.native.operations._ops import apply
from tenferro_cpu.native.operations._value import OpContext, Pair, Value, kind_of, literal
from tenferro_tensor.catalog import arithmetic


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """A value and the index of its element."""

    value: Vec
    place: Vec


State = Value | Found


@dataclass(frozen=True, slots=True)
class Combiner:
    """One kind of reduction of one dtype, in one block."""

    block: Block
    kind: str
    dtype: np.dtype[Any]

    @property
    def context(self) -> OpContext:
        return OpContext(self.block, self.dtype, self.dtype)

    @property
    def kinds(self) -> tuple[str, ...]:
        """Element kinds of the vectors of a state."""
        kind = kind_of(self.dtype)
        if self.kind in LOCATED:
            return (kind, "i64")
        return (kind, kind) if self.dtype.kind == "c" else (kind,)

    def split(self, state: State) -> tuple[Vec, ...]:
        """The vectors of a state."""
        if isinstance(state, Found):
            return (state.value, state.place)
        return (state.re, state.im) if isinstance(state, Pair) else (state,)

    def join(self, *vectors: Vec) -> State:
        """The state composed of these vectors."""
        if self.kind in LOCATED:
            return Found(*vectors)
        return Pair(*vectors) if self.dtype.kind == "c" else vectors[0]

    def neutral(self) -> State:
        """The state of no elements."""
        if self.kind in ("sum", "prod"):
            return literal(self.block, int(self.kind == "prod"), self.dtype)
        low = self.kind in ("max", "argmax")
        if self.dtype.kind == "f":
            extreme: float = -math.inf if low else math.inf
        elif self.dtype.kind == "b":
            extreme = not low
        else:
            limits = np.iinfo(self.dtype)
            extreme = int(limits.min if low else limits.max)
        value = literal(self.block, extreme, self.dtype)
        if self.kind not in LOCATED:
            return value
        assert isinstance(value, Vec)
        return Found(value, self.block.splat("i64", 0))

    def combine(self, x: State, y: State) -> State:
        """Combine two states; of equal extremes, the one with the smaller index."""
        if isinstance(x, Found) and isinstance(y, Found):
            return self._found(x, y)
        assert not isinstance(x, Found) and not isinstance(y, Found)
        if self.kind in ("sum", "prod"):
            op = (arithmetic.add if self.kind == "sum" else arithmetic.mul).op()
            return apply(self.block, op, (self.dtype, self.dtype), self.dtype, x, y)
        assert isinstance(x, Vec) and isinstance(y, Vec)
        return (larger if self.kind == "max" else smaller)(self.context, x, y)

    def _found(self, x: Found, y: Found) -> Found:
        context, a, b = self.context, x.value, y.value
        word = "gt" if self.kind == "argmax" else "lt"
        letter = "u" if self.dtype.kind in "ub" else "s"
        if self.dtype.kind == "b":
            first = a & ~b if word == "gt" else ~a & b
        else:
            first = a.compare(f"o{word}", f"{letter}{word}", b)
        equal = a.equals(b)
        if self.dtype.kind == "f":
            first = first | (a.is_nan & ~b.is_nan)
            equal = equal | (a.is_nan & b.is_nan)
        first = first | (equal & (x.place < y.place))
        where = context.block.where
        return Found(where(first, a, b), where(first, x.place, y.place))

    def masked(self, state: State, mask: Vec) -> State:
        """`state` in the lanes of a mask, neutral in the others."""
        wide = Vec(self.block, "i1", mask.names[:1] * self.block.interleave)
        neutral = self.split(self.neutral())
        return self.join(*(self.block.where(wide, x, n) for x, n in zip(self.split(state), neutral)))

    def folded(self, state: State) -> tuple[str, ...]:
        """Combine the lanes of one vector pairwise; returns names of scalars."""
        b, width = self.block, self.block.lanes
        while width > 1:
            width //= 2
            order = [k + width if k < width else k for k in range(b.lanes)]
            state = self.combine(state, self.join(*(b.shuffled(x, order) for x in self.split(state))))
        return tuple([b.first_lane(x) for x in self.split(state)])

    def interleaved(self, state: State) -> State:
        """Combine the interleaved vectors of a state pairwise into one; the block then has one vector."""
        states = [self.join(*(x.one(u) for x in self.split(state))) for u in range(self.block.interleave)]
        self.block.interleave = 1
        while len(states) > 1:
            states = [self.combine(x, y) for x, y in zip(states[::2], states[1::2])]
        return states[0]
