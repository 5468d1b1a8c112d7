"""Residual selection: which values of a step a loop stacks for its derivative, and which it recomputes.

A stacked value is written and read once per step; a recomputed value needs its operands and the work of its equation.
A minimum cut finds the selection of least total cost. Constants of the loop, its slices and loop invariants are
available to the backward pass for free, so indices, masks and conditions computed from them are never stacked.
Equations that only the derivative needs move to the backward pass at no cost.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

from tenferro_ad._min_cut import UNBOUNDED, FlowNetwork
from tenferro_ad._partition import Split
from tenferro_ad._rematerialization import with_moves
from tenferro_ad.control_flow._undo_log import UndoLog, ordered
from tenferro_runtime.extension import Equation, Program
from tenferro_runtime.passes import remove_dead_code
from tenferro_runtime.passes.schedule import VIEWS, weight
from tenferro_runtime.runtime import promised_like
from tenferro_tensor import Primitive
from tenferro_tensor import catalog as c

STACKING_COST: Final = 2.0
"""Fixed cost of stacking a value, in addition to 1 per byte."""

RESTORE_COST_PER_BYTE: Final = 0.1
"""Cost per byte of writing a logged window back."""

VIEW_COST: Final = 0.01
"""Cost of a view, and of saving one."""

FLOAT_STEP_COST: Final = 4.0
"""Fixed cost of recomputing a floating-point value; recomputing indices is free in address arithmetic."""

SIMPLE: Final = frozenset(
    {
        c.add, c.sub, c.mul, c.neg, c.abs, c.sign, c.maximum, c.minimum, c.clamp, c.select, c.convert, c.conj, c.real,
        c.imag, c.complex, c.absorbing_mul, c.copysign, c.floor, c.ceil, c.trunc, c.round, c.stop_gradient, c.eq, c.ne,
        c.lt, c.le, c.gt, c.ge, c.is_finite, c.is_inf, c.is_nan, c.signbit, c.bitwise_and, c.bitwise_or, c.bitwise_xor,
        c.bitwise_not, c.shift_left, c.shift_right,
    }
)  # fmt: skip
"""Elementwise primitives of one or two instructions."""

COST_PER_ELEMENT: Final[dict[Primitive, float]] = {
    **dict.fromkeys(SIMPLE, 0.5),
    **dict.fromkeys((c.gather, c.dynamic_slice, c.concatenate, c.pad, c.iota), 1.0),
    **dict.fromkeys((c.div, c.sqrt, c.floor_divide, c.remainder), 2.0),
}
"""Cost per element of the result, by primitive; other elementwise primitives cost `FUNCTION_COST_PER_ELEMENT`."""

FUNCTION_COST_PER_ELEMENT: Final = 12.0
"""Cost per element of a transcendental function."""

MOVABLE: Final = frozenset({c.reduce_sum, c.reduce_max, c.reduce_min, c.reduce_all, c.reduce_any, c.dot_general})
"""Primitives too expensive to recompute, which move to the backward pass if nothing else needs them."""


def selected(
    split: Split, count: int, there: Collection[int], stacked: Collection[int] = (), logs: Sequence[UndoLog] = ()
) -> tuple[Split, tuple[UndoLog, ...]]:
    """The two parts of a step or a branch with the cheapest set of residuals.

    Args:
        split: the parts, with every captured value as a residual.
        count: number of outputs of the program.
        there: variables of the first part that the second can read for free.
        stacked: variables that are stacked in any case.
        logs: the undo logs of carries, whose windows the first part computes.

    Returns:
        The parts, and the logs of the carries that the second part restores: the last version of each is one of its
        residuals, the first version an additional output.
    """
    second = split.seconds.get(split.active)
    if second is None:
        return split, ()
    first = split.first
    old = first.output_ids[count:]
    again, used = _ResidualSelector(first, count, there, stacked, logs).recomputed(old)
    restores = [eq for log in used for eq in log.restores]
    ends, starts = [log.versions[-1] for log in used], [log.versions[0] for log in used]
    restored = {*ends, *[eq.results[0] for eq in restores]}
    moves = ordered([eq for eq in first.equations if eq.results and eq.results[0] in again - restored], restores)
    kept = list(dict.fromkeys([v for v in old if v not in again] + ends))
    made = again | restored | set(first.constants)
    read = {u for eq in moves for u in eq.variables} | set(starts)
    kept += sorted(u for u in read if u not in made and u not in kept)
    at = {v: i for i, v in enumerate(kept)}
    program, taken = with_moves(second.program, second.residuals, old, moves, at, first, starts)
    lighter = promised_like(remove_dead_code(first.with_(output_ids=(*first.output_ids[:count], *kept))), first)
    seconds = {split.active: second._replace(program=program, residuals=taken)}
    return split._replace(first=lighter, seconds=seconds), used


class _ResidualSelector:
    """The flow network whose minimum cut is the selection.

    Each value that the backward pass reads has two nodes, "available" and "recomputed". The edge between them has the
    cost of stacking, the edge from the second to the sink the cost of the work, and unbounded edges lead from
    "recomputed" to the operands' "available". A log is one more node, required by recomputing any version of its carry.
    """

    def __init__(
        self, first: Program, count: int, there: Collection[int], stacked: Collection[int], logs: Sequence[UndoLog]
    ) -> None:
        self.program, self.stacked, self.logs = first, stacked, logs
        self.there = {*there, *first.constants}
        self.made = {v: eq for eq in first.equations for v in eq.results}
        self.outputs = _ancestors(self.made, first.output_ids[:count])
        # Inputs of the restoring equations must not depend on restored values.
        versions = {v for log in logs for v in log.versions}
        self.fixed = {v for log in logs for v in log.logs}
        self.fixed |= {v for log in logs for v in log.indices if versions & _ancestors(self.made, (v,))}
        self.log_of = {v: log for log in logs for v in self._restorable(log)}

    def recomputed(self, residuals: Collection[int]) -> tuple[set[int], tuple[UndoLog, ...]]:
        """The values to recompute, and the logs of the carries to restore."""
        network = FlowNetwork()
        nodes: dict[int, int] = {}
        again: dict[int, int] = {}
        undone: dict[int, int] = {}
        waiting: list[int] = []

        def require(node: int, variables: Iterable[int]) -> None:
            for v in variables:
                if v not in self.there:
                    if v not in nodes:
                        nodes[v] = network.node()
                        waiting.append(v)
                    network.edge(node, nodes[v], UNBOUNDED)

        require(0, dict.fromkeys(residuals))
        while waiting:
            v = waiting.pop()
            log = self.log_of.get(v)
            work = VIEW_COST if log is not None else self._work(v)
            if work is None:
                network.edge(nodes[v], 1, self._storage(v))
                continue
            again[v] = network.node()
            network.edge(nodes[v], again[v], self._storage(v))
            network.edge(again[v], 1, work)
            if log is None:
                require(again[v], self.made[v].variables)
                continue
            if log.carry not in undone:
                undone[log.carry] = network.node()
                windows = [STACKING_COST + RESTORE_COST_PER_BYTE * self._bytes(u) for u in log.logs]
                network.edge(undone[log.carry], 1, VIEW_COST + sum(windows))
                require(undone[log.carry], (*log.logs, *log.indices))
            network.edge(again[v], undone[log.carry], UNBOUNDED)
        side = network.source_side()
        used = tuple([log for log in self.logs if undone.get(log.carry) in side])
        return {v for v, node in again.items() if node in side}, used

    def _restorable(self, log: UndoLog) -> tuple[int, ...]:
        """The versions of a carry that follow from its last version; only the last one if the carry is stacked."""
        if log.restores or len(log.versions) == 1:
            return log.versions
        end = log.versions[-1]
        work = self._work(end)
        return (end,) if work is None or work > self._storage(end) else ()

    def _bytes(self, v: int) -> int:
        return weight(self.program.specs[v], self.program.examples)

    def _storage(self, v: int) -> float:
        return VIEW_COST if v in self.stacked else STACKING_COST + self._bytes(v)

    def _work(self, v: int) -> float | None:
        """The cost of recomputing a value; ``None`` if it must be stacked."""
        eq = self.made.get(v)
        if eq is None or len(eq.results) != 1 or v in self.fixed:
            return None
        p, spec = eq.op.primitive, self.program.specs[v]
        if p in VIEWS:
            return VIEW_COST
        if not p.elementwise and p not in COST_PER_ELEMENT and p not in MOVABLE:
            return None
        if v not in self.outputs:
            return VIEW_COST
        if p in MOVABLE:
            return None
        start = FLOAT_STEP_COST if spec.inexact else VIEW_COST
        return start + self._bytes(v) // spec.dtype.itemsize * COST_PER_ELEMENT.get(p, FUNCTION_COST_PER_ELEMENT)


def _ancestors(made: Mapping[int, Equation], ends: Collection[int]) -> set[int]:
    """The ancestors of variables, including the variables themselves."""
    found, waiting = set(ends), list(ends)
    while waiting:
        eq = made.get(waiting.pop())
        for u in eq.variables if eq is not None else ():
            if u not in found:
                found.add(u)
                waiting.append(u)
    return found
