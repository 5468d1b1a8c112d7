"""Common subexpressions: the same op on the same operands is computed once."""

from __future__ import annotations

from typing import Any

from tenferro_runtime._program import Equation, Operand, Program


def share_common_subexpressions(program: Program) -> Program:
    """Let later equal equations stand for the first one; ops are pure and interned, so identity decides."""
    stands_for: dict[int, int] = {}
    known: dict[tuple[Any, ...], tuple[int, ...]] = {}
    equations: list[Equation] = []
    get = stands_for.get

    def now(v: Operand) -> Operand:
        return get(v, v) if v.__class__ is int else v

    for eq in program.equations:
        operands = tuple([now(v) for v in eq.operands])
        key = (eq.op, *operands)
        first = known.get(key)
        if first is not None:
            stands_for.update(zip(eq.results, first, strict=True))
            continue
        known[key] = eq.results
        equations.append(
            eq if operands == eq.operands else Equation(eq.op, operands, eq.results, eq.source),
        )
    if not stands_for:
        return program
    return program.with_(equations=tuple(equations), output_ids=tuple([get(v, v) for v in program.output_ids]))
