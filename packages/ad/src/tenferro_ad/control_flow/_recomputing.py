"""Reverse mode of loops that keep states according to a schedule, and recompute the steps between them.

`loop_forward` runs the loop and stores states; `loop_backward` takes the states and the cotangents of the results.
Programs replace both by their expansions, which are loops. Their own derivatives are those of the loop over values
and tangents, so higher orders keep to the budget too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tenferro_ad._backward import backward_pass
from tenferro_ad._dual import JVP_RULES, Dual, dual
from tenferro_ad._eager import EagerTensor, watched, wrap_many
from tenferro_ad._node import make_node
from tenferro_ad._record import RECORDERS
from tenferro_ad._zeros import full, zeros_like
from tenferro_ad.control_flow._budget import DEFAULT_BUDGET, slots_within
from tenferro_ad.control_flow._forward_program import jvp_loop
from tenferro_ad.control_flow._free_operands import inside_a_loop
from tenferro_ad.control_flow._loop import Loop, loop_of
from tenferro_ad.control_flow._loop_parts import ForwardPart, backward_part, by_source, forward_part, recorded
from tenferro_ad.control_flow._schedule import Schedule
from tenferro_ad.control_flow._stacking import record_stacking
from tenferro_ad.control_flow._states import specs_of_states, states_of
from tenferro_runtime.control_flow import within_budget
from tenferro_runtime.control_flow.primitives import ProgramHolding
from tenferro_runtime.extension import REGISTRY, Equation, Program
from tenferro_runtime.ir import applied, without_effects
from tenferro_runtime.passes.accumulate import SUMMING
from tenferro_tensor import Op, Spec, next_level
from tenferro_tensor.calls import Node
from tenferro_tensor_core import DimLike


def _holding(infer: Callable[..., Any]) -> ProgramHolding:
    return ProgramHolding(infer, family=f"tenferro-ad.{infer.__name__}.v1")


@_holding
def loop_forward(
    *xs: Spec, body: Program, cond: Program | None, consts: int, carry: int, length: DimLike | None, reverse: bool,
    max_steps: DimLike | None, memory_budget: int, slots: DimLike,
) -> tuple[Spec, ...]:  # fmt: skip
    """Run a loop and store states in slots: its results, then the arrays of the states."""
    loop = Loop(body, consts, carry, cond, length, reverse, max_steps)
    return (*loop.outputs, *specs_of_states(body.outputs[:carry], slots))


@_holding
def loop_backward(
    *xs: Spec, body: Program, cond: Program | None, consts: int, carry: int, length: DimLike | None, reverse: bool,
    max_steps: DimLike | None, memory_budget: int, slots: DimLike, need: tuple[int, ...], there: tuple[bool, ...],
    once: Program, first: Program, second: Program, moving: tuple[int, ...], sums: tuple[int, ...],
    slices: tuple[int, ...], restored: tuple[int, ...], reads: tuple[tuple[str, int], ...],
    sliced: tuple[tuple[str, int], ...], stored: bool,
) -> tuple[Spec, ...]:  # fmt: skip
    """The cotangents of the operands at `need` of a loop.

    The operands are those of the loop, the arrays of states if `stored`, the cotangents of the results marked by
    `there`, and the initial values of the sums over steps. If the states are not stored, the loop runs again.

    `once`, `first` and `second` are the parts of a step; for the rest see `ForwardPart` and `BackwardPart`.
    """
    return tuple([xs[i] for i in need])


def _run_forward(*xs: Any, **params: Any) -> tuple[Any, ...]:
    outs, states = Schedule(loop_of(params), xs, params["slots"]).run_forward()
    return (*outs, *states.arrays)


def _run_backward(*xs: Any, **params: Any) -> tuple[Any, ...]:
    count, start, which = _layout(params)
    schedule = Schedule(loop_of(params), xs[:count], params["slots"])
    states = states_of(xs[count:start]) if params["stored"] else schedule.run_forward()[1]
    consts, carry, fixed = params["consts"], params["carry"], schedule.fixed
    once = applied(params["once"], fixed) if params["once"].output_ids else ()

    def step(now: Any, slices: Any, sums: Any, rows: Any) -> tuple[Any, Any]:
        made = applied(params["first"], [*fixed, *once, *now, *slices])
        held = by_source(once=once, operand=[*fixed, *now, *slices], row=made[carry:])
        after = [made[j] for j in params["restored"]]
        read, sliced = [[held[source] for source in params[name]] for name in ("reads", "sliced")]
        found = applied(params["second"], [*read, *sums, *after, *rows, *sliced])
        return found[: len(sums)], found[len(sums) + len(after) :]

    cts = dict(zip(which, xs[start:]))
    first = [cts[i - consts] if i - consts in cts else full(xs[i].spec, 0) for i in params["moving"]]
    first += xs[start + len(which) :]  # the initial values of the sums
    rows = tuple([g for k, g in cts.items() if k >= carry])
    sums, made = schedule.run_backward(step, tuple(first), states, rows)
    found = dict(zip((*params["moving"], *params["sums"], *params["slices"]), (*sums, *made)))
    return tuple([found[i] if i in found else full(xs[i].spec, 0) for i in params["need"]])


def _layout(params: Mapping[str, Any]) -> tuple[int, int, list[int]]:
    """The number of loop operands, the index of the first cotangent, and the results that have cotangents."""
    count = len(params["body"].input_ids)
    start = count + params["carry"] + 4 if params["stored"] else count
    return count, start, [k for k, g in enumerate(params["there"]) if g]


def record_recomputing(
    loop: Loop, level: int, lower: list[Any], need: tuple[int, ...], parents: tuple[Node, ...],
    memory_budget: int | None = None,
) -> tuple[Any, ...]:  # fmt: skip
    """Run a loop and store states from which the backward pass recomputes steps.

    If the residuals of all steps fit into the budget, they are stored instead.
    """
    forward, again = forward_part(loop, need), inside_a_loop()
    copied = not again and all(x.level == 0 for x in lower)
    slots = slots_within(forward, loop, memory_budget, copied=copied)
    if slots is None:
        return record_stacking(loop, level, lower, need, parents, defer=False)
    budget = DEFAULT_BUDGET if memory_budget is None else memory_budget
    op = loop_forward.op(**loop._asdict(), memory_budget=budget, slots=slots)
    return _record(op, forward, level, lower, need, parents, again)[0]


def _record(
    op: Op, forward: ForwardPart, level: int, lower: list[Any], need: tuple[int, ...], parents: tuple[Node, ...],
    again: bool,
) -> tuple[tuple[Any, ...], tuple[Any, ...]]:  # fmt: skip
    """The results of a loop and the arrays of its states.

    With `again` no states are saved, because an enclosing loop would stack them for each of its steps: the backward
    pass reruns the loop to store them.
    """
    loop = loop_of(op.params)
    outs = loop.op(*lower) if again else op(*lower)
    states = outs[len(forward.active) :]

    def vjp(gs: list[Any], saved: tuple[Any, ...]) -> list[Any]:
        there = tuple([g is not None for g in gs])
        back = backward_part(forward, loop, there, defer=False)
        parts = {name: getattr(back, name) for name in ("moving", "sums", "slices", "reads", "sliced")}
        parts |= {"body": without_effects(loop.body), "cond": loop.cond and without_effects(loop.cond)}
        parts |= {"once": forward.once, "first": without_effects(forward.body), "second": back.body}
        how = {**op.params, **parts, "restored": forward.restored, "need": need, "there": there, "stored": not again}
        zeros = [full(loop.body.inputs[i], 0) for i in back.sums]
        return list(loop_backward(*saved, *[g for g in gs if g is not None], *zeros, **how))

    return recorded(loop, forward, vjp, outs, level, parents, (*lower, *states)), states


def _record_forward(op: Op, level: int, lower: list[Any], need: tuple[int, ...], parents: tuple[Node, ...]) -> Any:
    forward = forward_part(loop_of(op.params), need)
    outs, states = _record(op, forward, level, lower, need, parents, inside_a_loop())
    return (*outs, *(states or op(*lower)[len(outs) :]))


def _jvp_forward(op: Op, level: int, lower: list[Any], need: tuple[int, ...], tangents: list[Any]) -> Any:
    outs = jvp_loop(loop_of(op.params).op, level, lower, need, tangents)
    return (*outs, *op(*lower)[len(outs) :])


def _derivatives(
    op: Op, operands: Sequence[Any], directions: dict[int, Any], cts: dict[int, Any], tangent_cts: dict[int, Any]
) -> tuple[dict[int, Any], dict[int, Any]]:
    """The tangents of the results and the cotangents of the operands of a loop over values and tangents, by position.

    The tangents of the operands are `directions`, the cotangents of the results `cts`, those of tangents `tangent_cts`.
    """
    below, above = next_level(), next_level()
    values = {i: watched(x, below) for i, x in enumerate(operands) if x.spec.inexact}
    ins = [values.get(i, x) for i, x in enumerate(operands)]
    for i, x in directions.items():
        ins[i] = dual(ins[i], watched(x, below), above)
    outs = dict(enumerate(within_budget(loop_of(op.params).op, ins, op.params["memory_budget"])))
    tangents = {k: y.tangent for k, y in outs.items() if y.__class__ is Dual and y.level == above}
    outs = {k: y.value if k in tangents else y for k, y in outs.items()}
    roots = [(tangents[k], g) for k, g in tangent_cts.items() if k in tangents]
    roots += [(outs[k], g) for k, g in cts.items()]
    reached = backward_pass([(y.node, g) for y, g in roots if y.__class__ is EagerTensor and y.level == below])
    inner = {k: y.value if y.__class__ is EagerTensor and y.level == below else y for k, y in tangents.items()}
    return inner, {i: reached[x.node] for i, x in values.items() if x.node in reached}


def _record_backward(op: Op, level: int, lower: list[Any], need: tuple[int, ...], parents: tuple[Node, ...]) -> Any:
    """Record the backward operation: cotangents of its results are tangents of the loop's operands."""
    count, start, which = _layout(op.params)

    def vjp(gs: list[Any], saved: tuple[Any, ...]) -> list[Any]:
        directions = {i: g for i, g in zip(op.params["need"], gs) if g is not None}
        tangents, found = _derivatives(op, saved[:count], directions, {}, dict(zip(which, saved[start:])))
        found.update({start + n: tangents[k] for n, k in enumerate(which) if k in tangents})
        found.update(zip(range(start + len(which), len(saved)), [directions.get(i) for i in op.params["sums"]]))
        return [found.get(i) for i in need]

    vjp.op = op  # type: ignore[attr-defined]
    return wrap_many(op(*lower), level, make_node(vjp, parents, tuple(lower)))


def _jvp_backward(op: Op, level: int, lower: list[Any], need: tuple[int, ...], tangents: list[Any]) -> Any:
    count, start, which = _layout(op.params)
    given, asked = dict(zip(need, tangents)), op.params["need"]
    moved = {*asked, *[i for i in given if i < count]}
    directions = {i: given[i] if i in given else zeros_like(lower[i]) for i in moved}
    cts = {k: given[start + n] for n, k in enumerate(which) if start + n in given}
    _, found = _derivatives(op, lower[:count], directions, cts, dict(zip(which, lower[start:])))
    for n, i in enumerate(op.params["sums"], start + len(which)):
        if n in given:
            found[i] = found[i] + given[n] if i in found else given[n]
    return tuple([dual(z, found[i], level) if i in found else z for z, i in zip(op(*lower), asked)])


def _start_of_sum(eq: Equation, k: int) -> int | None:
    """The position of the operand that is the initial value of a sum over all steps."""
    sums, i = eq.op.params["sums"], eq.op.params["need"][k]
    return len(eq.operands) - len(sums) + sums.index(i) if i in sums else None


SUMMING[loop_backward] = _start_of_sum
REGISTRY.expansion(loop_forward, _run_forward)
REGISTRY.expansion(loop_backward, _run_backward)
RECORDERS[loop_forward] = _record_forward
RECORDERS[loop_backward] = _record_backward
JVP_RULES[loop_forward] = _jvp_forward
JVP_RULES[loop_backward] = _jvp_backward
