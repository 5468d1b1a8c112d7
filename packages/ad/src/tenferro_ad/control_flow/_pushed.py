"""Forward mode of programs, and of ops whose metadata are programs: values and tangents together."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

from tenferro_ad._dual import Dual, dual
from tenferro_ad._zeros import zeros_like
from tenferro_runtime.derived import derived
from tenferro_runtime.extension import Builder, Program, interpret, optimise
from tenferro_tensor import next_level


class Pushed(NamedTuple):
    """The forward-mode derivative of a program.

    Attributes:
        program: maps the operands, then tangents, to the outputs, then the tangents of those in `active`.
        active: positions of the outputs that have tangents.
    """

    program: Program
    active: tuple[int, ...]


def pushed_program(program: Program, need: tuple[int, ...], forced: tuple[int, ...] = ()) -> Pushed:
    """The forward-mode derivative of a program for the operands at `need`; cached with it.

    Args:
        program: the program.
        need: positions of the operands that have tangents.
        forced: positions of outputs that get a tangent even if it is always zero.
    """
    return derived(program, ("pushed", need, forced), None, partial(_pushed, need, forced))


def _pushed(need: tuple[int, ...], forced: tuple[int, ...], program: Program, builder: Builder) -> Pushed:
    level = next_level()
    xs = [builder.input(s) for s in program.inputs]
    ts = [builder.input(program.inputs[i]) for i in need]
    ins: list[Any] = list(xs)
    for i, t in zip(need, ts):
        ins[i] = dual(xs[i], t, level)
    values, tangents, active = [], [], []
    for k, out in enumerate(interpret(program, ins)):
        there = out.__class__ is Dual and out.level == level
        values.append(out.value if there else out)
        if there or k in forced:
            active.append(k)
            tangents.append(out.tangent if there else zeros_like(builder.lift(out)))
    return Pushed(optimise(builder.close([*values, *tangents])), tuple(active))


class Spread(NamedTuple):
    """The body of a loop over values and tangents.

    Attributes:
        pushed: the body, with its operands first and then tangents.
        need: positions of operands with tangents, in order, including those reached through the carry.
        moving: leaves of the carry among them.
    """

    pushed: Pushed
    need: tuple[int, ...]
    moving: tuple[int, ...]


def spread(body: Program, need: tuple[int, ...], consts: int, carry: int) -> Spread:
    """The body with tangents for every leaf of the carry that has one in some step."""
    while True:
        moving = tuple([i - consts for i in need if consts <= i < consts + carry])
        pushed = pushed_program(body, need, moving)
        now = tuple(sorted({*need, *[consts + k for k in pushed.active if k < carry]}))
        if now == need:
            return Spread(pushed, need, moving)
        need = now


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
