"""Constants: folds equations on constants, and replaces arrays of one repeated number by the number."""

from __future__ import annotations

from typing import Any, Final

from tenferro_runtime.ir._effects import CALLBACKS
from tenferro_runtime.ir._inference import operand_specs
from tenferro_runtime.ir._program import Equation, Literal, Operand, Program, inner_programs
from tenferro_runtime.passes._kinds import Rearranging
from tenferro_runtime.passes._rewriting import Rewriting, Rules
from tenferro_tensor import HOST, Primitive, Spec, Tensor, catalog
from tenferro_tensor_core import TenferroError

FOLD_MAX_ELEMENTS: Final = 4096
"""Largest number of elements of a folded result, so that folding does not enlarge the program."""


def fold_constants(program: Program) -> Program:
    """Replace equations whose operands are all constants by constants.

    Not folded are broadcasts, whose operand is the smaller constant; loops, which may run forever; ops that fail, so
    that they fail when they run; and callbacks into Python.

    Args:
        program: the program.

    Returns:
        The rewritten program.
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
    op, p = eq.op, eq.op.primitive
    if op.symbolic or p is catalog.broadcast_in_dim or p in CALLBACKS or inner_programs(op.params):
        return None
    if any(v not in constants for v in eq.variables):
        return None
    if not all(_is_small(program.specs[v]) for v in (*eq.variables, *eq.results)):
        return None
    try:
        out = eq.op(*[v.value if isinstance(v, Literal) else constants[v] for v in eq.operands])
    except Exception:  # errors of third-party kernels belong to the run, not to the pass
        return None
    values: tuple[Tensor, ...] = out if isinstance(out, tuple) else (out,)
    return values if all(v.spec is program.specs[r] for v, r in zip(values, eq.results, strict=True)) else None


def _is_small(spec: Spec) -> bool:
    return not spec.symbolic and spec.place is HOST and spec.size <= FOLD_MAX_ELEMENTS  # type: ignore[operator]


@Rearranging
def use_literals(program: Program) -> Program:
    """Replace operands of element-wise equations that are one repeated number by the number.

    Kernels then read no array for them; the number has the dtype of the operand.

    Args:
        program: the program.

    Returns:
        The rewritten program.
    """
    return Rewriting(program, _RULES).run()


def _with_literals(work: Rewriting, eq: Equation) -> int | None:
    operands: list[Operand] = list(eq.operands)
    chooser = eq.op.primitive.chooser
    arrays = sum(v.__class__ is int for v in operands)
    for i, v in enumerate(operands):
        if v.__class__ is int and i != chooser and arrays > 1 + (chooser is not None):
            value = work.number(v)
            if value is not None and _fits(work, eq, operands, i, value):
                operands[i] = Literal(value)
                arrays -= 1
    if tuple(operands) == eq.operands:
        return None
    return work.emit(eq.op, operands, work.specs[eq.results[0]], eq.source)


def _fits(work: Rewriting, eq: Equation, operands: list[Operand], i: int, value: Any) -> bool:
    """Whether the number has the same meaning as the array, given the other operands."""
    seen = [v.value.__class__ if isinstance(v, Literal) else work.specs[v] for v in operands]
    was = seen[i]
    seen[i] = value.__class__
    try:
        return operand_specs(eq.op, tuple(seen))[i] is was
    except TenferroError:
        return False


_RULES: Final[Rules] = {
    p: (_with_literals,) for p in vars(catalog).values() if isinstance(p, Primitive) and p.elementwise
}
