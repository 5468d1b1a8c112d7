"""`turned`: interchanges sequential loops with the parallel loops inside them.

``for t: for j parallel: c[j] = f(c[j], x[t, j])``, the usual form of a recurrence on arrays, takes a kernel for each
`t`. A GPU runs all `j` at once, each of them along `t`, with its element of `c` in a register.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tenferro_gpu.rendering import Axes, chain
from tenferro_tensor.loop_ir import (
    Bounds,
    Carried,
    For,
    Load,
    LoopFunction,
    Order,
    Reg,
    Statement,
    Store,
    accumulates,
    dependent,
    everything,
    registers,
    touches,
)


def turned(function: LoopFunction) -> LoopFunction:
    """The function with such loops interchanged; sums may then be in groups."""
    turner = _Turner(function)
    return replace(function, body=tuple([turner.statement(s) for s in function.body]))


class _Turner:
    """Interchanges loops of a function."""

    def __init__(self, function: LoopFunction) -> None:
        self.bounds = Bounds.of(everything(function.body))
        self.free = max([reg.number for s in everything(function.body) for reg in registers(s)], default=-1) + 1

    def statement(self, s: Statement) -> Statement:
        """A statement with its inner loops interchanged, and itself if possible."""
        if not isinstance(s, For) or s.order is not Order.GIVEN:
            return s
        s = replace(s, body=tuple([self.statement(t) for t in s.body]))
        if s.carries or len(s.body) != 1:
            return s
        (nest,) = s.body
        if not isinstance(nest, For) or nest.order is not Order.ANY:
            return s
        axes, inner = chain(nest)
        body = self._in_registers(s, inner.body)
        found = None if body is None else _nested(axes, body)
        return s if found is None or self._depends(found) else found

    def _depends(self, s: Statement) -> bool:
        """Whether iterations of the outer loops of a nest depend on each other."""
        while isinstance(s, For) and s.order is Order.ANY:
            if dependent(s, self.bounds) is not None:
                return True
            s = s.body[0]
        return False

    def _in_registers(self, loop: For, body: Sequence[Statement]) -> list[Statement] | None:
        """The loop over a body, with its elements of buffers loaded before it and stored after it; None if it swaps
        buffers, whose iterations read elements of each other.
        """
        if loop.swaps:
            return None
        inside = {reg.number for s in everything(body) for reg in registers(s)} | {loop.index.number}
        carries, before, after, left = [], [], [], list(body)
        for store in [s for s in body if isinstance(s, Store)]:
            buffer, at = store.buffer, store.at
            load = next((s for s in body if isinstance(s, Load) and s.buffer == buffer), None)
            used = [t for t in touches(body) if t.buffer == buffer]
            own = load is not None and load.at == at and not any(reg.number in inside for reg, _ in at.terms)
            if load is None or not own or len(used) != 2 or body.index(store) < body.index(load):
                continue
            first, result = self._new(load.result), self._new(load.result)
            before.append(Load(first, buffer, at))
            after.append(Store(buffer, at, result))
            carries.append(Carried(load.result, first, store.value, result))
            left = [s for s in left if s is not load and s is not store]
        grouped = bool(carries) and all(accumulates(c, left) for c in carries)
        grouped = grouped and not any(isinstance(s, Store) for s in everything(left))
        order = Order.GROUPED if grouped else Order.GIVEN
        turned = replace(loop, body=tuple(left), carries=tuple(carries), order=order)
        return [*before, turned, *after]

    def _new(self, like: Reg) -> Reg:
        self.free += 1
        return Reg(self.free - 1, like.dtype)


def _nested(axes: Axes, body: Sequence[Statement]) -> Statement:
    for index, extent in reversed(axes):
        body = [For(index, extent, tuple(body), (), Order.ANY)]
    return body[0]
