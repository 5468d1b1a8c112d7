"""Loops inside of a loop over vectors: their iterations are run by all lanes together, which carry vectors."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from tenferro_cpu.native.builder import Block, Int, Loop, Vec
from tenferro_cpu.native.operations._value import Value
from tenferro_cpu.native.whole._polls import write_poll
from tenferro_cpu.native.whole._statements import Writer
from tenferro_cpu.native.whole._values import parts
from tenferro_tensor.loop_ir import For, Reg, Statement, While
from tenferro_tensor.loop_ir import Value as Number


class Vectors(Protocol):
    """A loop over vectors, as loops inside of it see it.

    Attributes:
        block: instructions on vectors.
        writer: of the function.
    """

    block: Block
    writer: Writer

    def value(self, number: Number, starts: Sequence[Int]) -> Value:
        """A number in every lane."""

    def share(self, number: Number) -> None:
        """Have a number that all lanes share in each of them."""

    def inside(self, s: Statement, starts: Sequence[Int], mask: Vec | None) -> None:
        """Write a statement of a loop inside."""

    def carry(self, registers: Sequence[Reg], vectors: Sequence[Vec]) -> None:
        """Let registers have these vectors."""

    def forgetting(self) -> AbstractContextManager[None]:
        """A scope after which what a loop made known is forgotten."""


def together(v: Vectors, s: For, starts: Sequence[Int], mask: Vec | None) -> None:
    """A counted loop, which is as long for every lane."""
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
    """A loop that each lane leaves when it is done: it keeps what it carries, and the others go on."""
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
