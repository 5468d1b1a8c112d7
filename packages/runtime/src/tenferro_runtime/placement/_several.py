"""Which programs run by a plan, and how.

A program whose kernels all run on one device is straight-line code. Others have a plan for each combination of sizes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from math import prod
from typing import Any

from tenferro_runtime.ir._call import instance
from tenferro_runtime.ir._data_sizes import definitions
from tenferro_runtime.ir._effects import effects_of
from tenferro_runtime.ir._moves import moves_of
from tenferro_runtime.ir._placement import stays
from tenferro_runtime.ir._program import Program, ProgramError
from tenferro_runtime.placement._cost import CostModel
from tenferro_runtime.placement._executor import Executor, within
from tenferro_runtime.placement._machine import PROCESS, reaches
from tenferro_runtime.placement._placement import place
from tenferro_runtime.placement._plan import ExecutionPlan, plan_of
from tenferro_runtime.placement._verify import verify
from tenferro_runtime.placement._work import devices_of, work_of
from tenferro_runtime.running._execute import lowered
from tenferro_runtime.running.rendering._render import render
from tenferro_runtime.runtime import current_runtime, how_of, promised_like
from tenferro_tensor import HOST, ComputeDevice, device_runtime, get_backend
from tenferro_tensor.dispatch import scoped_device
from tenferro_tensor.transfers import require_allowed
from tenferro_tensor_core import BackendUnavailableError

Run = Callable[..., tuple[Any, ...]]


def planned(program: Program) -> Callable[[tuple[Any, ...]], Run] | None:
    """The function that prepares a program by a plan for given sizes.

    Args:
        program: the program.

    Returns:
        The function, or ``None`` if the program runs as straight-line code.
    """
    if how_of(program).placement is not None and scoped_device() is None and not _one_by_one(program):
        return partial(_placed, program)
    return partial(_planned, program) if several(program) else None


def _one_by_one(program: Program) -> bool:
    """Whether the steps must run one after the other, because sizes depend on data or effects have an order."""
    return bool(definitions(program)) or len(effects_of(program)) > 1


def _planned(program: Program, sizes: tuple[Any, ...]) -> Run:
    concrete = sized(program, sizes)
    return _running(concrete, plan(concrete))


def _placed(program: Program, sizes: tuple[Any, ...]) -> Run:
    """As `_planned`, with steps placed by a cost model; placed again when the open pools change."""
    concrete = sized(program, sizes)
    known: dict[Sequence[ComputeDevice], Run] = {}

    def run(*raws: Any) -> tuple[Any, ...]:
        pools = get_backend("cpu").devices()
        found = known.get(pools)
        if found is None:
            known.clear()
            found = known[pools] = _running(concrete, plan(concrete))
        return found(*raws)

    return run


def _running(program: Program, made: ExecutionPlan) -> Run:
    pooled = _pooled(program)
    straight: Run = pooled(render(program, "raw"))
    if len(made.queues) == 1:
        return straight
    executor, moves = Executor(made, PROCESS, pooled), moves_of(program)

    def run(*raws: Any) -> tuple[Any, ...]:
        if within():  # pools may be waiting for this thread
            return straight(*raws)
        require_allowed(moves, " by this program, before any of its steps ran")
        return executor.run(*raws)

    return run


def several(program: Program) -> bool:
    """Whether a program runs by a plan; cached for each device of a scope."""
    key = ("several", scoped_device())
    found: bool | None = program.memo.get(key)
    if found is None:
        # Kernels for data-dependent sizes need these sizes in one thread.
        low = lowered(program)
        moving = [d for eq, d in zip(low.equations, devices_of(low), strict=True) if not stays(low, eq)]
        found = not _one_by_one(program) and _meet(moving)
        program.memo[key] = found
    return found


def sized(program: Program, sizes: tuple[Any, ...]) -> Program:
    """The program as it runs, with numbers for its symbolic sizes."""
    low = lowered(program)
    return promised_like(instance(low, sizes) if sizes else low, program)


def plan_for(program: Program) -> ExecutionPlan:
    """The plan of a program without symbolic sizes, even if it would run as straight-line code.

    Args:
        program: the program.

    Returns:
        The plan.

    Raises:
        ProgramError: sizes depend on data.
    """
    if definitions(program):
        raise ProgramError(
            "a plan was requested, but sizes of the program depend on data, so that it has none: its steps run one "
            "after the other; look at them with program(...) or explain(...)"
        )
    return plan(sized(program, ()))


def plan(program: Program) -> ExecutionPlan:
    """The plan of a program without symbolic sizes, after fusion and, if requested, placement."""
    devices, placement = devices_of(program), None
    model = how_of(program).placement
    if model is not None:
        usual = CostModel() if model == "auto" else model
        placement = place(program, devices, get_backend("cpu").devices(), usual)
        devices = placement.devices
    made = replace(plan_of(work_of(program, devices), reaches), placement=placement)
    return verify(made) if current_runtime().check else made


def _meet(devices: Sequence[ComputeDevice]) -> bool:
    """Whether work on these devices has more than one queue, and all devices are available."""
    distinct = {*devices}
    if len(distinct) < 2:
        return False
    if any(get_backend(d.kind).compiler(d) for d in distinct):
        return False  # a library with its own queues
    try:
        for kind in {d.kind for d in distinct} - {HOST.device.kind}:
            device_runtime(kind)
    except BackendUnavailableError:  # a backend without streams: its kernels complete before they return
        return False
    return True


def _pooled(program: Program) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The scope in which the CPU backend runs steps of the calling thread; threads of pools are always inside it."""
    specs = [program.specs[v] for eq in program.equations for v in eq.results]
    sizes: list[Any] = [s.dtype.itemsize * prod(s.shape) for s in specs if s.place.on_host]
    return lambda part: get_backend("cpu").replayed(part, max(sizes, default=0), HOST.device)
