"""Loops that sum into a carry start from the value that their result is added to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Final

from tenferro_runtime.ir._program import Equation, Operand, Program
from tenferro_runtime.passes._rewriting import uniform
from tenferro_tensor import Primitive
from tenferro_tensor import catalog as c

Maker = Callable[[Operand], Equation | None]

SUMMING: Final[dict[Primitive, Callable[[Equation, int], int | None]]] = {}
"""Primitives whose results may be sums that start from an operand: maps a result to the position of that operand."""


def start_loops_from_sums(program: Program) -> Program:
    """If a loop sums into a carry that starts at zero, and its sum is added to a value, start from the value."""
    loops = {
        v: eq
        for eq in program.equations
        if eq.op.primitive.name == "scan" or eq.op.primitive in SUMMING
        for v in eq.results
    }
    if not loops:
        return program
    uses = _uses(program)
    at = {v: i for i, eq in enumerate(program.equations) for v in eq.results}
    starts: dict[int, dict[int, int]] = {}  # replacements of operands, by the first result of the loop
    stands_for: dict[int, int] = {}
    for eq in program.equations:
        if eq.op.primitive is not c.add or len(eq.variables) < 2:
            continue
        for total, v in (eq.variables, eq.variables[::-1]):
            loop = loops.get(v)
            if loop is None or uses[v] != 1 or program.specs[v] is not program.specs[total]:
                continue
            operand = _start_of(program, loop, loop.results.index(v))
            if operand is not None and at.get(total, -1) < at[v] and loops.get(total) is not loop:
                starts.setdefault(loop.results[0], {})[operand] = stands_for.get(total, total)
                stands_for[eq.results[0]] = v
                break
    if not starts:
        return program
    equations = []
    for eq in program.equations:
        if eq.results and eq.results[0] in stands_for:
            continue
        given = starts.get(eq.results[0], {}) if eq.results else {}
        operands: list[Operand] = [given.get(i, v) for i, v in enumerate(eq.operands)]
        operands = [stands_for.get(v, v) if isinstance(v, int) else v for v in operands]
        equations.append(Equation(eq.op, tuple(operands), eq.results, eq.source))
    outputs = tuple([stands_for.get(v, v) for v in program.output_ids])
    return program.with_(equations=tuple(equations), output_ids=outputs)


def _start_of(program: Program, loop: Equation, k: int) -> int | None:
    """The position of the zero operand that a sum starts from."""
    starts = SUMMING.get(loop.op.primitive)
    if starts is not None:
        start = starts(loop, k)
        return start if start is not None and is_zero(program, loop.operands[start]) else None
    params = loop.op.params
    i = params["consts"] + k
    if k >= params["carry"] or not is_zero(program, loop.operands[i]):
        return None
    body: Program = params["body"]
    return i if _sums(body, body.input_ids[i], body.output_ids[k]) else None


def is_zero(program: Program, v: Operand) -> bool:
    """Whether all elements of a variable are known to be zero."""
    constant = program.constants.get(v)  # type: ignore[arg-type]
    if constant is None:
        eq = next((eq for eq in program.equations if v in eq.results), None)
        if eq is None or eq.op.primitive is not c.broadcast_in_dim:
            return False
        constant = program.constants.get(eq.operands[0])  # type: ignore[arg-type]
    return constant is not None and uniform(constant) == 0


def _sums(body: Program, start: int, end: int) -> bool:
    """Whether an output is an input plus terms that do not depend on that input."""
    return start != end and _summed_into(body, end) == start


def _summed_into(body: Program, end: int) -> int | None:
    """The input that an output equals, up to added terms that do not depend on that input."""
    made = {v: eq for eq in body.equations for v in eq.results}
    uses = _uses(body)
    v = end
    if uses[end] != 1:
        return None
    while v not in body.input_ids:
        eq = made.get(v)
        if eq is None:
            return None
        p = eq.op.primitive
        reads = 1
        following: Operand | None
        if p in (c.scatter, c.update_slice) and eq.op.params["mode"] == "add":
            following = eq.operands[0]
        elif p is c.dynamic_update_slice and added_block(eq, made.get) is not None:  # type: ignore[arg-type]
            following, reads = eq.operands[0], 2
        elif p is c.add and body.specs[v] is body.specs.get(eq.operands[0]):  # type: ignore[arg-type]
            following = eq.operands[0]
        elif p.name in ("scan", "cond") or p in SUMMING:
            following = _summed_inside(eq, eq.results.index(v))
        else:
            return None
        if not isinstance(following, int) or uses[following] != reads:
            return None
        v = following
    return v


def _summed_inside(eq: Equation, k: int) -> Operand | None:
    """The operand of a loop or of branches that its result `k` adds to."""
    params, starts = eq.op.params, SUMMING.get(eq.op.primitive)
    if starts is not None:
        start = starts(eq, k)
        return None if start is None else eq.operands[start]
    if eq.op.primitive.name == "scan":
        inner, i = params["body"], params["consts"] + k
        summing = k < params["carry"] and _sums(inner, inner.input_ids[i], inner.output_ids[k])
        return eq.operands[i] if summing else None
    found = set()
    for branch in params["branches"]:
        v = _summed_into(branch, branch.output_ids[k])
        found.add(None if v is None else branch.input_ids.index(v))
    i = found.pop() if len(found) == 1 else None
    return None if i is None else eq.operands[1 + i]


def added_block(eq: Equation, made_by: Maker) -> Operand | None:
    """The addend of an update that adds to a block; ``None`` if the update does something else."""
    x, update, *starts = eq.operands
    both = made_by(update)
    if both is None or both.op.primitive is not c.add:
        return None
    there = made_by(both.operands[0])
    if there is None or there.op.primitive is not c.dynamic_slice or there.operands != (x, *starts):
        return None
    return both.operands[1]


def _uses(program: Program) -> Counter[int]:
    found = Counter([v for eq in program.equations for v in eq.variables])
    found.update(program.output_ids)
    return found
