"""Derivatives of elementwise programs, for families that apply a user's function to scalars."""

from __future__ import annotations

from typing import Any

from tenferro_ad._dual import Dual, dual
from tenferro_ad._zeros import full
from tenferro_runtime.extension import Program, interpret, optimise
from tenferro_runtime.tracing import staged
from tenferro_runtime.tracing.elementwise import DERIVATIVES
from tenferro_tensor import next_level


def differentiated(program: Program, captured: bool) -> Program:
    """The program of the derivative with respect to the first input, with the same inputs.

    With `captured`, the derivative is with respect to all other inexact inputs, along tangents that are appended to
    the inputs.
    """
    specs = program.inputs
    moved = [i for i, s in enumerate(specs) if i and s.inexact] if captured else []

    def slope(*xs: Any) -> list[Any]:
        level = next_level()
        tangents = dict(zip(moved, xs[len(specs) :])) if captured else {0: full(specs[0], 0) + 1.0}
        y: Any = interpret(
            program, [dual(x, tangents[i], level) if i in tangents else x for i, x in enumerate(xs[: len(specs)])]
        )[0]
        return [y.tangent if y.__class__ is Dual and y.level == level else full(y.spec, 0)]

    every = [*specs, *[specs[i] for i in moved]]
    return optimise(staged(slope, every, alone=True, decide=True, examples=program.examples).program)


DERIVATIVES.append(differentiated)
