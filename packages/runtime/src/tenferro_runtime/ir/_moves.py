"""The transfers between memories that every run of a program makes."""

from __future__ import annotations

from typing import Final

from tenferro_runtime.ir._kept import kept
from tenferro_runtime.ir._program import Equation, Program, inner_programs
from tenferro_tensor import catalog
from tenferro_tensor.transfers import Move

CHOOSERS: Final = frozenset({"cond"})
"""Primitives that run only one of their programs, so that none is certain. A loop is assumed to run a step."""


def moving(program: Program, eq: Equation) -> Move | None:
    """The transfer of an equation, or ``None``."""
    if eq.op.primitive is not catalog.transfer or not eq.variables:
        return None
    spec, target = program.specs[eq.variables[0]], eq.op.params["place"].memory_space
    if spec.place.memory_space is target:
        return None
    nbytes = None if spec.symbolic else spec.size * spec.dtype.itemsize
    return Move(nbytes, spec.place.memory_space, target, eq.where)  # type: ignore[arg-type]


@kept
def moves_of(program: Program) -> tuple[Move, ...]:
    """The transfers of a program and of the programs that it runs, in order.

    Args:
        program: the program.

    Returns:
        The transfers.
    """
    moves: list[Move] = []
    for eq in program.equations:
        move = moving(program, eq)
        if move is not None:
            moves.append(move)
        elif eq.op.primitive.name not in CHOOSERS:
            for inner in inner_programs(eq.op.params):
                moves += moves_of(inner)
    return tuple(moves)
