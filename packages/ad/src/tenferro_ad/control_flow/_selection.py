"""Which values of a step a loop stacks for its derivative, and which of them the way back computes again.

Two costs compete: a stacked value is written and read once per step, a recomputed one needs its operands and the work
of its equation. The choice with the least sum is a minimum cut. Constants of the loop, its slices and what is the same
in all steps are there on the way back, so indices, masks and conditions made of them are never stacked. Equations that
only the derivative needs cost nothing more where they move to the way back.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from tenferro_ad._min_cut import UNBOUNDED, FlowNetwork
from tenferro_ad._partition import Split
from tenferro_ad._thinning import with_moves
from tenferro_runtime.extension import Equation, Program
from tenferro_runtime.passes import remove_dead_code
from tenferro_runtime.passes.schedule import VIEWS, extent_in_trace, weight
from tenferro_runtime.runtime import promised_like
from tenferro_tensor import Primitive
from tenferro_tensor import catalog as c
from tenferro_tensor_core import Dim

STORE: Final = 2.0
"""Cost of stacking a value, beside one for each of its bytes."""

VIEW: Final = 0.01
"""Cost of a view, and of keeping one."""

LATENCY: Final = 4.0
"""Cost of starting a step of floating point numbers; indices are part of what addresses cost anyway."""

SIMPLE: Final = frozenset(
    {
        c.add, c.sub, c.mul, c.neg, c.abs, c.sign, c.maximum, c.minimum, c.clamp, c.select, c.convert, c.conj, c.real,
        c.imag, c.complex, c.absorbing_mul, c.copysign, c.floor, c.ceil, c.trunc, c.round, c.stop_gradient, c.eq, c.ne,
        c.lt, c.le, c.gt, c.ge, c.is_finite, c.is_inf, c.is_nan, c.signbit, c.bitwise_and, c.bitwise_or, c.bitwise_xor,
        c.bitwise_not, c.shift_left, c.shift_right,
    }
)  # fmt: skip
"""Element-wise primitives of an instruction or two."""

PER_ELEMENT: Final[dict[Primitive, float]] = {
    **dict.fromkeys(SIMPLE, 0.5),
    **dict.fromkeys((c.gather, c.dynamic_slice, c.concatenate, c.pad, c.iota), 1.0),
    **dict.fromkeys((c.div, c.sqrt, c.floor_divide, c.remainder), 2.0),
}
"""Cost of an element of the result; of element-wise primitives that are not here, `FUNCTION`."""

FUNCTION: Final = 12.0
"""Cost of an element of a transcendental function."""

MOVABLE: Final = frozenset({c.reduce_sum, c.reduce_max, c.reduce_min, c.reduce_all, c.reduce_any, c.dot_general})
"""Primitives that are not worth repeating, but move to the way back where nothing else needs them."""


def selected(split: Split, count: int, there: Collection[int], stacked: Collection[int] = ()) -> Split:
    """The two parts of a step or a branch with the residuals that cost least.

    Args:
        split: the parts with all that the second one lifted.
        count: number of outputs of the program.
        there: variables of the first part that the second one has without stacking them.
        stacked: variables that are stacked in any case.
    """
    second = split.seconds.get(split.active)
    if second is None:
        return split
    first = split.first
    old = first.output_ids[count:]
    again = _Selection(first, count, there, stacked).recomputed(old)
    moves = [eq for eq in first.equations if eq.results and eq.results[0] in again]
    read = {u for eq in moves for u in eq.variables}
    kept = [v for v in dict.fromkeys(old) if v not in again]
    kept += sorted(u for u in read if u not in again and u not in first.constants and u not in kept)
    at = {v: i for i, v in enumerate(kept)}
    program, taken = with_moves(second.program, second.residuals, old, moves, at, first)
    lighter = promised_like(remove_dead_code(first.with_(output_ids=(*first.output_ids[:count], *kept))), first)
    return split._replace(first=lighter, seconds={split.active: second._replace(program=program, residuals=taken)})


class _Selection:
    """The network whose minimum cut is the choice.

    A value that the way back reads is stacked or recomputed: two nodes, "it is there" and "it is recomputed". The edge
    between them costs what stacking costs, the one from the second to the sink costs the work; recomputing leads to
    all operands being there.
    """

    def __init__(self, first: Program, count: int, there: Collection[int], stacked: Collection[int]) -> None:
        self.program, self.there, self.stacked = first, there, stacked
        self.made = {v: eq for eq in first.equations for v in eq.results}
        self.outputs = _ancestors(self.made, first.output_ids[:count])

    def recomputed(self, residuals: Collection[int]) -> set[int]:
        """The values that are computed again."""
        network = FlowNetwork()
        nodes: dict[int, int] = {}
        again: dict[int, int] = {}
        waiting = [v for v in dict.fromkeys(residuals) if not self._is_there(v)]
        for v in waiting:
            nodes[v] = network.node()
            network.edge(0, nodes[v], UNBOUNDED)
        while waiting:
            v = waiting.pop()
            work = self._work(v)
            if work is None:
                network.edge(nodes[v], 1, self._storage(v))
                continue
            again[v] = network.node()
            network.edge(nodes[v], again[v], self._storage(v))
            network.edge(again[v], 1, work)
            for u in self.made[v].variables:
                if self._is_there(u):
                    continue
                if u not in nodes:
                    nodes[u] = network.node()
                    waiting.append(u)
                network.edge(again[v], nodes[u], UNBOUNDED)
        side = network.source_side()
        return {v for v, node in again.items() if node in side}

    def _is_there(self, v: int) -> bool:
        return v in self.program.constants or v in self.there

    def _storage(self, v: int) -> float:
        if v in self.stacked:
            return VIEW
        return STORE + weight(self.program.specs[v], self.program.examples)

    def _work(self, v: int) -> float | None:
        """What computing a value again costs; ``None`` if it has to be stacked."""
        eq = self.made.get(v)
        if eq is None or len(eq.results) != 1:
            return None
        p, elements = eq.op.primitive, self._elements(v)
        if p in VIEWS:
            return VIEW
        if not p.elementwise and p not in PER_ELEMENT and p not in MOVABLE:
            return None
        if v not in self.outputs:
            return VIEW
        if p in MOVABLE:
            return None
        start = LATENCY if self.program.specs[v].inexact else VIEW
        return start + elements * PER_ELEMENT.get(p, FUNCTION)

    def _elements(self, v: int) -> int:
        n, examples = 1, self.program.examples
        for d in self.program.specs[v].shape:
            n *= extent_in_trace(d, examples) if isinstance(d, Dim) else d
        return n


def _ancestors(made: Mapping[int, Equation], ends: Collection[int]) -> set[int]:
    """The variables that others depend on, themselves included."""
    found, waiting = set(ends), list(ends)
    while waiting:
        eq = made.get(waiting.pop())
        for u in eq.variables if eq is not None else ():
            if u not in found:
                found.add(u)
                waiting.append(u)
    return found
