"""Programs as data: equations, their specification, their symbolic sizes, and a program as an operation.

Transforms from programs to programs use this module: the parts of a `Program`, ``call`` and similar primitives, values
of symbolic sizes, equations that define data-dependent sizes, and source lines.
"""

from tenferro_runtime.ir._call import ProgramPrimitive, applied, call, called, concrete, instance, sizes_for
from tenferro_runtime.ir._data_sizes import conditions, definitions, inform
from tenferro_runtime.ir._effects import has_effects, without_effects
from tenferro_runtime.ir._interpret import interpret
from tenferro_runtime.ir._kept import kept
from tenferro_runtime.ir._moves import moves_of
from tenferro_runtime.ir._program import Equation, Literal, Operand, Program, ProgramError, inner_programs
from tenferro_runtime.ir._replay import Replay
from tenferro_runtime.ir._sizes import (
    chosen,
    example_of,
    filled,
    holds,
    named,
    open_sizes,
    sizes_of,
    substitute,
    substituted,
    variables,
)
from tenferro_runtime.ir._source import Source, here, user_line, where
from tenferro_runtime.ir._spec_check import check_program

__all__ = [
    "Equation", "Literal", "Operand", "Program", "ProgramError", "ProgramPrimitive", "Replay", "Source", "applied",
    "call", "called", "check_program", "chosen", "concrete", "conditions", "definitions", "example_of", "filled",
    "has_effects", "here", "holds", "inform", "inner_programs", "instance", "kept", "interpret", "moves_of", "named",
    "open_sizes", "sizes_for", "sizes_of", "substitute", "substituted", "user_line", "variables", "where",
    "without_effects",
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__.copy()
