"""Identities: removes steps that return their operand unchanged."""

from __future__ import annotations

from typing import Final

from tenferro_runtime.ir._placement import stays
from tenferro_runtime.ir._program import Equation, Operand, Program
from tenferro_tensor import Primitive, catalog

NEUTRAL: Final[frozenset[Primitive]] = frozenset(
    {catalog.convert, catalog.reshape, catalog.broadcast_in_dim, catalog.transfer}
)
"""Primitives that are identities if the spec of the result equals that of the operand."""


def remove_identities(program: Program) -> Program:
    """Remove conversions, reshapes, broadcasts and transfers whose result has the spec of the operand.

    A transfer of a transfer within one memory starts from the first operand.

    Args:
        program: the program.

    Returns:
        The rewritten program.
    """
    stands_for: dict[int, int] = {}
    placed: dict[int, int] = {}
    equations: list[Equation] = []
    changed = False
    for eq in program.equations:
        operands: tuple[Operand, ...] = tuple([stands_for.get(v, v) if v.__class__ is int else v for v in eq.operands])
        first = operands[0] if operands else None
        if first.__class__ is int:
            if stays(program, eq):
                first = placed[eq.results[0]] = placed.get(first, first)
                operands = (first,)
            if _is_neutral(program, eq, first):
                stands_for[eq.results[0]] = first
                changed = True
                continue
        if operands == eq.operands:
            equations.append(eq)
        else:
            equations.append(Equation(eq.op, operands, eq.results, eq.source))
            changed = True
    if not changed:
        return program
    return program.with_(
        equations=tuple(equations), output_ids=tuple([stands_for.get(v, v) for v in program.output_ids])
    )


def _is_neutral(program: Program, eq: Equation, operand: int) -> bool:
    params = eq.op.params
    if eq.op.primitive is catalog.transpose:
        return bool(params["permutation"] == tuple(range(len(params["permutation"]))))
    if eq.op.primitive is catalog.broadcast_in_dim and params["dims"] != tuple(range(len(params["dims"]))):
        return False
    return eq.op.primitive in NEUTRAL and program.specs[operand] is program.specs[eq.results[0]]
