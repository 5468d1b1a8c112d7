"""Identities: steps that give back their operand unchanged go."""

from __future__ import annotations

from typing import Final

from tenferro_runtime._program import Equation, Operand, Program
from tenferro_tensor import Primitive, catalog

NEUTRAL: Final[frozenset[Primitive]] = frozenset(
    {catalog.convert, catalog.reshape, catalog.broadcast_in_dim, catalog.transfer}
)
"""Primitives that do nothing where the spec of the result is that of the operand."""


def remove_identities(program: Program) -> Program:
    """Let the operand of a conversion, reshape, broadcast or transfer to what it is already stand for the result."""
    stands_for: dict[int, int] = {}
    equations: list[Equation] = []

    def now(v: Operand) -> Operand:
        return stands_for.get(v, v) if v.__class__ is int else v

    for eq in program.equations:
        operands = tuple([now(v) for v in eq.operands])
        if _is_neutral(program, eq) and operands[0].__class__ is int:
            stands_for[eq.results[0]] = operands[0]
        else:
            equations.append(eq if operands == eq.operands else Equation(eq.op, operands, eq.results, eq.source))
    if not stands_for:
        return program
    return program.with_(
        equations=tuple(equations), output_ids=tuple([stands_for.get(v, v) for v in program.output_ids])
    )


def _is_neutral(program: Program, eq: Equation) -> bool:
    if eq.op.primitive is catalog.transpose:
        permutation = eq.op.params["permutation"]
        return bool(permutation == tuple(range(len(permutation))))
    if eq.op.primitive is catalog.broadcast_in_dim and eq.op.params["dims"] != tuple(range(len(eq.op.params["dims"]))):
        return False
    return eq.op.primitive in NEUTRAL and program.specs[eq.operands[0]] is program.specs[eq.results[0]]  # type: ignore[index]
