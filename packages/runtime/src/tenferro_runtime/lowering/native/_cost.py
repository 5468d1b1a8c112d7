"""Rough estimates of the time to run a program step by step and of the time to compile it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

from tenferro_runtime.control_flow.primitives import cond, scan, while_loop
from tenferro_runtime.ir._call import ProgramPrimitive
from tenferro_runtime.ir._kept import kept
from tenferro_runtime.ir._program import Equation, Program, inner_programs
from tenferro_runtime.ir._sizes import filled, named
from tenferro_runtime.passes.schedule import VIEWS
from tenferro_tensor import REGISTRY
from tenferro_tensor_core import evaluate

STEP_NS: Final = 2000
"""Overhead of one step."""

WAIT_MIN_NS: Final = 20_000_000
"""A program that takes longer than this step by step is compiled before its first run."""

COMPILER_NS: Final = 50_000_000
EQUATION_NS: Final = 300_000
"""Time of the compiler: a constant, and per equation."""

CONTROL: Final = frozenset({scan, while_loop, cond})


@kept
def gains(program: Program) -> bool:
    """Whether a program gains as one native function: every program of more than one step does.

    A single step gains if it holds programs, or if its family has a lowering.
    """
    working = [eq for eq in program.equations if eq.op.primitive not in VIEWS]
    return len(working) > 1 or any(_is_several(eq) for eq in working)


def _is_several(eq: Equation) -> bool:
    p = eq.op.primitive
    return p in CONTROL or REGISTRY.find("loops", p) is not None or any(map(gains, inside(eq)))


def has_loops(program: Program) -> bool:
    """Whether a program, or a nested one, has loops or branches."""
    return any(eq.op.primitive in CONTROL or any(map(has_loops, inside(eq))) for eq in program.equations)


def inside(eq: Equation) -> tuple[Program, ...]:
    """The programs in the metadata of an equation."""
    return tuple(inner_programs(eq.op.params))


def is_worth_waiting(program: Program, sizes: Mapping[str, int]) -> bool:
    """Whether one run step by step takes long, and longer than compiling the program."""
    by_steps = STEP_NS * _steps(program, sizes)
    return by_steps > WAIT_MIN_NS and by_steps > COMPILER_NS + EQUATION_NS * _equations(program)


def _equations(program: Program) -> int:
    return sum([1 + sum(map(_equations, inside(eq))) for eq in program.equations])


def _steps(program: Program, sizes: Mapping[str, int]) -> float:
    return sum([_steps_of(eq, sizes) for eq in program.equations])


def _steps_of(eq: Equation, sizes: Mapping[str, int]) -> float:
    params, programs = eq.op.params, inside(eq)
    if isinstance(eq.op.primitive, ProgramPrimitive) and params["sizes"]:
        (program,) = programs
        return _steps(program, named(program, filled(params["sizes"], sizes)))  # type: ignore[arg-type]
    each = [_steps(p, sizes) for p in programs]
    if eq.op.primitive is scan:
        return 1 + each[0] * _number(params["length"], sizes)
    if eq.op.primitive is while_loop:
        most = params["max_steps"]
        return 1 + sum(each) * (math.inf if most is None else _number(most, sizes))
    return 1 + max(each, default=0)


def _number(size: object, sizes: Mapping[str, int]) -> int:
    """A number of steps; 1 if it depends on data."""
    try:
        return evaluate(size, sizes)  # type: ignore[arg-type]
    except KeyError:
        return 1
