"""Derivatives of `budgeted`: those of the loop inside, within its memory budget."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tenferro_ad._dual import JVP_RULES, dual
from tenferro_ad._eager import wrap
from tenferro_ad._record import RECORDERS
from tenferro_ad.control_flow._budgeted import record_within_budget
from tenferro_ad.control_flow._scan import push_scan
from tenferro_ad.control_flow._while import push_while
from tenferro_runtime.control_flow import within_budget
from tenferro_runtime.control_flow.primitives import budgeted, scan, while_loop
from tenferro_runtime.extension import Equation, Program, interpret
from tenferro_tensor import Op
from tenferro_tensor.calls import Node


def _only_loop(op: Op) -> Op | None:
    """The loop, if it is the only equation of the program."""
    program: Program = op.params["program"]
    return program.equations[0].op if len(program.equations) == 1 else None


def _run(op: Op, values: Sequence[Any]) -> tuple[Any, ...]:
    """Run the program on differentiated values, with its loops inside the budget."""

    def apply(eq: Equation, operands: list[Any]) -> Any:
        loop = eq.op.primitive is scan or eq.op.primitive is while_loop
        return within_budget(eq.op, operands, op.params["memory_budget"] if loop else None)

    return interpret(op.params["program"], values, apply=apply)


def _record(op: Op, level: int, lower: list[Any], need: tuple[int, ...], parents: tuple[Node, ...]) -> Any:
    loop = _only_loop(op)
    if loop is not None:
        return record_within_budget(loop, level, lower, need, parents, op.params["memory_budget"])
    nodes = dict(zip(need, parents))
    return _run(op, [wrap(x, level, nodes[i]) if i in nodes else x for i, x in enumerate(lower)])


def _push(op: Op, level: int, lower: list[Any], need: tuple[int, ...], tangents: list[Any]) -> Any:
    loop = _only_loop(op)
    if loop is not None:
        push = push_scan if loop.primitive is scan else push_while
        return push(loop, level, lower, need, tangents, op.params["memory_budget"])
    moved = dict(zip(need, tangents))
    return _run(op, [dual(x, moved[i], level) if i in moved else x for i, x in enumerate(lower)])


RECORDERS[budgeted] = _record
JVP_RULES[budgeted] = _push
