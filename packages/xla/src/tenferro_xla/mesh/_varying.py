"""Analyzes over which mesh axes a value of a program of one device may differ between devices.

An input differs along the axes that its array is split over; a result of an operation differs along the axes of its
operands; collectives remove or add axes. The analysis may report too many axes, never too few.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from tenferro_runtime.control_flow import primitives as control
from tenferro_runtime.extension import Equation, Program, UnsupportedError
from tenferro_runtime.ir import Literal, inner_programs
from tenferro_xla.mesh import collectives

Axes = frozenset[str]
NO_AXES: Final[Axes] = frozenset()

EQUAL_RESULT_COLLECTIVES: Final = (collectives.sum_devices, collectives.extreme_device, collectives.gather_parts)
"""Collectives whose result is equal on all devices along their axes."""

DISTINCT_RESULT_COLLECTIVES: Final = (collectives.sum_parts, collectives.permute_devices, collectives.exchange_parts)
"""Collectives whose result differs between the devices along their axes."""


def varying(program: Program, inputs: Sequence[Axes], deciding: Axes = NO_AXES) -> dict[int, Axes]:
    """Return the axes over which each variable may differ.

    Args:
        program: the program of one device.
        inputs: the axes of each of its inputs.
        deciding: the axes over which devices may differ in whether they run the program at all.

    Raises:
        UnsupportedError: a collective is in a branch or loop that only some of its devices may enter.
    """
    found: dict[int, Axes] = dict.fromkeys(program.constants, NO_AXES)
    found.update(zip(program.input_ids, inputs, strict=True))
    for eq in program.equations:
        operands = [NO_AXES if isinstance(v, Literal) else found[v] for v in eq.operands]
        for v, axes in zip(eq.results, _results(eq, operands, deciding), strict=True):
            found[v] = axes
    return found


def outputs(program: Program, inputs: Sequence[Axes], deciding: Axes = NO_AXES) -> list[Axes]:
    """Return the axes of each output of a program."""
    found = varying(program, inputs, deciding)
    return [found[v] for v in program.output_ids]


def _results(eq: Equation, operands: list[Axes], deciding: Axes) -> list[Axes]:
    p, params = eq.op.primitive, eq.op.params
    every = NO_AXES.union(*operands)
    if p in EQUAL_RESULT_COLLECTIVES or p in DISTINCT_RESULT_COLLECTIVES:
        along = frozenset(n for n, _ in params["axes"])
        if deciding:
            line = f" ({eq.where})" if eq.where else ""
            raise UnsupportedError(
                f"{p.name} over {', '.join(sorted(along))}{line} is in a branch or loop that devices along "
                f"{', '.join(sorted(deciding))} may take differently, which would be a deadlock; make the condition "
                "equal on all devices with psum or pmax, or move the collective out of it"
            )
        return [operands[0] - along if p in EQUAL_RESULT_COLLECTIVES else operands[0] | along]
    if p is control.cond:
        inside = deciding | operands[0]
        branches = [outputs(b, operands[1:], inside) for b in params["branches"]]
        return [operands[0].union(*column) for column in zip(*branches, strict=True)]
    if p is control.while_loop:
        return _while(params, operands, deciding)
    if p is control.scan:
        return _scan(params, operands, deciding)
    inner = inner_programs(params)
    if len(inner) == 1 and len(inner[0].inputs) == len(operands) and len(inner[0].outputs) == len(eq.results):
        return outputs(inner[0], operands, deciding)
    for program in inner:  # for an unknown purpose, perhaps on some devices only
        every = every.union(*outputs(program, [every] * len(program.inputs), deciding | every))
    return [every] * len(eq.results)


def _while(params: Any, operands: list[Axes], deciding: Axes) -> list[Axes]:
    fixed, carry = operands[: params["consts"]], operands[params["consts"] :]
    while True:
        goes_on = outputs(params["cond"], [*fixed, *carry], deciding)[0]
        found = outputs(params["body"], [*fixed, *carry], deciding | goes_on)
        after = [a | b | goes_on for a, b in zip(carry, found, strict=True)]
        if after == carry:
            outputs(params["cond"], [*fixed, *carry], deciding | goes_on)
            return carry
        carry = after


def _scan(params: Any, operands: list[Axes], deciding: Axes) -> list[Axes]:
    start = params["consts"] + params["carry"]
    fixed, carry, slices = operands[: params["consts"]], operands[params["consts"] : start], operands[start:]
    while True:
        found = outputs(params["body"], [*fixed, *carry, *slices], deciding)
        after = [a | b for a, b in zip(carry, found)]
        if after == carry:
            return [*carry, *found[params["carry"] :]]
        carry = after
