"""The times of the steps that a step runs: some iterations of a loop, the chosen branch, a called program."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from time import perf_counter_ns
from typing import Any, Final

import numpy as np

from tenferro_runtime.costs._memory import plan_memory
from tenferro_runtime.inspection._bodies import Inside, programs_inside
from tenferro_runtime.inspection._explain import step_costs
from tenferro_runtime.inspection._running import steps, store
from tenferro_runtime.ir._program import Equation, Program
from tenferro_runtime.ir._reuse import UPDATES
from tenferro_runtime.rendering._overwriting import overwriting
from tenferro_runtime.rendering._steps import plan_of
from tenferro_runtime.reports import BodyTime, StepTime
from tenferro_runtime.running._execute import by_steps, lowered
from tenferro_tensor import Tensor, tensor

MEASURED_ITERATIONS: Final = 16
"""Iterations of a loop that are measured step by step; the first is a warm-up unless it is the only one."""

Values = tuple[Tensor, ...]


def times_inside(eq: Equation, operands: Sequence[Any]) -> tuple[BodyTime, ...]:
    """Measure the programs that a step runs on given operands.

    Args:
        eq: the step, with concrete sizes.
        operands: its operands, as arrays or numbers.
    """
    inside = programs_inside(eq)
    if not inside:
        return ()
    values = tuple([tensor(x) for x in operands])
    name = eq.op.primitive.name
    if name == "scan":
        return _scan(eq, inside[0], values)
    if name == "while_loop":
        return _while(eq, inside, values)
    if name == "cond":
        index, *rest = values
        chosen = inside[min(max(int(index.item()), 0), len(inside) - 1)]
        return (_Watched(chosen).report(1, [tuple(rest)]),)
    return (_Watched(inside[0]).report(1, [values]),)


def _scan(eq: Equation, inside: Inside, values: Values) -> tuple[BodyTime, ...]:
    params, start = eq.op.params, eq.op.params["consts"]
    n, end = params["length"], start + params["carry"]
    watched = _Watched(inside)
    carry = watched.own(values)[start:end]
    for i in (range(n - 1, -1, -1) if params["reverse"] else range(n))[:MEASURED_ITERATIONS]:
        carry = watched.turn((*values[:start], *carry, *[x[i] for x in values[end:]]))[: end - start]
    return (watched.report(n),)


def _while(eq: Equation, inside: tuple[Inside, ...], values: Values) -> tuple[BodyTime, ...]:
    params, consts = eq.op.params, eq.op.params["consts"]
    condition, body = _Watched(inside[0]), _Watched(inside[1])
    fixed, carry = values[:consts], body.own(values)[consts:]
    most, count = params["max_steps"], 0
    while count < MEASURED_ITERATIONS and count != most and condition.turn((*fixed, *carry))[0]:
        carry = body.turn((*fixed, *carry))
        count += 1
    asked = count + (count != most)
    if count == MEASURED_ITERATIONS:  # only counted
        goes_on, step = by_steps(params["cond"]), by_steps(params["body"])
        raws, after = tuple([x._data for x in fixed]), tuple([x._data for x in carry])
        while count != most and goes_on(*raws, *after)[0]:
            after = step(*raws, *after)
            count += 1
        asked = count + (count != most)
    return condition.report(asked), body.report(count)


class _Watched:
    """A program that a step runs, measured step by step.

    Updates of arrays that the loop owns run in place, as in the loop itself.
    """

    def __init__(self, inside: Inside) -> None:
        self.inside = inside
        self.program: Program = lowered(inside.program)
        self.victims = overwriting(self.program, inside.donated)
        self.turns: list[list[tuple[int, int]]] = []
        self.bodies: dict[int, tuple[BodyTime, ...]] = {}

    def own(self, values: Values) -> Values:
        """The values, with copies of those that the program overwrites."""
        return tuple(
            [
                Tensor.wrap(np.array(x._data, order="C"), x.spec) if i in self.inside.donated else x
                for i, x in enumerate(values)
            ]
        )

    def turn(self, values: Values) -> Values:
        """Run the program once; returns its outputs."""
        env: dict[int, Any] = {}
        times = []
        for i, (eq, operands) in enumerate(steps(self.program, values, env)):
            if not self.turns:
                self.bodies[i] = times_inside(eq, operands)
            start = perf_counter_ns()
            out = self._run(eq, operands)
            times.append((start, perf_counter_ns() - start))
            store(env, eq, out)
        self.turns.append(times)
        return tuple([env[v] for v in self.program.output_ids])

    def _run(self, eq: Equation, operands: Sequence[Any]) -> Any:
        if eq.op.primitive not in UPDATES or eq.results[0] not in self.victims:
            return eq.op(*operands)
        plan = plan_of(eq.op, tuple([x.spec for x in operands]), eq)
        return Tensor.wrap(plan.run(*[x._data for x in operands], operands[0]._data), operands[0].spec)

    def report(self, times: int, runs: Sequence[Values] = ()) -> BodyTime:
        """The medians over the iterations so far, and over some more on the same values."""
        for values in runs:
            self.turn(values)
            self.turn(values)
        measured = self.turns[1:] or self.turns
        costs = step_costs(self.program, plan_memory(self.program, self.inside.donated))
        each = [median([turn[i][1] for turn in measured]) / 1e6 if measured else 0.0 for i in range(len(costs))]
        total = sum(each) or 1.0
        found = [
            StepTime(c, ms, ms / total, tuple([turn[i] for turn in measured]), self.bodies.get(i, ()))
            for i, (c, ms) in enumerate(zip(costs, each, strict=True))
        ]
        return BodyTime(self.inside.title, times, tuple(found))
