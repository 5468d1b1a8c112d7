"""Forward mode of programs, and of loops, whose metadata are programs: values and tangents together."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

from tenferro_ad._dual import Dual, dual
from tenferro_ad._zeros import zeros_like
from tenferro_ad.control_flow._loop import loop_of
from tenferro_ad.control_flow._more_inputs import with_inputs
from tenferro_runtime.control_flow import within_budget
from tenferro_runtime.extension import Builder, Program, interpret, optimise
from tenferro_runtime.ir import without_effects
from tenferro_runtime.tracing.derived import derived
from tenferro_tensor import Op, next_level


class ForwardProgram(NamedTuple):
    """The forward-mode derivative of a program.

    Attributes:
        program: maps the operands, then tangents, to the outputs, then the tangents of those in `active`.
        active: positions of the outputs that have tangents.
    """

    program: Program
    active: tuple[int, ...]


def forward_program(program: Program, need: tuple[int, ...], forced: tuple[int, ...] = ()) -> ForwardProgram:
    """The forward-mode derivative of a program for the operands at `need`; cached with it.

    Args:
        program: the program.
        need: positions of the operands that have tangents.
        forced: positions of outputs that get a tangent even if it is always zero.
    """
    return derived(program, ("forward program", need, forced), None, partial(_forward, need, forced))


def _forward(need: tuple[int, ...], forced: tuple[int, ...], program: Program, builder: Builder) -> ForwardProgram:
    level = next_level()
    ins: list[Any] = [builder.input(s) for s in program.inputs]
    for i in need:
        ins[i] = dual(ins[i], builder.input(program.inputs[i]), level)
    outs, tangents = list(interpret(program, ins)), {}
    for k, out in enumerate(outs):
        if out.__class__ is Dual and out.level == level:
            outs[k], tangents[k] = out.value, out.tangent
        elif k in forced:
            tangents[k] = zeros_like(builder.lift(out))
    return ForwardProgram(optimise(builder.close([*outs, *tangents.values()])), tuple(tangents))


def jvp_loop(
    op: Op, level: int, lower: list[Any], need: tuple[int, ...], tangents: list[Any], memory_budget: int | None = None
) -> Any:
    """A loop over values and tangents; a condition reads only values."""
    loop, apart = loop_of(op.params), outranked(lower, tangents)
    if apart:
        loop = loop._replace(body=without_effects(loop.body), cond=loop.cond and without_effects(loop.cond))
    consts, carry, count = loop.consts, loop.carry, len(loop.body.output_ids)
    given = dict(zip(need, tangents))
    while True:  # until every leaf of the carry that has a tangent in some step has one in all steps
        moving = tuple([i - consts for i in need if consts <= i < consts + carry])
        program, active = forward_program(loop.body, need, moving)
        spread = tuple(sorted({*need, *[consts + k for k in active if k < carry]}))
        if spread == need:
            break
        need = spread
    order = interleaved(len(lower), need, consts, consts + carry)
    out = interleaved(count, active, carry)
    joint = loop._replace(
        body=program.with_(
            input_ids=tuple([program.input_ids[i] for i in order]),
            output_ids=tuple([program.output_ids[k] for k in out]),
        ),
        cond=loop.cond and _with_tangents(loop.cond, program, order),
        consts=consts + sum(i < consts for i in need),
        carry=carry + len(moving),
    )
    every = [*lower, *[given[i] if i in given else zeros_like(lower[i]) for i in need]]
    found = dict(zip(out, within_budget(joint.op, [every[i] for i in order], memory_budget)))
    outs = op(*lower) if apart else [found[k] for k in range(count)]
    moved = {k: found[count + j] for j, k in enumerate(active)}
    return tuple([dual(z, moved[k], level) if k in moved else z for k, z in enumerate(outs)])


def _with_tangents(condition: Program, joint: Program, order: list[int]) -> Program:
    """The condition as a program that also takes the tangents, and ignores them."""
    places = [order.index(i) for i in range(len(condition.input_ids))]
    return with_inputs(condition, [joint.inputs[i] for i in order], places)


def interleaved(count: int, need: tuple[int, ...], *parts: int) -> list[int]:
    """The order of (operands, tangents) that puts tangents after the part that their operands belong to.

    Args:
        count: number of operands.
        need: positions of operands that have tangents, in order.
        parts: start of each part after the first.

    >>> interleaved(4, (0, 2, 3), 1, 3)
    [0, 4, 1, 2, 5, 3, 6]
    """
    order: list[int] = []
    for start, stop in zip((0, *parts), (*parts, count)):
        order += range(start, stop)
        order += [count + k for k, i in enumerate(need) if start <= i < stop]
    return order


def outranked(lower: Sequence[Any], tangents: Sequence[Any]) -> bool:
    """Whether tangents belong to a level above all values, so that values must be computed separately."""
    return bool(max([t.level for t in tangents]) > max([x.level for x in lower]))
