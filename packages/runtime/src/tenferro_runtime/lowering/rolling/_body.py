"""`GroupBody`: writes the body of a rolled loop from one of its groups."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from tenferro_runtime.ir._inference import operand_specs
from tenferro_runtime.ir._program import Equation, Literal, Operand
from tenferro_runtime.lowering.rolling._equations import BodyWriter
from tenferro_runtime.lowering.rolling._flow import EarlierGroup, Flow, Listing, SameGroup, SameValue, Slot
from tenferro_runtime.lowering.rolling._moving import moving
from tenferro_runtime.lowering.rolling._row_values import Surroundings
from tenferro_tensor import HOST, catalog

_ONCE: Final = frozenset({
    catalog.dot_general, catalog.transpose, catalog.reshape, catalog.slice_, catalog.concatenate, catalog.reverse,
    catalog.reduce_sum, catalog.reduce_max, catalog.reduce_min, catalog.reduce_prod, catalog.broadcast_in_dim,
})  # fmt: skip
"""Primitives hoisted out of the loop if their operands are invariant, in addition to element-wise ones."""


class CannotRollError(Exception):
    """A loop cannot be rolled."""

    def __init__(self, flow: Flow) -> None:
        super().__init__()
        self.flow = flow


class DelayChain:
    """A value that is passed from group to group through `depth` consecutive carries."""

    def __init__(self) -> None:
        self.first: dict[int, Operand] = {}  # values of the first groups, by distance
        self.inputs: list[int] = []

    def takes(self, first: dict[int, Operand]) -> bool:
        """Let another reader share the chain if it starts with the same values."""
        if any(self.first.get(depth, v) != v for depth, v in first.items()):
            return False
        self.first.update(first)
        return True


class GroupBody(BodyWriter):
    """The body of a loop while it is written.

    Args:
        around: the enclosing program.
        listing: the program in which the loop was found.
        flow: the loop.
    """

    def __init__(self, around: Surroundings, listing: Listing, flow: Flow) -> None:
        super().__init__(around)
        self.listing, self.flow = listing, flow
        self.groups = range(flow.first, flow.end)
        self.source = listing.equations[flow.begins].source
        self.chains: dict[tuple[int, int], list[DelayChain]] = {}
        self.results: list[tuple[int, ...]] = []  # variables of the results of a group's equations
        self.once: dict[int, int] = {}  # results of hoisted equations

    def result(self, equation: int, place: int) -> int:
        """A result of an equation of the group."""
        made = self.results[equation]
        if not made:
            made = self.results[equation] = (self.outer(self.once[equation]),)
        return made[place]

    def write(self) -> None:
        """Write the equations of a group."""
        flow, middle = self.flow, (self.flow.first + self.flow.end) // 2
        self._chains()
        for q, slots in enumerate(flow.slots):
            eq = self.listing.equations[flow.at(middle, q)]
            if self._is_once(eq, q):
                continue
            operands = [self._operand(eq, q, k, slot) for k, slot in enumerate(slots)]
            specs = [self.listing.program.specs[v] for v in eq.results]
            if q in flow.offsets:
                offsets = flow.offsets[q][flow.first : flow.end]
                if any(o != offsets[0] for o in offsets):
                    groups = [self.listing.equations[flow.at(g, q)] for g in self.groups]
                    v = moving(self, groups, operands, specs[0], offsets)
                    if v is None:
                        raise CannotRollError(flow)
                    self.results.append((v,))
                    continue
                eq = self.listing.equations[flow.at(flow.first, q)]
            made = tuple([self.fresh(s) for s in specs])
            self.equations.append(Equation(eq.op, tuple(operands), made, eq.source))
            self.results.append(made)

    def _is_once(self, eq: Equation, q: int) -> bool:
        """Hoist an equation out of the loop if all its operands are invariant."""
        flow, p = self.flow, eq.op.primitive
        if q in flow.offsets or not (p.elementwise or p in _ONCE) or eq.op.symbolic:
            return False
        operands: list[Operand] = []
        for slot in flow.slots[q]:
            if isinstance(slot, SameValue):
                v = slot.operand
                operands.append(self.around.value(v, eq.source) if v.__class__ is int else v)
            elif isinstance(slot, SameGroup) and slot.equation in self.once:
                operands.append(self.once[slot.equation])
            else:
                return False
        spec = self.listing.program.specs[eq.results[0]]
        v = self.around.emit(eq.op, operands, spec, eq.source)
        self.once[q] = v
        if p is catalog.broadcast_in_dim:  # a copy would gain nothing
            inner = [self.outer(u) if u.__class__ is int else u for u in operands]
            self.results.append((self.emit(eq.op, inner, spec, eq.source),))
        else:
            self.results.append(())
        return True

    def _operand(self, eq: Equation, q: int, k: int, slot: Slot) -> Operand:
        if isinstance(slot, SameGroup):
            return self.result(slot.equation, slot.result)
        if isinstance(slot, EarlierGroup):
            return self._carried(slot, q, k)
        if isinstance(slot, SameValue):
            v = slot.operand
            return self.outer(v) if v.__class__ is int else v
        values: list[Any] = slot.operands[self.flow.first : self.flow.end]
        if isinstance(values[0], Literal):
            return self._literals(eq, k, values)
        if all(v == values[0] for v in values):
            return self.outer(values[0])
        return self.over(values, self.listing.program.specs[values[0]])

    def _literals(self, eq: Equation, k: int, values: Sequence[Any]) -> Operand:
        """The literal of an operand: the same in all groups, or one number for each."""
        if all(v == values[0] for v in values):
            return values[0]  # type: ignore[no-any-return]
        specs = self.listing.program.specs
        seen = tuple([v.value.__class__ if isinstance(v, Literal) else specs[v] for v in eq.operands])
        spec = operand_specs(eq.op, seen)[k]
        kind = spec.dtype.kind
        if eq.op.primitive is catalog.pow or kind not in "iuf" or spec.place is not HOST:
            raise CannotRollError(self.flow)
        one = spec.with_(shape=())
        try:
            numbers = np.array([v.value for v in values], dtype=spec.dtype)
        except OverflowError:
            raise CannotRollError(self.flow) from None
        v = self.over(numbers, one)
        if not spec.shape:
            return v
        return self.emit(catalog.broadcast_in_dim.op(shape=spec.shape, dims=()), (v,), spec, eq.source)

    def _chains(self) -> None:
        """Create the carries before the first equation."""
        flow = self.flow
        for q, slots in enumerate(flow.slots):
            for k, slot in enumerate(slots):
                if not isinstance(slot, EarlierGroup):
                    continue
                first = self._first(slot, q, k)
                chains = self.chains.setdefault((slot.equation, slot.result), [])
                if not any(chain.takes(first) for chain in chains):
                    chains.append(DelayChain())
                    chains[-1].takes(first)
        for chains in self.chains.values():
            for chain in chains:
                spec = self.listing.program.specs[chain.first[1]]  # type: ignore[index]
                chain.inputs = [self.fresh(spec) for _ in range(max(chain.first))]

    def _first(self, slot: EarlierGroup, q: int, k: int) -> dict[int, Operand]:
        """The values from before the loop that an operand has in the first groups, by distance in groups."""
        flow, depth = self.flow, slot.depth
        if depth >= len(self.groups):
            raise CannotRollError(flow)
        return {depth - t: self.listing.equations[flow.at(flow.first + t, q)].operands[k] for t in range(depth)}

    def _carried(self, slot: EarlierGroup, q: int, k: int) -> int:
        first = self._first(slot, q, k)
        for chain in self.chains[slot.equation, slot.result]:
            if all(chain.first.get(depth) == v for depth, v in first.items()):
                return chain.inputs[slot.depth - 1]
        raise AssertionError("all carries have been made")
