"""`profile`: measures the time of each step."""

from __future__ import annotations

from statistics import median
from time import perf_counter_ns
from typing import Any, Final

import numpy as np

from tenferro_runtime import whole
from tenferro_runtime.costs._memory import plan_memory
from tenferro_runtime.fusion import wait
from tenferro_runtime.inspection._blocks import memory_timeline
from tenferro_runtime.inspection._explain import step_costs
from tenferro_runtime.inspection._inside import times_inside
from tenferro_runtime.inspection._running import fitting, steps, store
from tenferro_runtime.ir._interpret import Known
from tenferro_runtime.ir._program import Program
from tenferro_runtime.ir._sizes import substitute
from tenferro_runtime.progress import counting
from tenferro_runtime.reports import BodyTime, Profile, StepTime
from tenferro_runtime.running._execute import lowered
from tenferro_tensor import Tensor, get_backend
from tenferro_tensor_core import ArgumentError

WARM_UP_RUNS: Final = 3
"""Warm-up runs, in which plans are made and fused kernels are compiled."""


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
        return _measured(program, ready, repeat)


def _measured(program: Program, ready: tuple[Tensor, ...], repeat: int) -> Profile:
    whole_program, program = program, lowered(program)
    for _ in range(WARM_UP_RUNS):
        known = Known(program, {})
        _timed(program, ready, 0, known)
    _bodies(program, ready)
    wait()  # waits for kernels that are compiled in the background
    origin = perf_counter_ns()
    with counting("profile", repeat) as done:
        runs = []
        for _ in range(repeat):
            runs.append(_timed(program, ready, origin))
            done()
    sized = substitute(program, known.sizes) if known.sizes else program
    memory = plan_memory(sized)
    costs = step_costs(sized, memory)
    each = [median([run[i][1] for run in runs]) / 1e6 for i in range(len(costs))]
    total = sum(each) or 1.0
    bodies = _bodies(program, ready)
    times = [
        StepTime(c, ms, ms / total, tuple([run[i] for run in runs]), bodies[i])
        for i, (c, ms) in enumerate(zip(costs, each, strict=True))
    ]
    ms = _replayed(whole_program, ready, repeat)
    timeline = memory_timeline(sized, memory)
    return Profile(tuple(times), ms, repeat, whole.how(whole_program), timeline, whole.memory(whole_program))


def _timed(
    program: Program, values: tuple[Tensor, ...], origin: int, known: Known | None = None
) -> list[tuple[int, int]]:
    found = []
    env: dict[int, Any] = {}
    for eq, operands in steps(program, values, env, known):
        start = perf_counter_ns()
        out = eq.op(*operands)
        _wait(program, eq.results)
        stop = perf_counter_ns()
        store(env, eq, out)
        found.append((start - origin, stop - start))
    return found


def _bodies(program: Program, values: tuple[Tensor, ...]) -> list[tuple[BodyTime, ...]]:
    """The times of the programs that each step runs."""
    found = []
    env: dict[int, Any] = {}
    for eq, operands in steps(program, values, env):
        found.append(times_inside(eq, operands))
        store(env, eq, eq.op(*operands))
    return found


def _replayed(program: Program, values: tuple[Tensor, ...], repeat: int) -> float:
    def once() -> int:
        start = perf_counter_ns()
        program.run(*values)
        _wait(program, program.output_ids)
        return perf_counter_ns() - start

    for _ in range(WARM_UP_RUNS):
        once()
    wait()
    return median([once() for _ in range(repeat)]) / 1e6


def _wait(program: Program, results: tuple[int, ...]) -> None:
    """Wait for accelerators, which run asynchronously, so that each step is charged with its own work."""
    for kind in {program.specs[v].place.device.kind for v in results}:
        get_backend(kind).synchronize()
