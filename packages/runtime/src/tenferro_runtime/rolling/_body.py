"""`GroupBody`: the body of a loop that was found, written from one of its groups."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Final

import numpy as np

from tenferro_runtime.ir._inference import operand_specs
from tenferro_runtime.ir._program import Equation, Literal, Operand
from tenferro_runtime.passes.schedule import extent_in_trace
from tenferro_runtime.rolling._flow import EarlierGroup, Flow, Listing, SameGroup, SameValue, Slot
from tenferro_runtime.rolling._rows import Surroundings
from tenferro_tensor import HOST, Spec, Tensor, catalog, tensor
from tenferro_tensor_core import int64

_INDEX: Final = Spec((), int64, HOST)

_ONCE: Final = frozenset({
    catalog.dot_general, catalog.transpose, catalog.reshape, catalog.slice_, catalog.concatenate, catalog.reverse,
    catalog.reduce_sum, catalog.reduce_max, catalog.reduce_min, catalog.reduce_prod, catalog.broadcast_in_dim,
})  # fmt: skip
"""Primitives that are done once, before the loop, where nothing that they read changes; element-wise ones are, too."""


class CannotRollError(Exception):
    """A loop stays written out."""

    def __init__(self, flow: Flow) -> None:
        super().__init__()
        self.flow = flow


class DelayChain:
    """A value that is handed from group to group, and through `depth` carries one after the other."""

    def __init__(self) -> None:
        self.first: dict[int, Operand] = {}  # by how many groups back
        self.inputs: list[int] = []

    def takes(self, first: dict[int, Operand]) -> bool:
        """Let another reader share the chain, where it begins with the same values."""
        if any(self.first.get(depth, v) != v for depth, v in first.items()):
            return False
        self.first.update(first)
        return True


class GroupBody:
    """A loop while its body is written.

    Args:
        around: the program around it.
        listing: the program in which the loop was found.
        flow: the loop.
    """

    def __init__(self, around: Surroundings, listing: Listing, flow: Flow) -> None:
        self.around, self.listing, self.flow = around, listing, flow
        self.groups = range(flow.first, flow.end)
        self.source = listing.equations[flow.begins].source
        self.specs: dict[int, Spec] = {}
        self.constants: dict[int, Tensor] = {}
        self.equations: list[Equation] = []
        self.fixed: dict[int, int] = {}  # variables around the loop: inputs of the body
        self.chains: dict[tuple[int, int], list[DelayChain]] = {}
        self.slices: list[tuple[Any, int]] = []  # what the loop goes over, and its variable in the body
        self.sliced: dict[Any, int] = {}
        self.results: list[tuple[int, ...]] = []  # of the equations of a group
        self.once: dict[int, int] = {}  # results of equations that are done before the loop
        self.index: int | None = None
        self.numbers: dict[int, int] = {}

    def fresh(self, spec: Spec) -> int:
        """A new variable of the body."""
        v = len(self.specs)
        self.specs[v] = spec
        return v

    def emit(self, op: Any, operands: Sequence[Operand], spec: Spec, source: Any) -> int:
        """A new equation of the body."""
        v = self.fresh(spec)
        self.equations.append(Equation(op, tuple(operands), (v,), source))
        return v

    def outer(self, v: int) -> int:
        """A value from before the loop, in the body."""
        around = self.around
        v = around.stands_for.get(v, v)
        known = self.fixed.get(v)
        if known is None:
            known = self.fixed[v] = self.fresh(around.specs[v])
            if v in around.constants:
                self.constants[known] = around.constants[v]
        return known

    def over(self, values: Any, spec: Spec) -> int:
        """The slice of a group: of an array around the loop, or of values that are put into one."""
        key = tuple(values.tolist() if isinstance(values, np.ndarray) else values)
        known = self.sliced.get((spec, key))
        if known is None:
            known = self.sliced[spec, key] = self.fresh(spec)
            self.slices.append((values, known))
        return known

    def number(self, n: int) -> int:
        """An integer, as a position."""
        known = self.numbers.get(n)
        if known is None:
            known = self.numbers[n] = self.fresh(_INDEX)
            self.constants[known] = tensor(n)
        return known

    def position(self, values: Sequence[int], source: Any) -> int:
        """An integer of each group."""
        step = values[1] - values[0]
        if any(b - a != step for a, b in pairwise(values)):
            return self.over(np.array(values, dtype=np.int64), _INDEX)
        if not step:
            return self.number(values[0])
        if self.index is None:
            self.index = self.over(np.arange(len(values), dtype=np.int64), _INDEX)
        at = self.index
        if step != 1:
            at = self.emit(catalog.mul.op(), (at, Literal(step)), _INDEX, source)
        return at if not values[0] else self.emit(catalog.add.op(), (at, Literal(values[0])), _INDEX, source)

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
                    self.results.append((self._moving(eq, q, operands, specs[0], offsets),))
                    continue
                eq = self.listing.equations[flow.at(flow.first, q)]
            made = tuple([self.fresh(s) for s in specs])
            self.equations.append(Equation(eq.op, tuple(operands), made, eq.source))
            self.results.append(made)

    def _is_once(self, eq: Equation, q: int) -> bool:
        """Do an equation before the loop if all that it reads is from there."""
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
        if p is catalog.broadcast_in_dim:  # nothing is gained by keeping copies of it
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
        """A number of each group."""
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

    def _moving(
        self, eq: Equation, q: int, operands: Sequence[Operand], spec: Spec, offsets: Sequence[tuple[int, ...]]
    ) -> int:
        """A slice, or a pad, that is somewhere else in each group."""
        x, params = operands[0], eq.op.params
        source = self.specs[x]  # type: ignore[index]
        if source.place is not HOST:
            raise CannotRollError(self.flow)
        starts = [self.position([o[axis] for o in offsets], eq.source) for axis in range(source.ndim)]
        if eq.op.primitive is catalog.slice_:
            sizes = []
            for n, m, extent in zip(params["start"], params["limit"], source.shape, strict=True):
                if n.__class__ is not int or not (m.__class__ is int or (n == 0 and m is extent)):
                    raise CannotRollError(self.flow)
                sizes.append(m - n if m.__class__ is int else m)
            block = source.with_(shape=tuple(sizes))
            v = self.emit(catalog.dynamic_slice.op(sizes=block.shape), (x, *starts), block, eq.source)
            if all(n == 1 for n in params["stride"]):
                return v
            op = catalog.slice_.op(start=(0,) * len(sizes), limit=block.shape, stride=params["stride"])
            return self.emit(op, (v,), spec, eq.source)
        if any(params["interior"]) or any(self._crops(self.listing.equations[self.flow.at(g, q)]) for g in self.groups):
            raise CannotRollError(self.flow)
        whole = catalog.broadcast_in_dim.op(shape=spec.shape, dims=())
        filled = self.emit(whole, operands[1:], spec, eq.source)
        return self.emit(catalog.dynamic_update_slice.op(), (filled, x, *starts), spec, eq.source)

    def _crops(self, pad: Equation) -> bool:
        """Whether padding may take elements away; that a size is large enough is a guard: a slice asked for it."""
        examples = self.around.program.examples
        ends = (*pad.op.params["low"], *pad.op.params["high"])
        return any((n if n.__class__ is int else extent_in_trace(n, examples)) < 0 for n in ends)

    def _chains(self) -> None:
        """Make the carries: all of them are known before the first equation."""
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
        """The values from before the loop that an operand is in its first groups, by how many groups back."""
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
