"""Constants: equations that depend on nothing but constants are carried out once, where the result is small."""

from __future__ import annotations

from typing import Final

from tenferro_runtime._program import Equation, Literal, Program
from tenferro_tensor import HOST, Spec, Tensor, catalog

SMALL: Final = 4096
"""Largest number of elements of a folded result: a program must not swell by what it computes quickly."""


def fold_constants(program: Program) -> Program:
    """Replace equations whose operands are all constants by constants.

    A broadcast stays: its small operand is the better constant. An op that fails stays too, and fails when it runs.
    """
    constants = dict(program.constants)
    equations: list[Equation] = []
    for eq in program.equations:
        folded = _folded(program, constants, eq)
        if folded is None:
            equations.append(eq)
        else:
            constants.update(zip(eq.results, folded, strict=True))
    if len(equations) == len(program.equations):
        return program
    return program.with_(equations=tuple(equations), constants=constants)


def _folded(program: Program, constants: dict[int, Tensor], eq: Equation) -> tuple[Tensor, ...] | None:
    if eq.op.symbolic or eq.op.primitive is catalog.broadcast_in_dim or any(v not in constants for v in eq.variables):
        return None
    if not all(_is_small(program.specs[v]) for v in (*eq.variables, *eq.results)):
        return None
    try:
        out = eq.op(*[v.value if isinstance(v, Literal) else constants[v] for v in eq.operands])
    except Exception:  # whatever a kernel of a third party raises belongs to the run, not to the pass
        return None
    values: tuple[Tensor, ...] = out if isinstance(out, tuple) else (out,)
    return values if all(v.spec is program.specs[r] for v, r in zip(values, eq.results, strict=True)) else None


def _is_small(spec: Spec) -> bool:
    return not spec.symbolic and spec.place is HOST and spec.size <= SMALL  # type: ignore[operator]
