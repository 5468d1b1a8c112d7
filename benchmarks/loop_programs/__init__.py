"""Programs with loops, written from the mathematics: each for tenferro and JAX, and in NumPy; one file for a family."""

from __future__ import annotations

from importlib import import_module

from loop_programs.record import LoopProgram

FAMILIES = (
    "stencils",
    "flows",
    "triangular",
    "symmetric",
    "dynamic_programming",
    "filters",
    "integers",
    "particles",
    "networks",
    "dynamics",
    "quantum",
    "straight",
    "small_linalg",
)


def every() -> dict[str, LoopProgram]:
    """All programs by name, family after family."""
    found = [program for family in FAMILIES for program in import_module(f"loop_programs.{family}").PROGRAMS]
    named = {program.name: program for program in found}
    if len(named) < len(found):
        raise ValueError("two programs have one name")
    return named
