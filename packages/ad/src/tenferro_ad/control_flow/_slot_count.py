"""How many states a loop stores within a memory budget."""

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
"""States that are stored whatever the budget: with one, the number of steps would grow as its square."""

MAX_SLOTS: Final = 2**20
"""States that a loop stores at most where nobody knows how many steps it has."""

DEFAULT_BUDGET: Final = 2**26
"""Bytes that the reverse mode of such a loop stores where no budget is given."""

DEFAULT_SLOTS: Final = 2**12
"""States that it stores then at most, so that a loop in a loop soon has room for them."""

RANK_BYTES: Final = 16
"""Bytes of a slot beside its state: which step, and which rank."""


def bytes_of(spec: Spec) -> DimLike:
    """The number of bytes of an array."""
    n: DimLike = spec.dtype.itemsize
    for d in spec.shape:
        n = n * d
    return n


def everything_fits(forward: LoopForward, params: Mapping[str, Any]) -> bool:
    """Whether a scan may stack what the derivatives of all its steps need, instead of storing states."""
    n: DimLike = params["length"]
    size: DimLike = RANK_BYTES
    for s in forward.body.outputs[len(forward.split.active) :]:
        size = size + bytes_of(s)
    try:
        return bool(decide(n * size + _beside(forward, params), "<=", params["memory_budget"]))
    except InconclusiveDimError:
        return False


def slots_within(
    forward: LoopForward, params: Mapping[str, Any], *, copied: bool, most: DimLike = MAX_SLOTS
) -> DimLike:
    """The number of slots, for states and what a step of the way back needs beside them.

    Args:
        forward: the first part of the loop.
        params: metadata of the loop.
        copied: whether the loop and its way back run apart, each with memory of its own for states.
        most: the greatest number where nobody knows how many steps there are.
    """
    body, carry = params["body"], params["carry"]
    states = body.outputs[:carry]
    size: DimLike = RANK_BYTES
    for s in states:
        size = size + bytes_of(s)
    beside = _beside(forward, params)
    state = RANK_BYTES + sum([weight(s, body.examples) for s in states])
    # What is needed beside the states counts as states: both grow with the same sizes.
    copies = 1 if not copied else 2 if params["cond"] is None else 4
    budget = params["memory_budget"] // copies
    found: DimLike = budget // size - -(-beside // state)
    if found.__class__ is int:
        found = max(found, MIN_SLOTS)
    else:
        found = dim_max(found, MIN_SLOTS)
    if params["length"] is not None:
        most = params["length"]
    elif params["max_steps"] is not None:
        most = dim_min(most, params["max_steps"])
    return dim_max(dim_min(found, most), 1)


def _beside(forward: LoopForward, params: Mapping[str, Any]) -> int:
    """Bytes that a step of the way back needs beside what is stored, symbolic sizes as in the trace."""
    body, consts, carry = params["body"], params["consts"], params["carry"]
    second = forward.split.seconds.get(forward.split.active)
    programs = [forward.body] if second is None else [forward.body, second.program]
    held = sum([weight(s, body.examples) for s in (*body.outputs[:carry], *body.inputs[:consts])])
    return sum(map(_peak, programs)) + 2 * held


def _peak(program: Program) -> int:
    """Bytes that the results of a program take up at once, and those of the largest program inside of it."""
    inside = [_peak(p) for eq in program.equations for p in inner_programs(eq.op.params)]
    return peak_estimate(program) + max(inside, default=0)
