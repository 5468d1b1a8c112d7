"""Loops inside a loop over vectors: all lanes run their iterations together and carry vectors."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from tenferro_cpu.native.codegen.builder import Block, Int, Loop, Vec
from tenferro_cpu.native.codegen.operations._value import Value
from tenferro_cpu.native.codegen.whole._polls import write_poll
from tenferro_cpu.native.codegen.whole._statements import Writer
from tenferro_cpu.native.codegen.whole._values import parts
from tenferro_tensor.loop_ir import For, Reg, Statement, While
from tenferro_tensor.loop_ir import Value as Number


class Vectors(Protocol):
    """A loop over vectors, as seen by its inner loops.

    Attributes:
        block: instructions on vectors.
        writer: the writer of the function.
    """

    block: Block
    writer: Writer

    def value(self, number: Number, starts: Sequence[Int]) -> Value:
        """A number in every lane."""

    def share(self, number: Number) -> None:
        """Broadcast a number that all lanes share."""

    def inside(self, s: Statement, starts: Sequence[Int], mask: Vec | None) -> None:
        """Write a statement of an inner loop."""

    def carry(self, registers: Sequence[Reg], vectors: Sequence[Vec]) -> None:
        """Assign these vectors to registers."""

    def forgetting(self) -> AbstractContextManager[None]:
        """A scope; values computed in an inner loop are dropped at its end."""


def together(v: Vectors, s: For, starts: Sequence[Int], mask: Vec | None) -> None:
    """A counted loop of equal length for every lane."""
    w, b = v.writer, v.block
    first = [v.value(c.first, starts) for c in s.carries]
    with v.forgetting(), Loop(b, [0], [x for value in first for x in parts(value)]) as loop:
        (index,) = loop.counters
        loop.leave_unless(index < Int(b, w.size(s.extent).name))
        v.carry([c.inside for c in s.carries], loop.values)
        w.registers[s.index.number] = Vec(w.block, "i64", (index.name,))
        v.share(s.index)
        for each in s.body:
            v.inside(each, starts, mask)
        following = [v.value(c.following, starts) for c in s.carries]
        loop.values = [x for value in following for x in parts(value)]
        loop.counters = [index + 1]
    v.carry([c.result for c in s.carries], loop.values)


def until_all_leave(v: Vectors, s: While, starts: Sequence[Int], mask: Vec | None) -> None:
    """A loop that each lane leaves when it is done: its carried values stay, and the other lanes continue."""
    w, b = v.writer, v.block
    first = [v.value(c.first, starts) for c in s.carries]
    carried = [x for value in first for x in parts(value)]
    there = b.splat("i1", 1) if mask is None else Vec(b, "i1", mask.names * (b.interleave // len(mask.names)))
    with v.forgetting(), Loop(b, [0], [*carried, there]) as loop:
        (index,), (*before, there) = loop.counters, loop.values
        v.carry([c.inside for c in s.carries], before)
        w.registers[s.index.number] = Vec(w.block, "i64", (index.name,))
        v.share(s.index)
        for each in s.test:
            v.inside(each, starts, there)
        condition = v.value(s.condition, starts)
        assert isinstance(condition, Vec)
        there = there & condition
        goes_on = b.any(there)
        if s.most is not None:
            goes_on = goes_on & (index < Int(b, w.size(s.most).name))
        loop.leave_unless(goes_on)
        for each in s.body:
            v.inside(each, starts, there)
        following = [x for c in s.carries for x in parts(v.value(c.following, starts))]
        loop.values = [*[b.where(there, x, old) for x, old in zip(following, before, strict=True)], there]
        if w.polls:
            w.block.take_over(b)
            write_poll(w, s, Int(w.block, index.name))
            b.take_over(w.block)
        loop.counters = [index + 1]
    v.carry([c.result for c in s.carries], loop.values[:-1])
