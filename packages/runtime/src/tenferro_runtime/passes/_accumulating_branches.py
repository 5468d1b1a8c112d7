"""Branches that return zeros, possibly with windows in them, start from the value that their result is added to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from tenferro_runtime.ir._program import Equation, Operand, Program
from tenferro_runtime.passes._accumulating_loops import is_zero
from tenferro_runtime.passes.dead_code import remove_dead_code
from tenferro_tensor import Op
from tenferro_tensor import catalog as c


def start_branches_from_sums(program: Program, run: Callable[[Program], Program]) -> Program:
    """If a branch returns zeros and the result is added to a value, let the branches take the value and add to it.

    Args:
        program: the program.
        run: the pass that accumulates inside branches.
    """
    branching = {v: eq for eq in program.equations if eq.op.primitive.name == "cond" for v in eq.results}
    if not branching:
        return program
    uses = Counter([v for eq in program.equations for v in eq.variables])
    uses.update(program.output_ids)
    at = {v: i for i, eq in enumerate(program.equations) for v in eq.results}
    totals: dict[int, dict[int, int]] = {}  # the value that a result is added to, by the first result of the branches
    stands_for: dict[int, int] = {}
    for eq in program.equations:
        if eq.op.primitive is not c.add or len(eq.variables) < 2:
            continue
        for total, v in (eq.variables, eq.variables[::-1]):
            chosen = branching.get(v)
            if chosen is None or uses[v] != 1 or program.specs[v] is not program.specs[total]:
                continue
            k = chosen.results.index(v)
            zeros = any(is_zero(branch, branch.output_ids[k]) for branch in chosen.op.params["branches"])
            if zeros and at.get(total, -1) < at[v] and branching.get(total) is not chosen:
                totals.setdefault(chosen.results[0], {})[k] = stands_for.get(total, total)
                stands_for[eq.results[0]] = v
                break
    if not totals:
        return program
    equations = []
    for eq in program.equations:
        if eq.results and eq.results[0] in stands_for:
            continue
        given = totals.get(eq.results[0], {}) if eq.results else {}
        operands: list[Operand] = [*eq.operands, *given.values()]
        operands = [stands_for.get(v, v) if isinstance(v, int) else v for v in operands]
        op = _adding(eq.op, tuple(given), run) if given else eq.op
        equations.append(Equation(op, tuple(operands), eq.results, eq.source))
    outputs = tuple([stands_for.get(v, v) for v in program.output_ids])
    return program.with_(equations=tuple(equations), output_ids=outputs)


def _adding(op: Op, which: tuple[int, ...], run: Callable[[Program], Program]) -> Op:
    """The choice among branches that take further operands and add them to the outputs `which`."""
    return op.primitive.op(branches=tuple([run(_starting(branch, which)) for branch in op.params["branches"]]))


def _starting(branch: Program, which: tuple[int, ...]) -> Program:
    fresh = max(branch.specs, default=-1) + 1
    specs, inputs = dict(branch.specs), list(branch.input_ids)
    equations, outputs = list(branch.equations), list(branch.output_ids)
    for k in which:
        old, start = outputs[k], fresh
        fresh += 2
        specs[start] = specs[start + 1] = specs[old]
        inputs.append(start)
        outputs[k] = start
        if not is_zero(branch, old):
            outputs[k] = start + 1
            equations.append(Equation(c.add.op(), (start, old), (start + 1,)))
    return remove_dead_code(
        branch.with_(input_ids=tuple(inputs), equations=tuple(equations), output_ids=tuple(outputs), specs=specs)
    )
