"""A program as work for a plan: its kernels and their devices."""

from __future__ import annotations

from collections.abc import Sequence

from tenferro_runtime.ir._program import Equation, Program
from tenferro_runtime.ir._reuse import makes
from tenferro_runtime.placement._tasks import Task, Work
from tenferro_runtime.running.rendering._steps import aliases, raw_steps
from tenferro_tensor import ComputeDevice, catalog
from tenferro_tensor.entries import device_of


def devices_of(program: Program) -> tuple[ComputeDevice, ...]:
    """The device of each equation: where it runs; for a transfer, where the result is used.

    The choice is that of a single operation: by the places of operands and the scope of the caller.
    """
    return tuple([_device(program, eq) for eq in program.equations])


def _device(program: Program, eq: Equation) -> ComputeDevice:
    if eq.op.primitive is catalog.transfer or not eq.variables:  # metadata name the place
        return program.specs[eq.results[0]].place.device
    return device_of(eq.op, [program.specs[v] for v in eq.variables])


def work_of(program: Program, devices: Sequence[ComputeDevice]) -> Work:
    """The work of a program without symbolic sizes, as it runs.

    Args:
        program: the program, after fusion.
        devices: the device of each equation.
    """
    steps, alias = aliases(raw_steps(program))
    where = {eq.results: device for eq, device in zip(program.equations, devices, strict=True)}
    tasks = []
    for step in steps:
        if not step.results:  # nothing to compute; plans log transfers themselves
            continue
        eq = step.equation
        run = None if eq.op.primitive is catalog.transfer else step.function
        views = not all(makes(program, eq, v) for v in eq.results)
        tasks.append(Task(run, step.operands, step.results, step.many, where[eq.results], eq, views))
    outputs = tuple([alias.get(v, v) for v in program.output_ids])
    constants = {v: c._data for v, c in program.constants.items()}
    return Work(program.input_ids, constants, tuple(tasks), outputs, program.specs)
