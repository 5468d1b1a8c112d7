"""Loop-invariant code motion: equations of a body that depend on constants only are computed before the loop."""

from __future__ import annotations

from tenferro_runtime.ir._effects import effectful
from tenferro_runtime.ir._program import Equation, Program
from tenferro_runtime.passes.dead_code import remove_dead_code


def hoisted(body: Program, consts: int) -> tuple[Program, Program, dict[int, int]]:
    """Split a body into two programs: its invariant part and the rest.

    Args:
        body: program of a loop.
        consts: number of leading inputs that are invariant.

    Returns:
        The program from these inputs to the values that the rest reads; the rest, which takes them after the constants;
        and the variables of `body` that hold these values.
    """
    fixed = invariants(body, consts)
    same = [eq for eq in body.equations if eq.results[0] in fixed]
    others = [eq for eq in body.equations if eq.results[0] not in fixed]
    read = {v for eq in others for v in eq.variables} | {*body.output_ids}
    names = {v: i for i, v in enumerate(v for eq in same for v in eq.results if v in read)}
    once = body.with_(input_ids=body.input_ids[:consts], equations=tuple(same), output_ids=tuple(names))
    takes = (*body.input_ids[:consts], *names, *body.input_ids[consts:])
    return remove_dead_code(once), body.with_(input_ids=takes, equations=tuple(others)), names


def invariants(body: Program, consts: int) -> set[int]:
    """The variables of a body that are the same in every step.

    Args:
        body: program of a loop.
        consts: number of leading inputs that are invariant.

    Returns:
        These inputs, and all variables that depend on nothing else.
    """
    fixed = {*body.input_ids[:consts], *body.constants}
    for eq in body.equations:
        if consts and _is_same(body, eq, fixed):
            fixed.update(eq.results)
    return fixed


def _is_same(body: Program, eq: Equation, fixed: set[int]) -> bool:
    read = eq.variables
    if not read or effectful(eq.op) or any(v not in fixed for v in read):
        return False
    # Ops whose sizes appear only in their metadata cannot be hoisted: the symbols exist only inside this trace.
    return any(body.specs[v].symbolic for v in read) or not any(body.specs[v].symbolic for v in eq.results)
