"""The memory budget of a loop: whether the residuals of all steps fit into it, and else how many states."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from tenferro_ad.control_flow._loop import Loop
from tenferro_ad.control_flow._loop_parts import ForwardPart
from tenferro_runtime.extension import Program
from tenferro_runtime.ir import inner_programs
from tenferro_runtime.passes.schedule import peak_estimate, weight
from tenferro_tensor import Spec
from tenferro_tensor_core import DimLike, InconclusiveDimError, decide, dim_max, dim_min

MIN_SLOTS: Final = 2
"""Minimum number of stored states, whatever the budget: with one, the work would be quadratic in the steps."""

MAX_SLOTS: Final = 2**20
"""Maximum number of stored states of a loop with an unknown number of steps."""

DEFAULT_BUDGET: Final = 2**26
"""Default memory budget of such a loop, in bytes."""

DEFAULT_SLOTS: Final = 2**12
"""Maximum number of stored states under the default budget; small, for the sake of nested loops."""

RANK_BYTES: Final = 16
"""Bytes per slot in addition to its state: step number and rank."""


def slots_within(forward: ForwardPart, loop: Loop, memory_budget: int | None, *, copied: bool) -> DimLike | None:
    """The number of slots for states that fit into the budget, after the workspace of a backward step.

    Args:
        forward: the first part of a step.
        loop: the loop.
        memory_budget: number of bytes, or ``None`` for the default.
        copied: whether forward and backward pass run separately, each with its own memory for states.

    Returns:
        The number; ``None`` if the residuals of all steps of a `scan` fit into the budget, so that it needs no states.
    """
    budget = DEFAULT_BUDGET if memory_budget is None else memory_budget
    body, states = loop.body, loop.body.outputs[: loop.carry]
    held = sum([weight(s, body.examples) for s in (*states, *body.inputs[: loop.consts])])
    parts = [forward.body, *[second.program for second in forward.split.seconds.values()]]
    workspace = sum(map(_peak, parts)) + 2 * held
    if loop.length is not None:
        with suppress(InconclusiveDimError):
            if decide(loop.length * _bytes(forward.body.outputs[len(body.outputs) :]) + workspace, "<=", budget):
                return None
    # Count the workspace in units of states, because both grow with the same symbolic sizes.
    state = RANK_BYTES + sum([weight(s, body.examples) for s in states])
    copies = 1 if not copied else 2 if loop.cond is None else 4
    found = dim_max(budget // copies // _bytes(states) - -(-workspace // state), MIN_SLOTS)
    most: DimLike = DEFAULT_SLOTS if memory_budget is None else MAX_SLOTS
    if loop.length is not None:
        most = loop.length
    elif loop.max_steps is not None:
        most = dim_min(most, loop.max_steps)
    return dim_max(dim_min(found, most), 1)


def _bytes(specs: Sequence[Spec]) -> DimLike:
    """Bytes that are kept for a step, with those of its rank."""
    found: DimLike = RANK_BYTES
    for s in specs:
        found = found + s.size * s.dtype.itemsize
    return found


def _peak(program: Program) -> int:
    """Peak memory of a program's values, plus that of the largest program inside it."""
    inside = [_peak(p) for eq in program.equations for p in inner_programs(eq.op.params)]
    return peak_estimate(program) + max(inside, default=0)
