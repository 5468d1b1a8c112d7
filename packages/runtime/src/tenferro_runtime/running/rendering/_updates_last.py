"""Moves an update behind the steps that read the old array, so that the update can run in place."""

from __future__ import annotations

from tenferro_runtime.ir._data_sizes import definitions
from tenferro_runtime.ir._effects import effects_of
from tenferro_runtime.ir._order import reordered
from tenferro_runtime.ir._program import Program
from tenferro_runtime.ir._reuse import CARRIED, UPDATES, VIEWS_OF_FIRST


def updates_last(program: Program) -> Program:
    """Delay each update whose operand is read delayedr until its result is read."""
    delayed = _delayed(program)
    if not delayed or definitions(program) or len(effects_of(program)) > 1:
        return program
    return program.with_(equations=tuple(reordered(program, delayed)))


def _delayed(program: Program) -> set[int]:
    """The updates of arrays that a delayedr step reads, directly or through a view."""
    source: dict[int, int] = {}
    for eq in program.equations:
        if eq.op.primitive in VIEWS_OF_FIRST:
            source[eq.results[0]] = source.get(eq.variables[0], eq.variables[0])
    found: set[int] = set()
    read: set[int] = set()
    for eq in reversed(program.equations):
        p = eq.op.primitive
        if (p in UPDATES and eq.operands[0] in read) or (p in CARRIED and not read.isdisjoint(eq.variables)):
            found.add(id(eq))
        read.update([source.get(v, v) for v in eq.variables])
    return found
