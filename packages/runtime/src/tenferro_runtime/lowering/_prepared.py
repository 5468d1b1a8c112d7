"""Nested programs before lowering: calls inlined, dead code and common subexpressions removed."""

from __future__ import annotations

from tenferro_runtime.ir._kept import kept
from tenferro_runtime.ir._program import Program
from tenferro_runtime.ir._widen import widened
from tenferro_runtime.passes import optimise


@kept
def prepared(program: Program) -> Program:
    """The program after the passes that preserve every bit."""
    found = optimise(program)
    steps = widened(found)  # those of inlined calls
    return found if steps is found else optimise(steps)
