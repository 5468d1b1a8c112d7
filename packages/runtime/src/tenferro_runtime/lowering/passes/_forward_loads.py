"""`forward_loads`: known numbers are neither loaded nor computed again.

A load returns the number that was stored to or loaded from the same address before, and equal formulas are computed
once, within a block and its nested blocks. A store of the number that memory already holds is removed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from tenferro_runtime.lowering.passes._contents import (
    Block,
    changed,
    substituted_place,
    with_blocks,
    with_ends,
    with_values,
)
from tenferro_tensor.loop_ir import INDEX, Affine, Let, Load, Position, Reg, Statement, Store, Value, blocks

MAX_ADDRESSES: Final = 64
"""Largest number of addresses of one buffer whose contents are tracked."""


def forward_loads(statements: Sequence[Statement]) -> Block:
    """Remove loads and formulas whose values are known.

    Args:
        statements: the statements.

    Returns:
        Statements with equal bits and fewer loads.
    """
    return _Forwarding().block(statements)


class _Forwarding:
    """The facts that are known at a point of the function.

    Attributes:
        values: replacement of a register, by number.
        places: replacement of a register that is an index, by number.
        formulas: the register that holds a formula.
        memory: numbers at addresses, by number of the buffer.
    """

    def __init__(self) -> None:
        self.values: dict[int, Value] = {}
        self.places: dict[int, Affine] = {}
        self.formulas: dict[Any, Reg] = {}
        self.memory: dict[int, dict[Affine, Value]] = {}
        self._log: list[tuple[dict[Any, Any], Any]] = []
        self._changes: dict[int, tuple[Statement, frozenset[int]]] = {}

    def block(self, statements: Sequence[Statement]) -> Block:
        """Rewrite the statements of a block; facts from inside are dropped at its end."""
        start, found = len(self._log), []
        for s in statements:
            new = self.one(s)
            if new is not None:
                found.append(new)
        for known, key in self._log[start:]:
            known.pop(key, None)
        del self._log[start:]
        return tuple(found)

    def one(self, s: Statement) -> Statement | None:
        new = with_values(s, self.value, self.place)
        match new:
            case Let(result, op, args):
                return self.formula(result, (op, args), new)
            case Position(result, index):
                if index.constant.__class__ is int and index.constant == 0 and len(index.terms) == 1:
                    reg, by = index.terms[0]
                    if by.__class__ is int and by == 1 and reg.dtype == INDEX:
                        self.values[result.number] = reg
                        return None
                self.places[result.number] = index
                return self.formula(result, index, new)
            case Load(result, buffer, at):
                known = self.memory.setdefault(buffer.number, {})
                if at in known:
                    self.values[result.number] = known[at]
                    return None
                self.learn(known, at, result)
            case Store(buffer, at, value):
                known = self.memory.setdefault(buffer.number, {})
                if known.get(at) == value:
                    return None
                for other in list(known):
                    if len(known) > MAX_ADDRESSES or not _apart(at, other):
                        del known[other]
                self.learn(known, at, value)
            case _:
                return self.compound(new)
        return new

    def compound(self, s: Statement) -> Statement:
        """A statement with bodies, or a call."""
        for number in self.changes(s):
            self.memory.pop(number, None)
        inner = blocks(s)
        return with_ends(with_blocks(s, [self.block(b) for b in inner]), self.value) if inner else s

    def formula(self, result: Reg, key: Any, s: Statement) -> Statement | None:
        known = self.formulas.get(key)
        if known is not None and known.dtype == result.dtype:
            self.values[result.number] = known
            return None
        self.learn(self.formulas, key, result)
        return s

    def learn(self, known: dict[Any, Any], key: Any, value: Any) -> None:
        known[key] = value
        self._log.append((known, key))

    def value(self, v: Value) -> Value:
        return self.values.get(v.number, v) if isinstance(v, Reg) else v

    def place(self, at: Affine) -> Affine:
        at = substituted_place(at, self.values)
        for reg, by in at.terms:
            index = self.places.get(reg.number)
            if index is not None:
                at = at - Affine.of(reg) * by + index * by
        return at

    def changes(self, s: Statement) -> frozenset[int]:
        """Numbers of the buffers that a statement and its bodies change."""
        known = self._changes.get(id(s))
        if known is not None:
            return known[1]
        found = frozenset([b.number for b in changed(s)])
        found = found.union(*[self.changes(t) for body in blocks(s) for t in body])
        self._changes[id(s)] = s, found  # holds the statement, so that its identity stays unique
        return found


def _apart(a: Affine, b: Affine) -> bool:
    """Whether two addresses certainly differ."""
    x, y = a.constant, b.constant
    return a.terms == b.terms and x.__class__ is int and y.__class__ is int and x != y
