"""Loops and branches as ``with`` statements.

Vectors that change are carried: a construct takes their initial values, its body sets `values` to the next ones, and
after the construct `values` holds the final ones. They are phis, whose second incoming values are set when the body
ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, Protocol, Self, TypeVar

from tenferro_cpu.native.codegen.builder._emitter import Emitter
from tenferro_cpu.native.codegen.builder._scalars import Flag, Int
from tenferro_cpu.native.codegen.builder._vectors import Block, Vec


class InRegisters(Protocol):
    """A value in one or more registers."""

    @property
    def types(self) -> tuple[str, ...]: ...
    @property
    def names(self) -> tuple[str, ...]: ...
    def renamed(self, names: tuple[str, ...]) -> Self: ...


T = TypeVar("T", bound=InRegisters)


class Phis:
    """Values at the head of a block with two predecessors, the second known only later.

    Methods take:
        value: incoming value of the first predecessor.
        names: registers of the second predecessor, in the order of `head`.
        latch: label of the second predecessor.

    Methods return:
        The value at the head of the block.
    """

    def __init__(self, block: Emitter, before: str) -> None:
        self.block: Emitter = block
        self.before: str = before
        self.open: list[tuple[int, str, str, str]] = []

    def head(self, value: T) -> T:
        """Create the phis of a value."""
        names = [self.block.fresh() for _ in value.names]
        line = self.block.reserve(len(names))
        for i, (name, llvm, first) in enumerate(zip(names, value.types, value.names)):
            self.open.append((line + i, name, llvm, first))
        return value.renamed(tuple(names))

    def close(self, names: Sequence[str], latch: str) -> None:
        """Set the incoming values of the second predecessor."""
        for (line, name, llvm, first), second in zip(self.open, names, strict=True):
            self.block.fill(line, f"{name} = phi {llvm} [ {first}, %{self.before} ], [ {second}, %{latch} ]")


def _names(values: Sequence[InRegisters]) -> list[str]:
    return [name for value in values for name in value.names]


class DoLoop:
    """``with DoLoop(block, start, end, step, values) as loop:``: runs at least once, while ``start + k * step < end``.

    Attributes:
        index: the counter.
        values: the carried vectors.
    """

    def __init__(
        self, block: Block, start: Int | int, end: Int | int, step: Int | int, values: Sequence[Vec] = ()
    ) -> None:
        self.block: Block = block
        self.step: Int | int = step
        self.first: Int = start if isinstance(start, Int) else Int(block, str(start))
        self.end: Int = end if isinstance(end, Int) else Int(block, str(end))
        self.values: list[Vec] = list(values)

    def __enter__(self) -> Self:
        b = self.block
        self.head: str = b.new_label("loop")
        self._phis = Phis(b, b.label)
        b.jump(self.head)
        b.begin(self.head)
        self.index: Int = self._phis.head(self.first)
        self.values = [self._phis.head(value) for value in self.values]
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            return
        b, after = self.block, self.block.new_label("looped")
        following = self.index + self.step
        self._phis.close([following.name, *_names(self.values)], b.label)
        b.repeat((following < self.end).name, self.head, after)
        b.begin(after)


class Loop:
    """``with Loop(block, counters, values) as loop:``: runs until the condition of `leave_unless` is false.

    Methods take:
        flag: the condition for continuing.

    Attributes:
        counters: carried integers.
        values: carried vectors; after the loop, both are those at the head of its last iteration.
    """

    def __init__(self, block: Block, counters: Sequence[Int | int], values: Sequence[Vec] = ()) -> None:
        self.block: Block = block
        self.counters: list[Int] = [c if isinstance(c, Int) else Int(block, str(c)) for c in counters]
        self.values: list[Vec] = list(values)

    def __enter__(self) -> Self:
        b = self.block
        self.head: str = b.new_label("while")
        self.after: str = b.new_label("left")
        self._phis = Phis(b, b.label)
        b.jump(self.head)
        b.begin(self.head)
        self.counters = [self._phis.head(c) for c in self.counters]
        self.values = [self._phis.head(v) for v in self.values]
        self._last = self.counters, self.values
        return self

    def leave_unless(self, flag: Flag) -> None:
        """Leave the loop if the condition is false; call it once, before anything changes."""
        inside = self.block.new_label("turn")
        self.block.branch(flag.name, inside, self.after)
        self.block.begin(inside)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            return
        b = self.block
        self._phis.close(_names([*self.counters, *self.values]), b.label)
        b.jump(self.head)
        b.begin(self.after)
        self.counters, self.values = self._last


class Branch(Generic[T]):
    """``with Branch(block, flag, values) as branch:``: runs if the condition holds; `rarely` marks the branch as cold.

    Attributes:
        values: the carried vectors or integers; the body may replace them.
    """

    def __init__(self, block: Block, flag: Flag, values: Sequence[T] = (), *, rarely: bool = False) -> None:
        self.block: Block = block
        self.flag: Flag = flag
        self.rarely: bool = rarely
        self.values: list[T] = list(values)

    def __enter__(self) -> Self:
        b = self.block
        inside = b.new_label("when")
        self.after: str = b.new_label("then")
        b.branch(self.flag.name, inside, self.after, rarely=self.rarely)
        self._phis, self._first = Phis(b, b.label), self.values
        b.begin(inside)
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            return
        b, inside, second = self.block, self.block.label, _names(self.values)
        b.jump(self.after)
        b.begin(self.after)
        self.values = [self._phis.head(v) for v in self._first]
        self._phis.close(second, inside)
