"""Derivatives of `while_loop`.

Reverse mode runs the loop as a scan if its number of steps is bounded, else with states stored in the forward pass.
"""

from __future__ import annotations

from typing import Any

from tenferro_ad._dual import JVP_RULES, dual
from tenferro_ad._record import RECORDERS
from tenferro_ad._zeros import zeros_like
from tenferro_ad.control_flow._budgeted import record_within_budget
from tenferro_ad.control_flow._counting import counted, counter_of, numbers
from tenferro_ad.control_flow._pushed import interleaved, outranked, spread
from tenferro_ad.control_flow._scan import record_scan
from tenferro_runtime.control_flow import within_budget
from tenferro_runtime.control_flow.primitives import cond, scan, while_loop
from tenferro_runtime.extension import Program, optimise
from tenferro_runtime.ir import applied, kept, without_effects
from tenferro_runtime.tracing import staged
from tenferro_tensor import Op
from tenferro_tensor.calls import Node


def _record(op: Op, level: int, lower: list[Any], need: tuple[int, ...], parents: tuple[Node, ...]) -> Any:
    """Record a scan over the maximum number of steps; its counter or a carry says whether the loop still runs."""
    consts, steps = op.params["consts"], op.params["max_steps"]
    if steps is None:
        return record_within_budget(op, level, lower, need, parents)
    shifted = tuple([i if i < consts else i + 1 for i in need])
    carry = lower[consts:]
    counter = counter_of(op.params["cond"], op.params["body"], consts)
    if counter is not None:
        body = counted(op.params["body"], op.params["cond"], consts, counter)
        step = scan.op(body=body, consts=consts + 1, carry=len(carry), length=steps, reverse=False)
        operands = [*lower[:consts], carry[counter.carry], *carry, numbers(steps)]
        return record_scan(step, level, operands, shifted, parents)
    live = applied(op.params["cond"], lower)[0]
    step = scan.op(
        body=_guarded(op.params["body"], op.params["cond"], consts),
        consts=consts, carry=1 + len(carry), length=steps, reverse=False,
    )  # fmt: skip
    return record_scan(step, level, [*lower[:consts], live, *carry], shifted, parents)[1:]


@kept
def _guarded(body: Program, condition: Program, consts: int) -> Program:
    """The body of the scan: from the constants, a flag whether the loop still runs, and the carry to flag and carry."""
    specs, flag = body.inputs, condition.outputs[0]

    def going(_: Any, *xs: Any) -> list[Any]:
        after = applied(body, xs)
        return [applied(condition, [*xs[:consts], *after])[0], *after]

    def ended(still: Any, *xs: Any) -> list[Any]:
        return [still, *xs[consts:]]  # the flag is false in this branch, and on the right device

    def step(*xs: Any) -> Any:
        return cond(xs[consts], xs[consts], *xs[:consts], *xs[consts + 1 :], branches=branches)

    branches = tuple([optimise(staged(f, [flag, *specs]).program) for f in (ended, going)])
    return staged(step, [*specs[:consts], flag, *specs[consts:]]).program


def push_while(
    op: Op,
    level: int,
    lower: list[Any],
    need: tuple[int, ...],
    tangents: list[Any],
    memory_budget: int | None = None,
) -> Any:
    """A loop over values and tangents; the condition reads only values."""
    condition, body, consts = op.params["cond"], op.params["body"], op.params["consts"]
    total, apart = len(lower), outranked(lower, tangents)
    if apart:
        condition, body = without_effects(condition), without_effects(body)
    pushed, wanted, moving = spread(body, need, consts, total - consts)
    order = interleaved(total, wanted, consts)
    program = pushed.program
    joint = while_loop.op(
        cond=_with_tangents(condition, program, order),
        body=program.with_(input_ids=tuple([program.input_ids[i] for i in order])),
        consts=consts + sum(i < consts for i in wanted),
        max_steps=op.params["max_steps"],
    )
    given = dict(zip(need, tangents))
    every = [*lower, *[given[i] if i in given else zeros_like(lower[i]) for i in wanted]]
    found = within_budget(joint, [every[i] for i in order], memory_budget)
    count = total - consts
    outs = op(*lower) if apart else found[:count]
    moved = dict(zip(moving, found[count:]))
    return tuple([dual(z, moved[k], level) if k in moved else z for k, z in enumerate(outs)])


def _with_tangents(condition: Program, pushed: Program, order: list[int]) -> Program:
    """The condition as a program that also takes the tangents, and ignores them."""
    program = staged(lambda *xs: applied(condition, xs[: len(condition.input_ids)]), pushed.inputs).program
    return optimise(program.with_(input_ids=tuple([program.input_ids[i] for i in order])))


RECORDERS[while_loop] = _record
JVP_RULES[while_loop] = push_while
