"""The rules of `scan`, `while_loop` and `budgeted` in both modes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tenferro_ad._dual import JVP_RULES, dual
from tenferro_ad._eager import wrap
from tenferro_ad._record import RECORDERS
from tenferro_ad.control_flow._bounded_while import as_scan
from tenferro_ad.control_flow._forward_program import jvp_loop
from tenferro_ad.control_flow._loop import loop_of
from tenferro_ad.control_flow._recomputing import record_recomputing
from tenferro_ad.control_flow._stacking import record_stacking
from tenferro_runtime.control_flow import within_budget
from tenferro_runtime.control_flow.primitives import budgeted, scan, while_loop
from tenferro_runtime.extension import Literal, Program
from tenferro_tensor import Op
from tenferro_tensor.calls import Node


def _record_scan(op: Op, level: int, lower: list[Any], need: tuple[int, ...], parents: tuple[Node, ...]) -> Any:
    return record_stacking(loop_of(op.params), level, lower, need, parents)


def _record_while(op: Op, level: int, lower: list[Any], need: tuple[int, ...], parents: tuple[Node, ...]) -> Any:
    loop = loop_of(op.params)
    if loop.max_steps is None:
        return record_recomputing(loop, level, lower, need, parents)
    step, operands, skipped = as_scan(loop, lower)
    shifted = tuple([i if i < loop.consts else i + 1 for i in need])
    return record_stacking(step, level, operands, shifted, parents)[skipped:]


def _record_budgeted(op: Op, level: int, lower: list[Any], need: tuple[int, ...], parents: tuple[Node, ...]) -> Any:
    inner = _only_loop(op)
    if inner is not None:
        return record_recomputing(loop_of(inner.params), level, lower, need, parents, op.params["memory_budget"])
    nodes = dict(zip(need, parents))
    return _run(op, [wrap(x, level, nodes[i]) if i in nodes else x for i, x in enumerate(lower)])


def _jvp_budgeted(op: Op, level: int, lower: list[Any], need: tuple[int, ...], tangents: list[Any]) -> Any:
    inner = _only_loop(op)
    if inner is not None:
        return jvp_loop(inner, level, lower, need, tangents, op.params["memory_budget"])
    moved = dict(zip(need, tangents))
    return _run(op, [dual(x, moved[i], level) if i in moved else x for i, x in enumerate(lower)])


def _only_loop(op: Op) -> Op | None:
    """The loop, if it is the only equation of the program."""
    program: Program = op.params["program"]
    return program.equations[0].op if len(program.equations) == 1 else None


def _run(op: Op, values: Sequence[Any]) -> tuple[Any, ...]:
    """Run the program on differentiated values, with its loops inside the budget."""
    program: Program = op.params["program"]
    env: dict[int, Any] = {**program.constants, **dict(zip(program.input_ids, values))}
    for eq in program.equations:
        operands = [v.value if isinstance(v, Literal) else env[v] for v in eq.operands]
        loop = eq.op.primitive is scan or eq.op.primitive is while_loop
        found = within_budget(eq.op, operands, op.params["memory_budget"] if loop else None)
        env.update(zip(eq.results, found if found.__class__ is tuple else (found,)))
    return tuple([env[v] for v in program.output_ids])


RECORDERS[scan] = _record_scan
RECORDERS[while_loop] = _record_while
RECORDERS[budgeted] = _record_budgeted
JVP_RULES[scan] = JVP_RULES[while_loop] = jvp_loop
JVP_RULES[budgeted] = _jvp_budgeted
