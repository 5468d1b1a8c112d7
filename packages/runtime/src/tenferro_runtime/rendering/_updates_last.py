"""An array is updated after the steps that read it as it was, so that the update may take place in its memory."""

from __future__ import annotations

from tenferro_runtime.ir._data_sizes import definitions
from tenferro_runtime.ir._effects import effects_of
from tenferro_runtime.ir._order import reordered
from tenferro_runtime.ir._program import Program
from tenferro_runtime.rendering._overwriting import CARRIED, LOOK_AT_FIRST, UPDATES


def updates_last(program: Program) -> Program:
    """Put an update off until its result is read, where the array that it updates is read after it."""
    late = _late(program)
    if not late or definitions(program) or len(effects_of(program)) > 1:
        return program
    return program.with_(equations=tuple(reordered(program, late)))


def _late(program: Program) -> set[int]:
    """The updates of arrays that a later step reads, or a view of which."""
    source: dict[int, int] = {}
    for eq in program.equations:
        if eq.op.primitive in LOOK_AT_FIRST:
            source[eq.results[0]] = source.get(eq.variables[0], eq.variables[0])
    found: set[int] = set()
    read: set[int] = set()
    for eq in reversed(program.equations):
        p = eq.op.primitive
        if (p in UPDATES and eq.operands[0] in read) or (p in CARRIED and not read.isdisjoint(eq.variables)):
            found.add(id(eq))
        read.update([source.get(v, v) for v in eq.variables])
    return found
