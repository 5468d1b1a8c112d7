"""Programs inside programs, as they are lowered: calls in line, dead and equal work gone."""

from __future__ import annotations

from tenferro_runtime.ir._program import Program
from tenferro_runtime.ir._widen import widened
from tenferro_runtime.passes import optimise


def prepared(program: Program) -> Program:
    """The program after the passes that keep every bit; kept with it."""
    found: Program | None = program.memo.get("prepared")
    if found is None:
        found = optimise(program)
        steps = widened(found)  # those of calls came in line
        found = program.memo["prepared"] = found if steps is found else optimise(steps)
    return found
