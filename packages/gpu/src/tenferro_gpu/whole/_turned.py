"""`turned`: loops in order around parallel ones, turned inside out.

Sums over leading axes are written for caches: ``for i: for j parallel: y[j] += x[i, j]``. A GPU runs all `j` at once,
each of them along `i`, and keeps its element of `y` in a register.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tenferro_gpu.rendering import chain
from tenferro_tensor.device_model import Literal
from tenferro_tensor.loop_ir import (
    Affine,
    Buffer,
    Carried,
    For,
    Load,
    LoopFunction,
    Order,
    Reg,
    Statement,
    Store,
    accumulates,
    everything,
    reads,
    registers,
    touches,
)


def turned(function: LoopFunction) -> LoopFunction:
    """The function with such loops turned; sums may be in groups then."""
    regs = [reg.number for s in everything(function.body) for reg in registers(s)]
    turner = _Turner(max(regs, default=-1) + 1)
    return replace(function, body=turner.block(function.body))


class _Turner:
    """Turns loops, with new registers from a number on."""

    def __init__(self, free: int) -> None:
        self.free = free

    def _new(self, like: Reg) -> Reg:
        self.free += 1
        return Reg(self.free - 1, like.dtype)

    def block(self, statements: Sequence[Statement]) -> tuple[Statement, ...]:
        """Statements in order; where a sum starts from a number that is stored before, it starts in the register."""
        found: list[Statement] = []
        for s in statements:
            s = self.statement(s)
            if found:
                started = _started(found[-1], s)
                if started is not None:
                    found.pop()
                    s = started
            found.append(s)
        return tuple(found)

    def statement(self, s: Statement) -> Statement:
        """A statement with the loops inside of it turned, and itself where it can be."""
        if not isinstance(s, For) or s.order is not Order.GIVEN:
            return s
        s = replace(s, body=self.block(s.body))
        if s.carries or s.swaps or len(s.body) != 1:
            return s
        (nest,) = s.body
        if not isinstance(nest, For) or nest.order is not Order.ANY or nest.carries:
            return s
        axes, inner = chain(nest)
        if not _is_free(inner.body, s.index):
            return s
        found: Sequence[Statement] = self._in_registers(s, inner.body)
        for index, extent in reversed(axes):
            found = [For(index, extent, tuple(found), (), Order.ANY)]
        return found[0]

    def _in_registers(self, loop: For, body: tuple[Statement, ...]) -> list[Statement]:
        """The loop over a body, its elements of written buffers loaded before it and stored after it."""
        carries, before, after, left = [], [], [], list(body)
        for buffer, at in _elements(body):
            load = next((s for s in left if isinstance(s, Load) and s.buffer == buffer), None)
            stores = [s for s in left if isinstance(s, Store) and s.buffer == buffer]
            mentioned = [t for t in touches(body) if t.buffer == buffer]
            if load is None or len(stores) != 1 or len(mentioned) != 2 or left.index(stores[0]) < left.index(load):
                continue
            first, result = self._new(load.result), self._new(load.result)
            before.append(Load(first, buffer, at))
            after.append(Store(buffer, at, result))
            carries.append(Carried(load.result, first, stores[0].value, result))
            left = [s for s in left if s is not load and s is not stores[0]]
        grouped = bool(carries) and all(accumulates(c, left) for c in carries)
        grouped = grouped and not any(isinstance(s, Store) for s in everything(left))
        order = Order.GROUPED if grouped else Order.GIVEN
        return [*before, replace(loop, body=tuple(left), carries=tuple(carries), order=order), *after]


def _is_free(body: Sequence[Statement], index: Reg) -> bool:
    """Whether every iteration of the parallel loops touches the same element of each written buffer in all iterations
    of the loop around them, and no other one does."""
    places: dict[int, set[Affine]] = {}
    written: set[int] = set()
    for t in touches(body):
        places.setdefault(t.buffer.number, set()).add(t.at)
        if t.writes:
            written.add(t.buffer.number)
    varying = {reg.number for s in everything(body) for reg in registers(s)} | {index.number}
    return all(
        len(places[n]) == 1 and not any(reg.number in varying for at in places[n] for reg, _ in at.terms)
        for n in written
    )


def _elements(body: Sequence[Statement]) -> list[tuple[Buffer, Affine]]:
    found = {s.buffer.number: (s.buffer, s.at) for s in body if isinstance(s, Store)}
    return list(found.values())


def _started(fill: Statement, nest: Statement) -> Statement | None:
    """A nest that loads its elements first, with the number that another nest has just stored in them."""
    if not (isinstance(fill, For) and isinstance(nest, For) and fill.order is nest.order is Order.ANY):
        return None
    (axes, stores), (other, inner) = chain(fill), chain(nest)
    match stores.body, inner.body:
        case (Store(buffer, at, Literal() as value),), (Load(result, loaded, place), *rest, Store(written, last, _)):
            pass
        case _:
            return None
    extents = [n for _, n in axes] == [n for _, n in other]
    renamed = Affine(at.constant)
    for reg, by in at.terms:
        k = next((k for k, (index, _) in enumerate(axes) if index == reg), None)
        if k is None or not extents:
            return None
        renamed += Affine.of(other[k][0]) * by
    used = [t for t in touches(inner.body) if t.buffer == buffer]
    if not (loaded == written == buffer and place == last == renamed) or len(used) != 2:
        return None
    body: tuple[Statement, ...] = (*[_replaced(s, result, value) for s in rest], inner.body[-1])
    if any(reg == result for s in everything(body) for reg in reads(s)):
        return None
    for index, extent in reversed(other):
        body = (For(index, extent, body, (), Order.ANY),)
    return body[0]


def _replaced(s: Statement, reg: Reg, value: Literal) -> Statement:
    """A loop with a number in the place of a register from which a carry starts."""
    if not isinstance(s, For):
        return s
    return replace(s, carries=tuple([replace(c, first=value) if c.first == reg else c for c in s.carries]))
