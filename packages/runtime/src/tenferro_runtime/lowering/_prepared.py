"""Nested programs before lowering: calls inlined, dead code and common subexpressions removed."""

from __future__ import annotations

from tenferro_runtime.ir._program import Program
from tenferro_runtime.ir._widen import widened
from tenferro_runtime.passes import optimise


def prepared(program: Program) -> Program:
    """The program after the passes that preserve every bit; cached with it."""
    found: Program | None = program.memo.get("prepared")
    if found is None:
        found = optimise(program)
        steps = widened(found)  # those of inlined calls
        found = program.memo["prepared"] = found if steps is found else optimise(steps)
    return found
