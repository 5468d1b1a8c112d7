"""Large constants of a program as additional inputs, to keep them out of the text of the module."""

from __future__ import annotations

from typing import Any, Final

from tenferro_runtime.extension import Program

PASSED_MIN_BYTES: Final = 1 << 14
"""Minimum size in bytes of a constant that is passed to the executable."""


def passed(program: Program) -> tuple[Program, tuple[Any, ...]]:
    """Return the program with its large constants as last inputs, and their raw arrays."""
    large = {v: c for v, c in program.constants.items() if c._data.nbytes >= PASSED_MIN_BYTES}
    if not large:
        return program, ()
    small = {v: c for v, c in program.constants.items() if v not in large}
    found = program.with_(input_ids=(*program.input_ids, *large), constants=small)
    return found, tuple([c._data for c in large.values()])
