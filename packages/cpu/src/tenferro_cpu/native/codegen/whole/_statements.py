"""`Writer`: statements of `LoopIR` as instructions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from tenferro_cpu.native.codegen.builder import Int, Phis, Pointer, Vec
from tenferro_cpu.native.codegen.operations._value import Value
from tenferro_cpu.native.codegen.whole._calls import write_call, write_foreign
from tenferro_cpu.native.codegen.whole._checks import Checks
from tenferro_cpu.native.codegen.whole._frame import Frame
from tenferro_cpu.native.codegen.whole._functions import applied
from tenferro_cpu.native.codegen.whole._polls import write_poll
from tenferro_cpu.native.codegen.whole._values import head, joined, load, names, parts, store
from tenferro_cpu.native.codegen.whole._work import nested
from tenferro_tensor.loop_ir import (
    Call,
    For,
    Foreign,
    Let,
    Literal,
    Load,
    Position,
    Statement,
    Store,
    Switch,
    While,
)


class Writer(Frame):
    """A `Frame` that statements are written to.

    Attributes:
        polls: whether loops poll.
        checks: comparisons of accesses with the extents of buffers, in checked code.
    """

    polls = True
    checks: Checks | None = None

    def write(self, statements: Sequence[Statement]) -> None:
        """Write statements in order."""
        for statement in statements:
            getattr(self, _WRITE[statement.__class__])(statement)

    def let(self, s: Let) -> None:
        operands = [a if isinstance(a, Literal) else a.dtype for a in s.args]
        args = [self.value(a) for a in s.args]
        self.registers[s.result.number] = applied(self.block, s.op, operands, s.result.dtype, args)

    def position(self, s: Position) -> None:
        self.registers[s.result.number] = Vec(self.block, "i64", (self.number(s.index).name,))

    def load(self, s: Load) -> None:
        self.registers[s.result.number] = load(self.block, s.buffer.dtype, *self._element(s))

    def store(self, s: Store) -> None:
        store(self.block, s.buffer.dtype, *self._element(s), self.value(s.value))

    def _element(self, s: Load | Store) -> tuple[Pointer, Int]:
        if self.checks is not None:
            return self.checks.element(self, s)
        return self.pointer(s.buffer), self.place(s.at)

    def call(self, s: Call) -> None:
        if self.checks is not None:
            self.checks.views(self, s)
        self.calls.append(s)
        write_call(self, s, len(self.calls) - 1)

    def foreign(self, s: Foreign) -> None:
        if self.checks is not None:
            self.checks.views(self, s)
        write_foreign(self, s)

    def switch(self, s: Switch) -> None:
        b, last = self.block, len(s.cases) - 1
        index, before = self.index(s.index), dict(self.pointers)
        for word, bound in (("smax", 0), ("smin", last)):
            index = Int(b, b.raw(f"call i64 @llvm.{word}.i64(i64 {index.name}, i64 {bound})"))
        labels = [b.new_label("case") for _ in s.cases]
        join = b.new_label("join")
        ways = " ".join([f"i64 {k}, label %{label}" for k, label in enumerate(labels[:-1])])
        b.do(f"switch i64 {index.name}, label %{labels[-1]} [ {ways} ]")
        ends: list[tuple[str, list[Value], dict[int, Pointer]]] = []
        for case, label in zip(s.cases, labels, strict=True):
            self.pointers = dict(before)
            b.begin(label)
            self.write(case.body)
            ends.append((b.label, [self.value(v) for v in case.values], self.pointers))
            b.jump(join)
        b.begin(join)
        for k, result in enumerate(s.results):
            columns = zip(*[parts(values[k]) for _, values, _ in ends], strict=True)
            merged = [Vec(b, way[0].kind, (self._merged(way[0].types[0], ends, way),)) for way in columns]
            self.registers[result.number] = joined(merged)
        self.pointers = before
        for number in before:
            pointers = [found[number] for _, _, found in ends]
            same = len({p.name for p in pointers}) == 1
            before[number] = pointers[0] if same else Pointer(b, self._merged("ptr", ends, pointers))

    def _merged(self, llvm: str, ends: Sequence[tuple[str, Any, Any]], values: Sequence[Any]) -> str:
        ways = [f"[ {value.names[0]}, %{label} ]" for value, (label, _, _) in zip(values, ends, strict=True)]
        return self.block.raw(f"phi {llvm} {', '.join(ways)}")

    def for_(self, s: For) -> None:
        self.count(s, Int(self.block, "0"), self.size(s.extent))

    def count(self, s: For, start: Int, end: Int) -> None:
        """The iterations of a counted loop from `start` below `end`."""

        def more(index: Int, after: str) -> str:
            return (index < end).name

        self._loop(s, start, more)

    def stepped(self, start: Int, end: Int, step: Int, body: Callable[[Int], None]) -> None:
        """`body` for start, start + step, ... below `end`."""
        b = self.block
        head, inside, after = (b.new_label(word) for word in ("step", "within", "stepped"))
        phis = Phis(b, b.label)
        b.jump(head)
        b.begin(head)
        index = phis.head(start)
        b.branch((index < end).name, inside, after)
        b.begin(inside)
        body(index)
        phis.close([index.plus(step).name], b.label)
        b.jump(head)
        b.begin(after)

    def while_(self, s: While) -> None:
        b = self.block

        def more(index: Int, after: str) -> str:
            if s.most is not None:
                within = b.new_label("within")
                b.branch((index < self.size(s.most)).name, within, after)
                b.begin(within)
            self.write(s.test)
            condition = self.value(s.condition)
            assert isinstance(condition, Vec)
            return condition.names[0]

        self._loop(s, Int(b, "0"), more)

    def _loop(self, s: For | While, start: Int, more: Callable[[Int, str], str]) -> None:
        b = self.block
        label, inside, after = (b.new_label(word) for word in ("loop", "turn", "done"))
        first = [self.value(c.first) for c in s.carries]
        traded = sorted(swapped(s))
        phis = Phis(b, b.label)
        b.jump(label)
        b.begin(label)
        index = phis.head(start)
        heads = [head(phis, value) for value in first]
        for number in traded:
            self.pointers[number] = phis.head(self.pointers[number])
        at_head = {number: self.pointers[number] for number in traded}
        self.registers[s.index.number] = Vec(b, "i64", (index.name,))
        for c, value in zip(s.carries, heads, strict=True):
            self.registers[c.inside.number] = value
        b.branch(more(index, after), inside, after)
        b.begin(inside)
        self.write(s.body)
        following = [self.value(c.following) for c in s.carries]
        for x, y in s.swaps:
            self.pointers[x.number], self.pointers[y.number] = self.pointers[y.number], self.pointers[x.number]
        if self.polls:
            write_poll(self, s, index)
        kept = [self.pointers[number].name for number in traded]
        phis.close([index.plus(1).name, *names(following), *kept], b.label)
        b.jump(label)
        b.begin(after)
        self.pointers |= at_head
        for c, value in zip(s.carries, heads, strict=True):
            self.registers[c.result.number] = value


def swapped(statement: Statement) -> set[int]:
    """Numbers of the buffers that exchange their memory in a statement or inside it."""
    found = set()
    if isinstance(statement, For | While):
        found = {buffer.number for pair in statement.swaps for buffer in pair}
    for inner in nested(statement):
        found |= swapped(inner)
    return found


_WRITE: Final[dict[type, str]] = {
    Let: "let",
    Position: "position",
    Load: "load",
    Store: "store",
    For: "for_",
    While: "while_",
    Switch: "switch",
    Call: "call",
    Foreign: "foreign",
}
