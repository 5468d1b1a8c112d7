"""The number of states that a loop stores within a memory budget."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from tenferro_ad.control_flow._residuals import LoopForward
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


def bytes_of(spec: Spec) -> DimLike:
    """The number of bytes of an array."""
    n: DimLike = spec.dtype.itemsize
    for d in spec.shape:
        n = n * d
    return n


def everything_fits(forward: LoopForward, params: Mapping[str, Any]) -> bool:
    """Whether the residuals of all steps of a scan fit into the budget, so that no states are needed."""
    n: DimLike = params["length"]
    size: DimLike = RANK_BYTES
    for s in forward.body.outputs[len(forward.split.active) :]:
        size = size + bytes_of(s)
    try:
        return bool(decide(n * size + _workspace(forward, params), "<=", params["memory_budget"]))
    except InconclusiveDimError:
        return False


def slots_within(
    forward: LoopForward, params: Mapping[str, Any], *, copied: bool, most: DimLike = MAX_SLOTS
) -> DimLike:
    """The number of slots that fit into the budget, after the workspace of a backward step.

    Args:
        forward: the first part of the loop.
        params: metadata of the loop.
        copied: whether forward and backward pass run separately, each with its own memory for states.
        most: maximum number of slots if the number of steps is unknown.
    """
    body, carry = params["body"], params["carry"]
    states = body.outputs[:carry]
    size: DimLike = RANK_BYTES
    for s in states:
        size = size + bytes_of(s)
    workspace = _workspace(forward, params)
    state = RANK_BYTES + sum([weight(s, body.examples) for s in states])
    # Count the workspace in units of states, because both grow with the same symbolic sizes.
    copies = 1 if not copied else 2 if params["cond"] is None else 4
    budget = params["memory_budget"] // copies
    found: DimLike = budget // size - -(-workspace // state)
    if found.__class__ is int:
        found = max(found, MIN_SLOTS)
    else:
        found = dim_max(found, MIN_SLOTS)
    if params["length"] is not None:
        most = params["length"]
    elif params["max_steps"] is not None:
        most = dim_min(most, params["max_steps"])
    return dim_max(dim_min(found, most), 1)


def _workspace(forward: LoopForward, params: Mapping[str, Any]) -> int:
    """Workspace of a backward step in bytes, with symbolic sizes as in the trace."""
    body, consts, carry = params["body"], params["consts"], params["carry"]
    second = forward.split.seconds.get(forward.split.active)
    programs = [forward.body] if second is None else [forward.body, second.program]
    held = sum([weight(s, body.examples) for s in (*body.outputs[:carry], *body.inputs[:consts])])
    return sum(map(_peak, programs)) + 2 * held


def _peak(program: Program) -> int:
    """Peak memory of a program's values, plus that of the largest program inside it."""
    inside = [_peak(p) for eq in program.equations for p in inner_programs(eq.op.params)]
    return peak_estimate(program) + max(inside, default=0)
