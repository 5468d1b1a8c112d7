"""The places of a program's values."""

from __future__ import annotations

from tenferro_runtime.ir._program import Equation, Program
from tenferro_tensor import catalog


def stays(program: Program, eq: Equation) -> bool:
    """Whether an equation is a transfer within one memory, which changes the place but moves no data."""
    if eq.op.primitive is not catalog.transfer:
        return False
    source, result = (program.specs[v] for v in (*eq.variables, *eq.results))
    return source.place.memory_space is result.place.memory_space
