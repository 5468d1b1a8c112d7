"""Programs derived from an equation and cached with it: its tangents, and the adjoint of a linear equation."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from tenferro_ad._backward import backward_pass
from tenferro_ad._eager import EagerTensor, watched
from tenferro_ad._partition import split_reverse
from tenferro_ad._reverse import conjugated
from tenferro_ad._zeros import zeros_beside
from tenferro_ad.control_flow._forward_program import forward_program
from tenferro_runtime.extension import Builder, Program, interpret, optimise
from tenferro_runtime.ir import applied, kept
from tenferro_runtime.tracing.derived import derived
from tenferro_tensor import next_level


@kept
def tangents_of(f: Program, need: tuple[int, ...]) -> Program:
    """The program from the operands, then tangents of those at `need`, to the tangents of all outputs."""
    count = len(f.output_ids)
    both = forward_program(f, need, tuple(range(count))).program
    return optimise(both.with_(output_ids=both.output_ids[count:]))


def linearised(f: Program, consts: int) -> Program:
    """The program from the constants of f, the unknowns x and their tangents to the tangents of f at x."""
    return tangents_of(f, tuple(range(consts, len(f.input_ids))))


def adjoint_of(matvec: Program, consts: int, unconjugated: bool = False) -> Program:
    """The adjoint (or, `unconjugated`, the transpose) of a program that is linear in its operands after `consts`."""
    return derived(matvec, ("adjoint", consts, unconjugated), None, partial(_adjoint, consts, unconjugated))


def _adjoint(consts: int, unconjugated: bool, matvec: Program, builder: Builder) -> Program:
    level = next_level()
    fixed = [builder.input(s) for s in matvec.inputs[:consts]]
    given = [builder.input(s) for s in matvec.outputs]
    if unconjugated:
        given = [conjugated(g) for g in given]
    xs = [watched(zeros_beside(given[0], s), level) for s in matvec.inputs[consts:]]
    outs = interpret(matvec, [*fixed, *xs])
    roots = [
        (out.node, g) for out, g in zip(outs, given, strict=True) if out.__class__ is EagerTensor and out.level == level
    ]
    reached = backward_pass(roots)
    pulled = [reached[x.node] if x.node in reached else zeros_beside(given[0], x.spec) for x in xs]
    return optimise(builder.close([conjugated(c) for c in pulled] if unconjugated else pulled))


def pulled_back(f: Program, need: tuple[int, ...], operands: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
    """Cotangents of the operands of a program at `need`, ``None`` for zero, from cotangents of all outputs."""
    split = split_reverse(f, need, whole=True)
    results: list[Any] = [None] * len(need)
    if any(split.active):
        residuals = applied(split.first, operands)[len(f.output_ids) :]
        second = split.seconds[split.active]
        given = [g for g, active in zip(cotangents, split.active, strict=True) if active]
        found = applied(second.program, [*given, *[residuals[i] for i in second.residuals]])
        for i, c in zip(second.places, found, strict=True):
            results[i] = c
    return results
