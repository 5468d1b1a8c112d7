"""The law of writing in place, for all tiers.

An equation may write its result into the memory of an operand if this memory is

1. **owned**: an equation of the same program allocated it, the enclosing loop carries it, or the caller donated it.
   This excludes constants, arguments, values that a loop or a branch captures, and memory that third-party code has
   seen;
2. **dead**: no later equation reads the operand or a value that may share its memory, and none of these is an output;
3. **read by nothing beside it**: the equation reads this memory through this operand only. A loop reads it twice if its
   body captures the initial value of a carry, also under a name that a simplification made one with it. Only equations
   that read all operands of an element before they write that element may read the same operand twice.

`may_overwrite` decides; each tier knows the facts in its own way:

- Single steps (`rendering._overwriting`) write through operands that `SharedMemory` shows to be alone in their memory.
  The body of a loop that runs step by step owns the carries that it made itself (`control_flow._in_place`); the loop
  copies the values that it starts from, unless it may overwrite them.
- Loop nests (`lowering._lowering`) know the memory of each value, so that they copy the other values which read it
  before the first store. Their passes decide for single elements (`lowering.passes._reuse_memory`).
- Plans for several devices (`executing._lifetimes`) overwrite nothing, and release together what may share memory.

With ``TENFERRO_CHECKED=1``, memory that may be overwritten is copied first and filled with NaN, so that other readers
show.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Final

from tenferro_runtime.ir._kept import kept
from tenferro_runtime.ir._program import Equation, Program, inner_programs
from tenferro_tensor import REGISTRY, Op, Primitive, catalog
from tenferro_tensor.allocating import allocates

UPDATES: Final = frozenset({catalog.scatter, catalog.dynamic_update_slice, catalog.update_slice})
"""Primitives whose result is their first operand with a part replaced; in place, they write only that part."""

CARRIED: Final[dict[Primitive, Callable[[Op], Mapping[int, int]]]] = {}
"""For loops on the host: the operand whose memory each result may reuse, by position."""

VIEWS_OF_FIRST: Final = frozenset({
    catalog.transpose, catalog.reshape, catalog.broadcast_in_dim, catalog.slice_, catalog.reverse,
    catalog.gather,
})  # fmt: skip
"""Primitives that may return a view of their first operand, and of no other."""


def may_overwrite(eq: Equation, v: int, *, owned: bool, dead: bool, shared: bool) -> bool:
    """Whether an equation may write a result into the memory of an operand.

    Args:
        eq: the equation.
        v: the operand, a variable.
        owned: whether the program owns its memory.
        dead: whether nothing reads this memory after the equation.
        shared: whether another operand of the equation may be in this memory.

    Returns:
        True if the law allows it.
    """
    alone = not shared and (eq.op.primitive.elementwise or eq.operands.count(v) == 1)
    return owned and dead and alone


class SharedMemory:
    """Which variables of a program may share memory, and when the memory of each is read last.

    Args:
        program: a program as its steps run.

    Attributes:
        own: variables whose memory a step of the program allocated for them.
        group: number of the group of each variable; variables of one group may share memory.
        last: position of the last equation that reads the memory of each variable; infinity for outputs.
    """

    def __init__(self, program: Program) -> None:
        self.own = {v for eq in program.equations for v in eq.results if makes(program, eq, v)}
        self.group = _groups(program, self.own)
        self.last = _ends(program, self.own)

    def allows(self, i: int, eq: Equation, v: int, *, owned: bool) -> bool:
        """Whether an equation may overwrite an operand.

        Args:
            i: position of the equation.
            eq: the equation.
            v: the operand.
            owned: whether the program owns the memory of `v` though no step of it allocated it.

        Returns:
            True if the law allows it.
        """
        shared = any(w != v and self.group[w] == self.group[v] for w in eq.variables)
        return may_overwrite(eq, v, owned=owned or v in self.own, dead=self.last[v] == i, shared=shared)


def updated_operands(eq: Equation) -> Mapping[int, int]:
    """Maps each result that updates an operand to the position of that operand."""
    carried = CARRIED.get(eq.op.primitive)
    return {0: 0} if carried is None else carried(eq.op)


def on_host(program: Program, eq: Equation) -> bool:
    """Whether all operands and results of an equation are in main memory."""
    return all(program.specs[v].place.on_host for v in (*eq.variables, *eq.results))


def makes(program: Program, eq: Equation, v: int) -> bool:
    """Whether a step allocates a result, so that nothing aliases it; third-party code may keep what it returns."""
    return not keeps(program, eq) and _allocates(program, eq, v)


def _allocates(program: Program, eq: Equation, v: int) -> bool:
    p = eq.op.primitive
    if p in CARRIED:
        return on_host(program, eq) and eq.results.index(v) in updated_operands(eq)
    return allocates(eq.op)


def _ends(program: Program, own: set[int]) -> dict[int, float]:
    """The last step that reads each variable or an alias of it; infinity for outputs."""
    ends: dict[int, float] = dict.fromkeys(program.output_ids, math.inf)
    for i in range(len(program.equations) - 1, -1, -1):
        eq = program.equations[i]
        looking = [v for v in eq.results if v not in own]
        last = math.inf if keeps(program, eq) else max([ends.get(v, i) for v in looking], default=i)
        seen = eq.variables if last is math.inf else _seen(eq)
        for v in (*seen, *(eq.results if looking else ())):
            ends[v] = max(ends.get(v, i), last)
        for v in eq.variables:
            if v not in seen:
                ends[v] = max(ends.get(v, i), i)
    return ends


def keeps(program: Program, eq: Equation) -> bool:
    """Whether third-party code receives the operands of a step."""
    return any(not p.in_house or REGISTRY.is_replaced(p, kind) for p, kind in _calls(program, eq))


def _calls(program: Program, eq: Equation) -> set[tuple[Primitive, str]]:
    """The primitives that a step and its programs call, and the kinds of devices that run them."""
    kind = program.specs[(*eq.variables, *eq.results)[0]].place.device.kind
    return {(eq.op.primitive, kind)}.union(*map(_all_calls, inner_programs(eq.op.params)))


@kept
def _all_calls(program: Program) -> frozenset[tuple[Primitive, str]]:
    return frozenset[tuple[Primitive, str]]().union(*[_calls(program, eq) for eq in program.equations])


def _seen(eq: Equation) -> tuple[int, ...]:
    """The operands that the results may alias."""
    return eq.variables[:1] if eq.op.primitive in VIEWS_OF_FIRST else eq.variables


def _groups(program: Program, own: set[int]) -> dict[int, int]:
    """The group of each variable; variables that may ever share memory are in one group."""
    parent: dict[int, int] = {v: v for v in program.specs}

    def root(v: int) -> int:
        while parent[v] != v:
            parent[v] = v = parent[parent[v]]
        return v

    for eq in program.equations:
        if any(v not in own for v in eq.results):
            first, *rest = (*_seen(eq), *eq.results)
            for v in rest:
                parent[root(v)] = root(first)
    return {v: root(v) for v in parent}
