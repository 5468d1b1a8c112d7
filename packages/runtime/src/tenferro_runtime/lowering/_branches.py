"""Lowering of `cond`: separate statements for each branch, results in registers or in shared memory."""

from __future__ import annotations

from collections.abc import Sequence

from tenferro_runtime.control_flow.primitives import cond
from tenferro_runtime.lowering._lowering import Step, rule
from tenferro_runtime.lowering._prepared import prepared
from tenferro_runtime.lowering._values import Lowered, Numbers, Stored, is_small, kept, numbers, write
from tenferro_tensor.loop_ir import Case, Statement, Switch, Value


@rule(cond)
def _cond(step: Step) -> Sequence[Lowered]:
    w, branches = step.w, [prepared(b) for b in step.params["branches"]]
    given = branches[0].inputs
    own = frozenset(step.target(k).buffer.number for k in range(1, len(given) + 1) if step.overwritable(k))
    inputs = []
    for k, spec in enumerate(given, 1):
        x = step.operand(k, spec.dtype)
        if x.cost:
            x = kept(w, x)
            step.replace(k, x)
        inputs.append(x)
    index = w.position(w.index(step.operand(0).at(w, ())))
    bodies: list[list[Statement]] = []
    found: list[list[Lowered]] = []
    for branch in branches:
        with w.block() as statements:
            outs = step.lowering.run(branch, inputs, own)
            found.append([numbers(w, x) if is_small(x.shape) else x for x in outs])
        bodies.append(statements)
    results: list[Lowered] = []
    values: list[list[Value]] = [[] for _ in branches]
    registers = []
    for ways, spec in zip(zip(*found), step.outs, strict=True):
        if is_small(spec.shape):
            elements = [w.reg(spec.dtype) for _ in ways[0].elements]
            registers += elements
            results.append(Numbers(spec.shape, spec.dtype, elements))
            for value, x in zip(values, ways, strict=True):
                value += x.elements
            continue
        results.append(_common(step, ways, bodies))
    cases = tuple([Case(tuple(body), tuple(value)) for body, value in zip(bodies, values, strict=True)])
    w.statements.append(Switch(index, cases, tuple(registers)))
    return results


def _common(step: Step, ways: Sequence[Lowered], bodies: Sequence[list[Statement]]) -> Stored:
    """Memory for the results of all branches: that of an operand which all branches overwrite, or a new buffer."""
    first, w = ways[0], step.w
    if isinstance(first, Stored) and all(
        isinstance(x, Stored) and x.buffer.number == first.buffer.number and x.whole for x in ways
    ):
        return first
    found = Stored.whole_of(w.buffer(first.dtype, first.shape))
    for x, body in zip(ways, bodies, strict=True):
        with w.resumed(body):
            write(w, x, found)
    return found
