"""Derivatives of elementwise programs, for families that apply a user's function to scalars."""

from __future__ import annotations

from typing import Any

from tenferro_ad._dual import Dual, dual
from tenferro_ad._zeros import zeros_in
from tenferro_runtime.elementwise import DERIVATIVES
from tenferro_runtime.extension import Builder, Program, interpret, optimise
from tenferro_runtime.tracing import stage
from tenferro_tensor import next_level
from tenferro_tensor_core import Decisions


def differentiated(program: Program, captured: bool) -> Program:
    """The program of the derivative with respect to the first input, with the same inputs.

    With `captured`, the derivative is with respect to all other inexact inputs, along tangents that are appended to
    the inputs.
    """
    builder = Builder()
    with Decisions(dict(program.examples), builder), stage(builder):
        xs: list[Any] = [builder.input(s) for s in program.inputs]
        level = next_level()
        if captured:
            moved = [i for i, x in enumerate(xs) if i and x.spec.inexact]
            tangents = {i: builder.input(xs[i].spec) for i in moved}
        else:
            tangents = {0: zeros_in(builder, xs[0].spec) + 1.0}
        y: Any = interpret(program, [dual(x, tangents[i], level) if i in tangents else x for i, x in enumerate(xs)])[0]
        slope = y.tangent if y.__class__ is Dual and y.level == level else zeros_in(builder, y.spec)
    return optimise(builder.close([slope], examples=program.examples))


DERIVATIVES.append(differentiated)
