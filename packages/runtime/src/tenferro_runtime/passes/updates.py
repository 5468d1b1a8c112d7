"""Updates: a step that changes a part of an array comes after the steps that read the array.

Then nobody needs the array as it was, and the step may write into its memory.
"""

from __future__ import annotations

from typing import Final

from tenferro_runtime.ir._data_sizes import definitions
from tenferro_runtime.ir._order import reordered
from tenferro_runtime.ir._program import Program
from tenferro_tensor import catalog as c

UPDATES: Final = frozenset({c.scatter, c.dynamic_update_slice})
"""Primitives whose result is their first operand but for a part of it."""


def put_off_updates(program: Program) -> Program:
    """Let updates of arrays that are read later on wait until something reads their result."""
    updates = [eq for eq in program.equations if eq.op.primitive in UPDATES]
    if not updates or definitions(program):
        return program
    last = {v: eq for eq in program.equations for v in eq.variables}
    late = {id(eq) for eq in updates if eq.variables and last[eq.variables[0]] is not eq}
    return program.with_(equations=tuple(reordered(program, late))) if late else program
