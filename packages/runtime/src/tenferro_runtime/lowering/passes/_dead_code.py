"""`dead_code`: removes statements, carries and temporaries that no output needs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace

from tenferro_runtime.lowering.passes._contents import Block, mentioned, reads, registers, sets, with_blocks
from tenferro_tensor.loop_ir import (
    Call,
    For,
    Foreign,
    Let,
    Load,
    LoopFunction,
    Order,
    Position,
    Reg,
    Statement,
    Store,
    Switch,
    While,
    blocks,
    everything,
)


def dead_code(function: LoopFunction) -> LoopFunction:
    """Remove everything that no output needs; kernel calls stay, for their errors.

    Args:
        function: the function.

    Returns:
        The function.
    """
    needs = _Needs([b.number for b in function.outputs])
    needs.collect(function.body, None)
    needs.spread()
    body = tuple(_swept(function.body, needs))
    left = {b.number for s in everything(body) for b in mentioned(s)}
    return replace(
        function,
        body=body,
        constants=tuple([pair for pair in function.constants if pair[0].number in left]),
        temporaries=tuple([b for b in function.temporaries if b.number in left]),
    )


class _Needs:
    """The live registers and buffers, by number, and the live statements, by identity.

    Liveness propagates from stores to outputs and from calls: to the registers that they read and the statements that
    set these, to stores to loaded memory and loops that swap it, and to the enclosing statements of each.
    """

    def __init__(self, outputs: Iterable[int]) -> None:
        self.registers: set[int] = set()
        self.buffers: set[int] = set()
        self.statements: set[int] = set()
        self._outputs = outputs
        self._behind: dict[int, list[Reg]] = {}
        self._setter: dict[int, Statement] = {}
        self._around: dict[int, Statement | None] = {}
        self._changes: dict[int, list[Statement]] = defaultdict(list)
        self._partners: dict[int, set[int]] = defaultdict(set)
        self._open: list[Statement] = []
        self._wanted: list[Reg] = []
        self._buffers: list[int] = []

    def collect(self, statements: Sequence[Statement], around: Statement | None) -> None:
        """Record which statements set and store what."""
        for s in statements:
            self._around[id(s)] = around
            for reg in sets(s):
                self._setter[reg.number] = s
            match s:
                case Let() | Position() | Load():
                    self._behind[s.result.number] = list(reads(s))
                case Store(buffer=buffer):
                    self._changes[buffer.number].append(s)
                case For(carries=carries) | While(carries=carries):
                    for c in carries:
                        self._behind[c.inside.number] = registers([c.first, c.following])
                        self._behind[c.result.number] = [c.inside]
                        self._setter[c.inside.number] = s
                    for a, b in s.swaps:
                        self._partners[a.number].add(b.number)
                        self._partners[b.number].add(a.number)
                        self._changes[a.number].append(s)
                case Switch(results=results, cases=cases):
                    for k, reg in enumerate(results):
                        self._behind[reg.number] = registers([case.values[k] for case in cases])
                case Call() | Foreign():
                    self._open.append(s)
            for body in blocks(s):
                self.collect(body, s)

    def spread(self) -> None:
        """Propagate liveness to a fixed point."""
        self._buffers.extend(self._outputs)
        while self._open or self._wanted or self._buffers:
            if self._buffers:
                self._buffer(self._buffers.pop())
            elif self._wanted:
                self._register(self._wanted.pop())
            else:
                self._statement(self._open.pop())

    def _buffer(self, number: int) -> None:
        if number not in self.buffers:
            self.buffers.add(number)
            self._buffers.extend(self._partners[number])
            self._open.extend(self._changes[number])

    def _register(self, reg: Reg) -> None:
        if reg.number in self.registers:
            return
        self.registers.add(reg.number)
        self._wanted.extend(self._behind.get(reg.number, ()))
        setter = self._setter.get(reg.number)
        if setter is not None:
            self._open.append(setter)

    def _statement(self, s: Statement) -> None:
        if id(s) in self.statements:
            return
        self.statements.add(id(s))
        around = self._around[id(s)]
        if around is not None:
            self._open.append(around)
        match s:
            case Let() | Position() | Store():
                self._wanted.extend(reads(s))
            case Load(buffer=buffer):
                self._wanted.extend(reads(s))
                self._buffers.append(buffer.number)
            case Switch():
                self._wanted.extend(reads(s))
            case While(condition=condition):
                self._wanted.extend(registers((condition,)))
            case Call() | Foreign():
                self._wanted.extend(reads(s))
                self._buffers.extend([b.number for b in mentioned(s)])


def _swept(statements: Sequence[Statement], needs: _Needs) -> Block:
    """The live statements."""
    found: list[Statement] = []
    for s in statements:
        if isinstance(s, Load | Let | Position):
            if s.result.number in needs.registers:
                found.append(s)
        elif id(s) in needs.statements:
            inner = blocks(s)
            found.append(_narrowed(with_blocks(s, [_swept(b, needs) for b in inner]), needs) if inner else s)
    return tuple(found)


def _narrowed(s: Statement, needs: _Needs) -> Statement:
    """A loop or branch without dead results."""
    if isinstance(s, For | While):
        carries = tuple([c for c in s.carries if c.inside.number in needs.registers])
        swaps = tuple([pair for pair in s.swaps if pair[0].number in needs.buffers])
        if carries == s.carries and swaps == s.swaps:
            return s
        if isinstance(s, While):
            return replace(s, carries=carries, swaps=swaps)
        order = Order.ANY if s.order is Order.GROUPED and not carries else s.order
        return replace(s, carries=carries, swaps=swaps, order=order)
    if isinstance(s, Switch):
        kept = [k for k, reg in enumerate(s.results) if reg.number in needs.registers]
        if len(kept) < len(s.results):
            cases = tuple([replace(case, values=tuple([case.values[k] for k in kept])) for case in s.cases])
            return replace(s, results=tuple([s.results[k] for k in kept]), cases=cases)
    return s
