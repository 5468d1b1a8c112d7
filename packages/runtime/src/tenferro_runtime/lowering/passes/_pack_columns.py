"""`pack_columns`: what a nest reads again and again at distances is brought together before it.

The outer product of two columns, say, reads one of them for each row. Next to each other, its elements fill vectors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import count
from typing import Final

from tenferro_runtime.lowering.passes._contents import Block, all_registers, changed, mentioned, with_blocks
from tenferro_tensor.loop_ir import (
    INDEX,
    Affine,
    Buffer,
    For,
    Let,
    Load,
    LoopFunction,
    Order,
    Position,
    Reg,
    Role,
    Statement,
    Store,
    blocks,
    everything,
)
from tenferro_tensor_core import DimLike

FEWEST: Final = 4
"""Elements of a column, and times that it is read, from which packing it pays."""

MOST_PACKED: Final = 4
"""Columns that are packed for one nest."""


def pack_columns(function: LoopFunction) -> LoopFunction:
    """The function with columns that nests read again and again in memory of their own."""
    work = _Packing(function)
    body = work.block(function.body)
    return replace(function, body=body, temporaries=(*function.temporaries, *work.made)) if work.made else function


class _Packing:
    """The pass over one function.

    Attributes:
        made: new buffers.
    """

    def __init__(self, function: LoopFunction) -> None:
        inside = list(everything(function.body))
        named = [b for s in inside for b in mentioned(s)]
        named += [*function.inputs, *function.outputs, *function.temporaries]
        self.made: list[Buffer] = []
        self._buffers = count(1 + max([b.number for b in named], default=-1))
        self._registers = count(1 + max([reg.number for s in inside for reg in all_registers(s)], default=-1))

    def block(self, statements: Sequence[Statement]) -> Block:
        """The statements of a block, with columns packed before the nests that read them."""
        found: list[Statement] = []
        for s in statements:
            if isinstance(s, For) and s.order is Order.ANY:
                nest = _Nest(self, s)
                s = nest.within(s, 1)
                found += nest.before
            elif not isinstance(s, For) or s.order is Order.GIVEN:
                inner = blocks(s)
                s = with_blocks(s, [self.block(b) for b in inner]) if inner else s
            found.append(s)
        return tuple(found)

    def column(self, load: Load, start: Affine, by: DimLike, extent: DimLike) -> tuple[Buffer, Statement]:
        """Memory for a column, and the nest that fills it."""
        buffer = Buffer(next(self._buffers), load.buffer.dtype, (extent,), Role.TEMPORARY)
        self.made.append(buffer)
        index, number = Reg(next(self._registers), INDEX), Reg(next(self._registers), load.buffer.dtype)
        body = (Load(number, load.buffer, start + Affine.of(index) * by), Store(buffer, Affine.of(index), number))
        return buffer, For(index, extent, body, order=Order.ANY)


class _Nest:
    """One nest of independent loops, by itself in its block.

    Attributes:
        before: what is done before it.
    """

    def __init__(self, work: _Packing, nest: For) -> None:
        inside = list(everything((nest,)))
        self.work = work
        self.before: list[Statement] = []
        self._sets = {reg.number for s in inside for reg in all_registers(s)}
        self._written = {b.number for s in inside for b in changed(s)}
        self._known: dict[tuple[int, Affine, DimLike, DimLike], Buffer] = {}

    def within(self, s: For, times: DimLike) -> For:
        """A loop of the nest with other loads; `times` is how often all of it runs."""
        if all(isinstance(t, Let | Position | Load | Store) for t in s.body):
            return replace(s, body=tuple([self._loaded(t, s, times) if isinstance(t, Load) else t for t in s.body]))
        times = times * s.extent
        return replace(s, body=tuple([self.within(t, times) if isinstance(t, For) else t for t in s.body]))

    def _loaded(self, load: Load, s: For, times: DimLike) -> Load:
        by = load.at.coefficient(s.index)
        start = load.at - Affine.of(s.index) * by
        if (isinstance(by, int) and abs(by) <= 1) or load.buffer.number in self._written:
            return load
        if any(reg.number in self._sets for reg, _ in start.terms) or not (_many(s.extent) and _many(times)):
            return load
        key = (load.buffer.number, start, by, s.extent)
        column = self._known.get(key)
        if column is None:
            if len(self._known) == MOST_PACKED:
                return load
            column, filled = self.work.column(load, start, by, s.extent)
            self._known[key] = column
            self.before.append(filled)
        return replace(load, buffer=column, at=Affine.of(s.index))


def _many(n: DimLike) -> bool:
    return not isinstance(n, int) or n >= FEWEST
