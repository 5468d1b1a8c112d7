"""`profile`: the time of each step, and of the steps that it runs: some iterations of a loop, the chosen branch."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from time import perf_counter_ns
from typing import Any, Final

import numpy as np

from tenferro_runtime.costs._bodies import Inside, programs_inside
from tenferro_runtime.costs._memory import MemoryPlan, plan_memory
from tenferro_runtime.inspection._blocks import memory_timeline
from tenferro_runtime.inspection._explain import step_costs
from tenferro_runtime.inspection._running import fitting, steps, store
from tenferro_runtime.ir._interpret import KnownSizes
from tenferro_runtime.ir._program import Equation, Program
from tenferro_runtime.ir._reuse import UPDATES
from tenferro_runtime.ir._sizes import substitute
from tenferro_runtime.lowering import native
from tenferro_runtime.progress import counting
from tenferro_runtime.reports import BodyTime, Profile, StepTime
from tenferro_runtime.running._execute import by_steps, lowered
from tenferro_runtime.running.fusion import wait
from tenferro_runtime.running.rendering._overwriting import overwriting
from tenferro_runtime.running.rendering._steps import plan_of
from tenferro_tensor import Tensor, get_backend, tensor
from tenferro_tensor_core import ArgumentError

WARM_UP_RUNS: Final = 3
"""Warm-up runs, in which plans are made and fused kernels are compiled."""

MEASURED_ITERATIONS: Final = 16
"""Iterations of a loop that are measured step by step; the first is a warm-up unless it is the only one."""

Values = tuple[Tensor, ...]


def profile(program: Program, *values: Any, repeat: int = 10) -> Profile:
    """Run a program step by step and measure each; see `Profile`.

    Args:
        program: the program.
        values: concrete arrays or numbers, in the order of its inputs.
        repeat: number of measured runs, after a warm-up.

    Returns:
        A `Profile`.

    Raises:
        ArgumentError: `repeat` is not positive.
        ProgramError: the values do not fit the program.
    """
    if repeat < 1:
        raise ArgumentError(f"profile measures at least one run, got {repeat=}")
    program, ready = fitting(program, values)
    with np.errstate(all="ignore"):  # values do not matter here
        watch = _Stopwatch(Inside("program", program))
        for _ in range(WARM_UP_RUNS):
            watch.turn(ready)
        wait()  # waits for kernels that are compiled in the background
        watch.restart()
        with counting("profile", repeat) as done:
            for _ in range(repeat):
                watch.turn(ready, inside=False)
                done()
        runs = watch.turns[:]
        watch.turn(ready, inside=True)
        memory = watch.memory()
        ms, timeline = _replayed(program, ready, repeat), memory_timeline(watch.sized(), memory)
        return Profile(watch.times(runs, memory), ms, repeat, native.how(program), timeline, native.memory(program))


def _replayed(program: Program, values: Values, repeat: int) -> float:
    def once() -> int:
        start = perf_counter_ns()
        program.run(*values)
        _wait(program, program.output_ids)
        return perf_counter_ns() - start

    for _ in range(WARM_UP_RUNS):
        once()
    wait()
    return median([once() for _ in range(repeat)]) / 1e6


def _wait(program: Program, results: Sequence[int]) -> None:
    """Wait for accelerators, which run asynchronously, so that each step is charged with its own work."""
    for kind in {program.specs[v].place.device.kind for v in results}:
        get_backend(kind).synchronize()


class _Stopwatch:
    """A program that is measured step by step; updates of arrays that it owns run in place, as in a replay."""

    def __init__(self, inside: Inside) -> None:
        self.inside, self.program = inside, lowered(inside.program)
        self.victims = overwriting(self.program, inside.donated)
        self.bodies: dict[int, tuple[BodyTime, ...]] = {}
        self.restart()

    def restart(self) -> None:
        """Forget all runs."""
        self.turns: list[list[tuple[int, int]]] = []
        self.origin = perf_counter_ns()

    def own(self, values: Values) -> Values:
        """The values, with copies of those that the program overwrites."""
        donated = self.inside.donated
        return tuple(
            [Tensor.wrap(np.array(x._data, order="C"), x.spec) if i in donated else x for i, x in enumerate(values)]
        )

    def turn(self, values: Values, inside: bool | None = None) -> Values:
        """Run the program once; returns its outputs.

        The programs that steps run are measured in the first turn, unless `inside` says so.
        """
        env: dict[int, Any] = {}
        times: list[tuple[int, int]] = []
        self.known = KnownSizes(self.program, {})
        for i, (eq, operands) in enumerate(steps(self.program, values, env, self.known)):
            if inside or (inside is None and not self.turns):
                self.bodies[i] = _times_inside(eq, operands)
            start = perf_counter_ns()
            out = self._run(eq, operands)
            _wait(self.program, eq.results)
            times.append((start - self.origin, perf_counter_ns() - start))
            store(env, eq, out)
        self.turns.append(times)
        return tuple([env[v] for v in self.program.output_ids])

    def _run(self, eq: Equation, operands: Sequence[Any]) -> Any:
        if eq.op.primitive not in UPDATES or eq.results[0] not in self.victims:
            return eq.op(*operands)
        plan = plan_of(eq.op, tuple([x.spec for x in operands]), eq)
        return Tensor.wrap(plan.run(*[x._data for x in operands], operands[0]._data), operands[0].spec)

    def sized(self) -> Program:
        """The program with the data-dependent sizes of the last turn filled in."""
        return substitute(self.program, self.known.sizes) if self.turns and self.known.sizes else self.program

    def memory(self) -> MemoryPlan:
        """The memory of the program."""
        return plan_memory(self.sized(), self.inside.donated)

    def times(self, runs: Sequence[list[tuple[int, int]]], memory: MemoryPlan) -> tuple[StepTime, ...]:
        """The medians of some runs."""
        costs = step_costs(self.sized(), memory)
        each = [median([run[i][1] for run in runs]) / 1e6 if runs else 0.0 for i in range(len(costs))]
        total = sum(each) or 1.0
        return tuple(
            [
                StepTime(c, ms, ms / total, tuple([run[i] for run in runs]), self.bodies.get(i, ()))
                for i, (c, ms) in enumerate(zip(costs, each, strict=True))
            ]
        )

    def report(self, times: int) -> BodyTime:
        """The medians over the iterations so far, without the first if there are others."""
        return BodyTime(self.inside.title, times, self.times(self.turns[1:] or self.turns, self.memory()))


def _times_inside(eq: Equation, operands: Sequence[Any]) -> tuple[BodyTime, ...]:
    """Measure the programs that a step with concrete sizes runs on given operands."""
    inside = programs_inside(eq)
    if not inside:
        return ()
    values, watches = tuple([tensor(x) for x in operands]), [_Stopwatch(each) for each in inside]
    name = eq.op.primitive.name
    if name == "scan":
        return _scan(eq, watches[0], values)
    if name == "while_loop":
        return _while(eq, watches[0], watches[1], values)
    if name == "cond":
        index, *rest = values
        watches, values = [watches[min(max(int(index.item()), 0), len(watches) - 1)]], tuple(rest)
    for _ in range(2):
        watches[0].turn(values)
    return (watches[0].report(1),)


def _scan(eq: Equation, watch: _Stopwatch, values: Values) -> tuple[BodyTime, ...]:
    params, start = eq.op.params, eq.op.params["consts"]
    n, end = params["length"], start + params["carry"]
    carry = watch.own(values)[start:end]
    for i in (range(n - 1, -1, -1) if params["reverse"] else range(n))[:MEASURED_ITERATIONS]:
        carry = watch.turn((*values[:start], *carry, *[x[i] for x in values[end:]]))[: end - start]
    return (watch.report(n),)


def _while(eq: Equation, condition: _Stopwatch, body: _Stopwatch, values: Values) -> tuple[BodyTime, ...]:
    params, consts = eq.op.params, eq.op.params["consts"]
    fixed, carry = values[:consts], body.own(values)[consts:]
    most, count = params["max_steps"], 0
    while count < MEASURED_ITERATIONS and count != most and condition.turn((*fixed, *carry))[0]:
        carry = body.turn((*fixed, *carry))
        count += 1
    if count == MEASURED_ITERATIONS:  # only counted
        goes_on, step = by_steps(params["cond"]), by_steps(params["body"])
        raws, after = tuple([x._data for x in fixed]), tuple([x._data for x in carry])
        while count != most and goes_on(*raws, *after)[0]:
            after = step(*raws, *after)
            count += 1
    return condition.report(count + (count != most)), body.report(count)
