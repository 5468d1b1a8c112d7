"""`ItemWriter`: statements of `LoopIR` as C that one work item runs alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from typing import Any

import numpy as np

from tenferro_gpu.rendering._expressions import INDEX_TYPE, Expressions, applied
from tenferro_gpu.rendering._functions import TYPES
from tenferro_tensor.loop_ir import (
    Carried,
    Case,
    For,
    Let,
    Literal,
    Load,
    Position,
    Reg,
    Statement,
    Store,
    Switch,
    While,
)
from tenferro_tensor_core import DimLike, UnsupportedError


class ItemWriter:
    """Writes statements; a register is a constant in C, a buffer a pointer.

    Args:
        expressions: writes sizes and indices.
        lines: the output.
        depth: indentation.
    """

    def __init__(self, expressions: Expressions, lines: list[str], depth: int = 1) -> None:
        self.expressions, self.lines, self.depth = expressions, lines, depth

    def line(self, text: str) -> None:
        """Write a line."""
        self.lines.append("    " * self.depth + text)

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """A scope in braces after a head."""
        self.line(f"{head} {{".lstrip())
        self.depth += 1
        yield
        self.depth -= 1
        self.line("}")

    def set(self, reg: Reg, text: str) -> None:
        """Set a register."""
        if reg.number not in self.expressions.unread:
            self.line(f"const {TYPES[reg.dtype.name]} r{reg.number} = {text};")

    def write(self, statements: Sequence[Statement]) -> None:
        """Write statements in order."""
        for s in statements:
            self.statement(s)

    def statement(self, s: Statement) -> None:
        """Write one statement."""
        match s:
            case Let():
                self.let(s)
            case Position(result, index):
                self.set(result, self.expressions.position(index))
            case Load(result, buffer, at):
                self.set(result, f"{buffer}[{self.expressions.place(at)}]")
            case Store(buffer, at, value):
                self.line(f"{buffer}[{self.expressions.place(at)}] = {self.expressions.value(value)};")
            case For():
                self.count(s)
            case While():
                self.repeat(s)
            case Switch():
                self.choose(s)
            case _:
                raise UnsupportedError(
                    f"{type(s).__name__} has no form in a kernel of a GPU; the program runs step by step"
                )

    def let(self, s: Let) -> None:
        """An application."""
        operands = [a if isinstance(a, Literal) else a.dtype for a in s.args]
        numbers = count()

        def define(dtype: np.dtype[Any], text: str) -> str:
            name = f"t{s.result.number}_{next(numbers)}"
            self.line(f"const {TYPES[dtype.name]} {name} = {text};")
            return name

        self.set(s.result, applied(s.op, operands, [self.expressions.value(a) for a in s.args], define))

    # -- loops and branches

    def count(self, s: For) -> None:
        """A counted loop with sequential iterations."""
        self.begin(s.carries)
        i = f"r{s.index.number}"
        with self.block(f"for ({INDEX_TYPE} {i} = 0; {i} < {self.expressions.size(s.extent)}; ++{i})"):
            self.enter(s.carries)
            self.write(s.body)
            self.next(s.carries)
        self.end(s.carries)

    def repeat(self, s: While) -> None:
        """A loop with a condition."""
        self.begin(s.carries)
        i = f"r{s.index.number}"
        most = "" if s.most is None else f"{i} < {self.expressions.size(s.most)}"
        with self.block(f"for ({INDEX_TYPE} {i} = 0; {most}; ++{i})"):
            self.enter(s.carries)
            self.write(s.test)
            self.line(f"if (!{self.expressions.value(s.condition)}) break;")
            self.write(s.body)
            self.next(s.carries)
        self.end(s.carries)

    def choose(self, s: Switch) -> None:
        """A branch."""
        for reg in s.results:
            self.line(f"{TYPES[reg.dtype.name]} r{reg.number};")
        index = self.expressions.value(s.index)
        for k, case in enumerate(s.cases):
            test = "" if k == len(s.cases) - 1 else f"if ({index} <= {k})"
            with self.block(f"{'else ' * (k > 0)}{test}".strip()):
                self.case(s, case)

    def case(self, s: Switch, case: Case) -> None:
        """One branch."""
        self.write(case.body)
        for reg, value in zip(s.results, case.values, strict=True):
            self.line(f"r{reg.number} = {self.expressions.value(value)};")

    # -- carries: each is a C variable; an iteration reads a copy

    def begin(self, carries: Sequence[Carried], values: Sequence[str] | None = None) -> None:
        """Declare variables before a loop, with their initial values."""
        for k, c in enumerate(carries):
            first = self.expressions.value(c.first) if values is None else values[k]
            self.line(f"{TYPES[c.inside.dtype.name]} c{c.inside.number} = {first};")

    def enter(self, carries: Sequence[Carried]) -> None:
        """Read them in an iteration."""
        for c in carries:
            self.set(c.inside, f"c{c.inside.number}")

    def next(self, carries: Sequence[Carried]) -> None:
        """Set them at the end of an iteration; nothing set here is read here."""
        for c in carries:
            if c.following != c.inside:
                self.line(f"c{c.inside.number} = {self.expressions.value(c.following)};")

    def end(self, carries: Sequence[Carried]) -> None:
        """The results after a loop."""
        for c in carries:
            self.set(c.result, f"c{c.inside.number}")

    # -- one loop shared by many work items

    @contextmanager
    def over(self, axes: Sequence[tuple[Reg, DimLike]], start: str, step: str, name: str) -> Iterator[None]:
        """The iterations of nested loops ``start, start + step, ...``, counted in row-major order.

        Args:
            axes: index and extent of each loop, the outermost first.
            start: an expression.
            step: an expression.
            name: name of the counter.
        """
        extents = [self.expressions.factor(extent) for _, extent in axes]
        if len(axes) == 1:
            i = f"r{axes[0][0].number}"
            with self.block(f"for ({INDEX_TYPE} {i} = {start}; {i} < {extents[0]}; {i} += {step})"):
                yield
            return
        total = f"({INDEX_TYPE}){' * '.join(extents)}"
        with self.block(f"for ({INDEX_TYPE} {name} = {start}; {name} < {total}; {name} += {step})"):
            left = name
            for k, (reg, _) in reversed(list(enumerate(axes))):
                if k == 0:
                    self.set(reg, left)
                    break
                outer = f"{name}_{k}"
                self.line(f"const {INDEX_TYPE} {outer} = tf_quotient({left}, {extents[k]});")
                self.set(reg, f"{left} - {outer} * {extents[k]}")
                left = outer
            yield
