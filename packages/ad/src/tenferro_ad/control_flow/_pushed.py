"""Values and tangents through a program in one go, and through an op that is made of such programs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from tenferro_ad._dual import Dual, dual
from tenferro_ad._zeros import zeros_like
from tenferro_runtime.derived import staged
from tenferro_runtime.extension import Builder, Program, interpret, optimise
from tenferro_tensor import next_level


class Pushed(NamedTuple):
    """A program of operands and of tangents of some of them.

    Attributes:
        program: of the operands, then the tangents; to the outputs, then the tangents of those in `active`.
        active: positions of the outputs that have tangents.
    """

    program: Program
    active: tuple[int, ...]


def pushed_program(program: Program, need: tuple[int, ...], forced: tuple[int, ...] = ()) -> Pushed:
    """A program with the tangents of the operands at `need`; kept with it.

    Args:
        program: the program.
        need: positions of the operands that have tangents.
        forced: positions of outputs that get a tangent even if it is always zero.
    """
    key = ("pushed", need, forced)
    found: Pushed | None = program.memo.get(key)
    if found is None:
        builder = Builder()
        with staged(program, builder):
            found = program.memo.setdefault(key, _pushed(program, need, forced, builder))
    return found


def _pushed(program: Program, need: tuple[int, ...], forced: tuple[int, ...], builder: Builder) -> Pushed:
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
        pushed: the body, its operands first and then tangents.
        need: operands that have tangents, in order; more than asked for where the carry spreads them.
        moving: which leaves of the carry are among them.
    """

    pushed: Pushed
    need: tuple[int, ...]
    moving: tuple[int, ...]


def spread(body: Program, need: tuple[int, ...], consts: int, carry: int) -> Spread:
    """The body with tangents for every leaf of the carry that gets one in some step."""
    while True:
        moving = tuple([i - consts for i in need if consts <= i < consts + carry])
        pushed = pushed_program(body, need, moving)
        now = tuple(sorted({*need, *[consts + k for k in pushed.active if k < carry]}))
        if now == need:
            return Spread(pushed, need, moving)
        need = now


def interleaved(count: int, need: tuple[int, ...], *parts: int) -> list[int]:
    """Where (operands, tangents) stand when tangents are put behind the part that their operands belong to.

    Args:
        count: number of operands.
        need: operands that have tangents, in order.
        parts: where the parts after the first begin.

    >>> interleaved(4, (0, 2, 3), 1, 3)
    [0, 4, 1, 2, 5, 3, 6]
    """
    order: list[int] = []
    for start, stop in zip((0, *parts), (*parts, count)):
        order += range(start, stop)
        order += [count + k for k, i in enumerate(need) if start <= i < stop]
    return order


def outranked(lower: Sequence[Any], tangents: Sequence[Any]) -> bool:
    """Whether tangents belong to a level above all values: then values must not be computed together with them."""
    return bool(max([t.level for t in tangents]) > max([x.level for x in lower]))
