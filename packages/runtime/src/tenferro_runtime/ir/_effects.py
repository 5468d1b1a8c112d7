"""Effects: operations with side effects, such as printing.

An equation with an effect keeps its position: it is not removed, hoisted out of a loop, merged with an equal one,
folded, or moved past another effect. The same holds for a call, branch or loop whose program has an effect.
"""

from __future__ import annotations

from typing import Any, Final

from tenferro_runtime.ir._kept import kept
from tenferro_runtime.ir._program import Equation, Program, inner_programs
from tenferro_tensor import Op, Primitive, Tensor, tensor

EFFECTS: Final[set[Primitive]] = set()
"""Primitives that have an effect. Each has one result, an unused boolean."""

CALLBACKS: Final[set[Primitive]] = set()
"""Primitives that call a Python function of the user: those with effects, and pure ones."""


def effectful(op: Op) -> bool:
    """Whether an op has an effect, itself or in a program in its metadata."""
    p = op.primitive
    return p in EFFECTS or (p.anywhere and any(has_effects(inner) for inner in inner_programs(op.params)))


def has_effects(program: Program) -> bool:
    """Whether an equation of a program has an effect.

    Args:
        program: the program.

    Returns:
        True if one has.
    """
    found: bool | None = program.memo.get("effects")
    if found is None:
        found = program.memo["effects"] = bool(EFFECTS) and any(effectful(eq.op) for eq in program.equations)
    return found


def effects_of(program: Program) -> list[Equation]:
    """The equations that have effects, in order."""
    return [eq for eq in program.equations if effectful(eq.op)] if has_effects(program) else []


def without_effects(program: Program) -> Program:
    """The program without its effects, for running it again after they have taken place.

    Args:
        program: the program.

    Returns:
        The program.
    """
    return _silent(program) if has_effects(program) else program


def silenced(eq: Equation) -> Equation | None:
    """The equation without its effects; ``None`` if it has no other purpose."""
    if not effectful(eq.op):
        return eq
    if eq.op.primitive in EFFECTS:
        return None
    params = {name: _without_effects(value) for name, value in eq.op.params.items()}
    return Equation(eq.op.primitive.op(**params), eq.operands, eq.results, eq.source)


@kept
def _silent(program: Program) -> Program:
    equations: list[Equation] = []
    constants: dict[int, Tensor] = dict(program.constants)
    for eq in program.equations:
        quiet = silenced(eq)
        if quiet is None:
            constants[eq.results[0]] = tensor(False)
        else:
            equations.append(quiet)
    read = {v for eq in equations for v in eq.variables} | {*program.output_ids}
    kept = {v: c for v, c in constants.items() if v in program.constants or v in read}
    return program.with_(equations=tuple(equations), constants=kept)


def _without_effects(value: Any) -> Any:
    if isinstance(value, Program):
        return without_effects(value)
    return tuple([_without_effects(v) for v in value]) if value.__class__ is tuple else value
