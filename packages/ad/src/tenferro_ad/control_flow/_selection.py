"""Which values of a step a loop stacks for its derivative, and which of them the way back computes again.

Two costs compete: a stacked value is written and read once per step, a recomputed one needs its operands and the work
of its equation. The choice with the least sum is a minimum cut. Constants of the loop, its slices and what is the same
in all steps are there on the way back, so indices, masks and conditions made of them are never stacked. Equations that
only the derivative needs cost nothing more where they move to the way back.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from tenferro_ad._min_cut import UNBOUNDED, FlowNetwork
from tenferro_ad._partition import Split
from tenferro_ad._thinning import with_moves
from tenferro_ad.control_flow._undoing import CarryChain, ordered
from tenferro_runtime.extension import Equation, Program
from tenferro_runtime.passes import remove_dead_code
from tenferro_runtime.passes.schedule import VIEWS, extent_in_trace, weight
from tenferro_runtime.runtime import promised_like
from tenferro_tensor import Primitive
from tenferro_tensor import catalog as c
from tenferro_tensor_core import Dim

STORE: Final = 2.0
"""Cost of stacking a value, beside one for each of its bytes."""

MOVE: Final = 0.1
"""Cost of writing a byte of a stacked value to the place that it came from."""

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


def selected(
    split: Split, count: int, there: Collection[int], stacked: Collection[int] = (), chains: Sequence[CarryChain] = ()
) -> tuple[Split, tuple[CarryChain, ...]]:
    """The two parts of a step or a branch with the residuals that cost least.

    Args:
        split: the parts with all that the second one lifted.
        count: number of outputs of the program.
        there: variables of the first part that the second one has without stacking them.
        stacked: variables that are stacked in any case.
        chains: the carries that the second part may restore, with equations of the first part that make this possible.

    Returns:
        The parts, and the chains that the second one goes back: the last version of each is among its residuals, the
        first one an additional output.
    """
    second = split.seconds.get(split.active)
    if second is None:
        return split, ()
    first = split.first
    old = first.output_ids[count:]
    again, used = _StackedValues(first, count, there, stacked, chains).recomputed(old)
    restores = [eq for chain in used for eq in chain.restores]
    restored = {v for chain in used for v in (*chain.versions[-1:], *[eq.results[0] for eq in chain.restores])}
    moves = ordered([eq for eq in first.equations if eq.results and eq.results[0] in again - restored], restores)
    ends = [chain.versions[-1] for chain in used]
    starts = [chain.versions[0] for chain in used]
    kept = list(dict.fromkeys([v for v in old if v not in again] + ends))
    made = again | restored | set(first.constants)
    read = {u for eq in moves for u in eq.variables} | set(starts)
    kept += sorted(u for u in read if u not in made and u not in kept)
    at = {v: i for i, v in enumerate(kept)}
    program, taken = with_moves(second.program, second.residuals, old, moves, at, first, starts)
    lighter = promised_like(remove_dead_code(first.with_(output_ids=(*first.output_ids[:count], *kept))), first)
    seconds = {split.active: second._replace(program=program, residuals=taken)}
    return split._replace(first=lighter, seconds=seconds), used


class _StackedValues:
    """The network whose minimum cut is the choice.

    A value that the way back reads is stacked or recomputed: two nodes, "it is there" and "it is recomputed". The edge
    between them costs what stacking costs, the one from the second to the sink costs the work; recomputing leads to
    all operands being there. A chain is one more node, to which recomputing any of its versions leads.
    """

    def __init__(
        self,
        first: Program,
        count: int,
        there: Collection[int],
        stacked: Collection[int],
        chains: Sequence[CarryChain],
    ) -> None:
        self.program, self.there, self.stacked = first, there, stacked
        self.made = {v: eq for eq in first.equations for v in eq.results}
        self.outputs = _ancestors(self.made, first.output_ids[:count])
        self.chains = chains
        # What restoring reads must not depend on what is restored.
        versions = {v for chain in chains for v in chain.versions}
        self.fixed = {v for chain in chains for v in chain.logs}
        self.fixed |= {v for chain in chains for v in chain.indices if versions & _ancestors(self.made, (v,))}
        self.chain_of = {v: chain for chain in chains for v in self._restorable(chain)}

    def recomputed(self, residuals: Collection[int]) -> tuple[set[int], tuple[CarryChain, ...]]:
        """The values that are computed again, and the chains that are gone back."""
        network = FlowNetwork()
        nodes: dict[int, int] = {}
        again: dict[int, int] = {}
        undone: dict[int, int] = {}
        waiting: list[int] = []

        def there(v: int) -> int:
            if v not in nodes:
                nodes[v] = network.node()
                waiting.append(v)
            return nodes[v]

        for v in dict.fromkeys(residuals):
            if not self._is_there(v):
                network.edge(0, there(v), UNBOUNDED)
        while waiting:
            v = waiting.pop()
            chain = self.chain_of.get(v)
            work = VIEW if chain is not None else self._work(v)
            if work is None:
                network.edge(nodes[v], 1, self._storage(v))
                continue
            again[v] = network.node()
            network.edge(nodes[v], again[v], self._storage(v))
            network.edge(again[v], 1, work)
            if chain is None:
                for u in self.made[v].variables:
                    if not self._is_there(u):
                        network.edge(again[v], there(u), UNBOUNDED)
                continue
            if chain.carry not in undone:
                undone[chain.carry] = network.node()
                network.edge(undone[chain.carry], 1, self._way_back(chain))
                for u in (*chain.logs, *chain.indices):
                    if not self._is_there(u):
                        network.edge(undone[chain.carry], there(u), UNBOUNDED)
            network.edge(again[v], undone[chain.carry], UNBOUNDED)
        side = network.source_side()
        used = tuple([chain for chain in self.chains if undone.get(chain.carry) in side])
        return {v for v, node in again.items() if node in side}, used

    def _restorable(self, chain: CarryChain) -> tuple[int, ...]:
        """The versions of a carry that come from its last one; where the carry is stacked, that one alone."""
        if chain.restores or len(chain.versions) == 1:
            return chain.versions
        end = chain.versions[-1]
        work = self._work(end)
        return (end,) if work is None or work > self._storage(end) else ()

    def _way_back(self, chain: CarryChain) -> float:
        """What restoring a carry costs beside stacking what it reads."""
        return VIEW + sum([STORE + MOVE * weight(self.program.specs[v], self.program.examples) for v in chain.logs])

    def _is_there(self, v: int) -> bool:
        return v in self.program.constants or v in self.there

    def _storage(self, v: int) -> float:
        if v in self.stacked:
            return VIEW
        return STORE + weight(self.program.specs[v], self.program.examples)

    def _work(self, v: int) -> float | None:
        """What computing a value again costs; ``None`` if it has to be stacked."""
        eq = self.made.get(v)
        if eq is None or len(eq.results) != 1 or v in self.fixed:
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
