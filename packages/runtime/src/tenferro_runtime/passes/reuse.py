"""Reuse: takes a result from an op that runs anyway instead of computing it again with a cheaper op."""

from __future__ import annotations

from collections import Counter
from typing import Any

from tenferro_runtime.ir._call import call
from tenferro_runtime.ir._program import Equation, Operand, Program
from tenferro_runtime.passes._kinds import Rounding
from tenferro_runtime.passes._prunings import pruned


@Rounding
def reuse_outputs(program: Program) -> Program:
    """Replace a pruned op by the outputs of the full op on the same operands, such as singular values by an SVD's.

    The full op moves up to the position of the pruned one.

    Args:
        program: the program.

    Returns:
        The rewritten program.
    """
    dear = _full_ops(program)
    if not dear or all((eq.op, *eq.operands) not in dear for eq in program.equations):
        return program
    stands_for: dict[int, int] = {}
    placed: set[int] = set()
    equations: list[Equation] = []

    def place(eq: Equation) -> None:
        if eq.results[0] not in placed:
            placed.add(eq.results[0])
            operands: tuple[Operand, ...] = tuple(
                [stands_for.get(v, v) if v.__class__ is int else v for v in eq.operands]
            )
            equations.append(eq if operands == eq.operands else Equation(eq.op, operands, eq.results, eq.source))

    for eq in program.equations:
        found = dear.get((eq.op, *eq.operands))
        if found is None:
            place(eq)
        else:
            place(found[0])
            stands_for[eq.results[0]] = found[0].results[found[1]]
    outputs = tuple([stands_for.get(v, v) for v in program.output_ids])
    return program.with_(equations=tuple(equations), output_ids=outputs)


def _full_ops(program: Program) -> dict[tuple[Any, ...], tuple[Equation, int]]:
    """Maps each pruned op and its operands to the equation of the full op, and the output of it."""
    found: dict[tuple[Any, ...], tuple[Equation, int]] = {}
    same = Counter([eq.operands for eq in program.equations])
    for eq in program.equations:
        count = len(eq.results)
        if count < 2 or same[eq.operands] < 2 or eq.op.primitive is call:
            continue
        for i in range(count):
            less = pruned(eq.op, tuple([i == k for k in range(count)]))
            if less is not None and sum(k is not None for k in less[1]) == 1:
                found.setdefault((less[0], *eq.operands), (eq, i))
    return found
