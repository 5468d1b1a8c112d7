"""Reverse mode of loops within a memory budget: stores states in slots and recomputes the steps between them.

`loop_forward` runs the loop and stores states; `loop_backward` takes the states and the cotangents of the results.
Programs replace both by their expansions, which are loops. Their own derivatives are those of the loop over values
and tangents, so higher orders keep to the budget too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tenferro_ad._attribution import blamed
from tenferro_ad._backward import backward_pass
from tenferro_ad._dual import JVP_RULES, Dual, dual
from tenferro_ad._eager import EagerTensor, watched, wrap_many
from tenferro_ad._node import make_node
from tenferro_ad._record import RECORDERS
from tenferro_ad._zeros import full, zeros_like
from tenferro_ad.control_flow._backward_states import carry_before
from tenferro_ad.control_flow._forward_states import through_known, through_unknown
from tenferro_ad.control_flow._free_operands import inside_a_loop
from tenferro_ad.control_flow._residuals import LoopForward, backward_of, forward_of
from tenferro_ad.control_flow._scan import record_scan
from tenferro_ad.control_flow._slot_count import DEFAULT_BUDGET, DEFAULT_SLOTS, MAX_SLOTS, everything_fits, slots_within
from tenferro_ad.control_flow._stored_states import (
    LoopSteps,
    StoredStates,
    arrays_of,
    from_arrays,
    number,
    specs_of_states,
)
from tenferro_runtime import scan as scan_over
from tenferro_runtime import while_loop as while_over
from tenferro_runtime.control_flow import within_budget
from tenferro_runtime.control_flow.primitives import ProgramHolding, scan, while_loop
from tenferro_runtime.extension import REGISTRY, Equation, Program
from tenferro_runtime.ir import applied, without_effects
from tenferro_runtime.passes.accumulate import SUMMING
from tenferro_tensor import Op, Spec, next_level
from tenferro_tensor.calls import Node
from tenferro_tensor_core import DimLike

LOOP = ("body", "cond", "consts", "carry", "length", "reverse", "max_steps")
"""The metadata of both operations that describe the loop; for a `scan`, `cond` is ``None``."""


def _loop_forward(
    *xs: Spec, body: Program, cond: Program | None, consts: int, carry: int, length: DimLike | None, reverse: bool,
    max_steps: DimLike | None, memory_budget: int, slots: DimLike,
) -> tuple[Spec, ...]:  # fmt: skip
    """Run a loop and store states in slots: its results, then the arrays of the states."""
    rows = [] if length is None else [s.with_(shape=(length, *s.shape)) for s in body.outputs[carry:]]
    kept = specs_of_states(body.outputs[:carry], slots)
    return (*body.outputs[:carry], *rows, *kept)


def _loop_backward(
    *xs: Spec, body: Program, cond: Program | None, consts: int, carry: int, length: DimLike | None, reverse: bool,
    max_steps: DimLike | None, memory_budget: int, slots: DimLike, need: tuple[int, ...], there: tuple[bool, ...],
    once: Program, first: Program, second: Program, moving: tuple[int, ...], sums: tuple[int, ...],
    slices: tuple[int, ...], restored: tuple[int, ...], reads: tuple[tuple[str, int], ...],
    sliced: tuple[tuple[str, int], ...], stored: bool,
) -> tuple[Spec, ...]:  # fmt: skip
    """The cotangents of the operands at `need` of a loop.

    The operands are those of the loop, the arrays of states if `stored`, the cotangents of the results marked by
    `there`, and the initial values of the sums over steps. If the states are not stored, the loop runs again.

    `once`, `first` and `second` are the parts of a step; for the rest see `LoopForward` and `LoopBackward`.
    """
    return tuple([xs[i] for i in need])


def _primitive(infer: Callable[..., Any], name: str) -> ProgramHolding:
    infer.__name__ = name
    return ProgramHolding(infer, family=f"tenferro-ad.{name}.v1")


loop_forward = _primitive(_loop_forward, "loop_forward")
loop_backward = _primitive(_loop_backward, "loop_backward")


def _steps(operands: Sequence[Any], params: dict[str, Any]) -> tuple[LoopSteps, tuple[Any, ...]]:
    """The steps of a loop, and its initial carry."""
    consts, end = params["consts"], params["consts"] + params["carry"]
    total = None if params["length"] is None else number(params["length"])
    fixed, sliced = tuple(operands[:consts]), tuple(operands[end:])
    return LoopSteps(params["body"], fixed, params["carry"], sliced, total, params["reverse"]), tuple(
        operands[consts:end]
    )


def _run_forward(*xs: Any, **params: Any) -> tuple[Any, ...]:
    steps, carry = _steps(xs, params)
    condition, slots = params["cond"], params["slots"]
    if condition is None:
        rows = [s.with_(shape=(params["length"], *s.shape)) for s in params["body"].outputs[steps.carry :]]
        last, made, states = through_known(steps, carry, tuple(rows), slots)
        return (*last, *made, *arrays_of(states))
    goes_on = lambda now: applied(condition, [*steps.fixed, *now])[0]
    last, states = through_unknown(steps, goes_on, carry, slots, params["max_steps"])
    return (*last, *arrays_of(states))


def _run_backward(*xs: Any, **params: Any) -> tuple[Any, ...]:
    count, start, which = _parts(params)
    operands = xs[:count]
    arrays = xs[count:start] if params["stored"] else _run_forward(*operands, **params)[len(params["there"]) :]
    end = start + len(which)
    return _LoopReversal(operands, params).run(from_arrays(arrays), dict(zip(which, xs[start:end])), xs[end:])


def _parts(params: Mapping[str, Any]) -> tuple[int, int, list[int]]:
    """The number of loop operands, the index of the first cotangent, and the results that have cotangents."""
    count = len(params["body"].input_ids)
    start = count + params["carry"] + 4 if params["stored"] else count
    return count, start, [k for k, g in enumerate(params["there"]) if g]


class _LoopReversal:
    """The backward pass of a loop, on values of a trace."""

    def __init__(self, operands: Sequence[Any], params: dict[str, Any]) -> None:
        self.params, self.operands = params, operands
        self.steps, _ = _steps(operands, params)
        once = params["once"]
        self.once = applied(once, self.steps.fixed) if once.output_ids else ()

    def run(self, states: StoredStates, cts: dict[int, Any], sums: Sequence[Any]) -> tuple[Any, ...]:
        """Cotangents of the differentiated operands."""
        p, specs = self.params, [x.spec for x in self.operands]
        consts, carry = p["consts"], p["carry"]
        first = [cts[i - consts] if i - consts in cts else full(specs[i], 0) for i in p["moving"]]
        first += sums
        start = (states.total - 1, tuple(first), states)
        if p["cond"] is None:
            over = (self.steps.sliced, tuple([g for k, g in cts.items() if k >= carry]))
            end, made = scan_over(self._step, start, over, length=p["length"], reverse=not p["reverse"])
        else:
            step = lambda state: self._step(state, ((), ()))[0]
            end, made = while_over(lambda state: state[0] >= 0, step, start), ()
        found = dict(zip((*p["moving"], *p["sums"]), end[1]))
        found.update(zip(p["slices"], made))
        return tuple([found[i] if i in found else full(specs[i], 0) for i in p["need"]])

    def _step(self, state: Any, over: Any) -> tuple[Any, Any]:
        k, sums, states = state
        slices, rows = over
        p, fixed = self.params, self.steps.fixed
        now, states = carry_before(self.steps, states, k, p["slots"])
        made = applied(p["first"], [*fixed, *self.once, *now, *slices])
        held: dict[tuple[str, int], Any] = {("once", i): x for i, x in enumerate(self.once)}
        held.update({("operand", i): x for i, x in enumerate(fixed)})
        held.update({("operand", len(fixed) + len(now) + i): x for i, x in enumerate(slices)})
        held.update({("row", i): x for i, x in enumerate(made[len(now) :])})
        after = [made[j] for j in p["restored"]]
        given = [*[held[s] for s in p["reads"]], *sums, *after, *rows, *[held[s] for s in p["sliced"]]]
        found = applied(p["second"], given)
        count = len(sums)
        return (k - 1, found[:count], states), found[count + len(after) :]


def record_within_budget(
    op: Op, level: int, lower: list[Any], need: tuple[int, ...], parents: tuple[Node, ...], budget: int | None = None
) -> tuple[Any, ...]:
    """Run a loop and store states from which the backward pass recomputes steps.

    If the residuals of all steps fit into the budget, they are stored instead.
    """
    params = _params(op, DEFAULT_BUDGET if budget is None else budget)
    forward = forward_of(params["body"], params["consts"], params["carry"], need)
    if op.primitive is scan and everything_fits(forward, params):
        return record_scan(op, level, lower, need, parents, defer=False)  # type: ignore[no-any-return]
    again = inside_a_loop()
    most = DEFAULT_SLOTS if budget is None else MAX_SLOTS
    copied = not again and all(x.level == 0 for x in lower)
    params["slots"] = slots_within(forward, params, copied=copied, most=most)
    return _record(op, params, forward, level, lower, need, parents, again)[0]


def _record(
    op: Op, params: dict[str, Any], forward: LoopForward, level: int, lower: list[Any], need: tuple[int, ...],
    parents: tuple[Node, ...], again: bool,
) -> tuple[tuple[Any, ...], tuple[Any, ...]]:  # fmt: skip
    """The results of a loop and the arrays of its states.

    With `again` no states are saved, because an enclosing loop would stack them for each of its steps: the backward
    pass reruns the loop to store them.
    """
    count = len(params["body"].output_ids)
    outs = op(*lower) if again else loop_forward(*lower, **params)
    outs, states = outs[:count], outs[count:]

    def pull(gs: list[Any], saved: tuple[Any, ...]) -> list[Any]:
        there = tuple([g is not None for g in gs])
        cts = [g for g in gs if g is not None]
        how = {**params, **_parts_of(forward, params, need, there), "need": need, "there": there, "stored": not again}
        zeros = [full(params["body"].inputs[i], 0) for i in how["sums"]]
        return list(loop_backward(*saved, *cts, *zeros, **how))

    pull.op = op  # type: ignore[attr-defined]
    node = make_node(blamed(pull, outs[0]), parents, (*lower, *states))
    consts, carry = params["consts"], params["carry"]
    # With zero steps the carry is returned unchanged, so a differentiated carry is active whatever the body does.
    active = [forward.split.active[k] or (k < carry and consts + k in need) for k in range(count)]
    wrapped = wrap_many(outs, level, node)
    return tuple([w if there else z for w, z, there in zip(wrapped, outs, active)]), states


def _parts_of(
    forward: LoopForward, params: dict[str, Any], need: tuple[int, ...], there: tuple[bool, ...]
) -> dict[str, Any]:
    """The metadata of `loop_backward` that describe a backward step; its programs have no effects."""
    consts, carry = params["consts"], params["carry"]
    back = backward_of(params["body"], consts, carry, need, there[carry:], False)
    return {
        "body": without_effects(params["body"]),
        "cond": None if params["cond"] is None else without_effects(params["cond"]),
        "once": forward.once,
        "first": without_effects(forward.body),
        "second": back.body,
        "moving": tuple([i for i in forward.need if consts <= i < consts + carry]),
        "sums": back.sums,
        "slices": back.slices,
        "restored": forward.restored,
        "reads": back.reads,
        "sliced": back.sliced,
    }


def _params(op: Op, memory_budget: int) -> dict[str, Any]:
    found = {"cond": None, "length": None, "reverse": False, "max_steps": None, **op.params}
    if op.primitive is while_loop:
        found["carry"] = len(found["body"].output_ids)
    return {**{name: found[name] for name in LOOP}, "memory_budget": memory_budget}


def _loop(params: dict[str, Any]) -> Op:
    """The loop inside one of the operations."""
    primitive = scan if params["cond"] is None else while_loop
    return primitive.op(**{name: params[name] for name in primitive.metadata})


def _record_forward(op: Op, level: int, lower: list[Any], need: tuple[int, ...], parents: tuple[Node, ...]) -> Any:
    params = dict(op.params)
    forward = forward_of(params["body"], params["consts"], params["carry"], need)
    outs, states = _record(_loop(params), params, forward, level, lower, need, parents, inside_a_loop())
    if not states:
        states = op(*lower)[len(outs) :]
    return (*outs, *states)


def _push_forward(op: Op, level: int, lower: list[Any], need: tuple[int, ...], tangents: list[Any]) -> Any:
    loop = _loop(dict(op.params))
    outs = JVP_RULES[loop.primitive](loop, level, lower, need, tangents)
    return (*outs, *op(*lower)[len(outs) :])


def _joint(
    op: Op, operands: Sequence[Any], directions: dict[int, Any], cts: dict[int, Any], pushed: dict[int, Any]
) -> tuple[dict[int, Any], dict[int, Any]]:
    """Derivatives of the loop over values and tangents.

    Args:
        op: the operation with the loop inside.
        operands: operands of the loop.
        directions: their tangents, by position.
        cts: cotangents of the results' tangents, by position.
        pushed: cotangents of the results, by position.

    Returns:
        The tangents of the results, and the cotangents of the operands, by position.
    """
    below, above = next_level(), next_level()
    places = [i for i, x in enumerate(operands) if x.spec.inexact]
    values = {i: watched(operands[i], below) for i in places}
    moved = {i: watched(x, below) for i, x in directions.items()}
    ins = [values.get(i, x) for i, x in enumerate(operands)]
    for i, x in moved.items():
        ins[i] = dual(ins[i], x, above)
    found = within_budget(_loop(dict(op.params)), ins, op.params["memory_budget"])
    outs = dict(enumerate(found))
    tangents = {k: y.tangent for k, y in outs.items() if y.__class__ is Dual and y.level == above}
    outs = {k: y.value if k in tangents else y for k, y in outs.items()}
    roots = [(tangents[k], g) for k, g in cts.items() if k in tangents] + [(outs[k], g) for k, g in pushed.items()]
    reached = backward_pass([(y.node, g) for y, g in roots if y.__class__ is EagerTensor and y.level == below])
    inner = {k: y.value if y.__class__ is EagerTensor and y.level == below else y for k, y in tangents.items()}
    return inner, {i: reached[x.node] for i, x in values.items() if x.node in reached}


def _record_backward(op: Op, level: int, lower: list[Any], need: tuple[int, ...], parents: tuple[Node, ...]) -> Any:
    """Record the backward operation: cotangents of its results are tangents of the loop's operands."""
    count, start, which = _parts(op.params)
    outs = op(*lower)

    def pull(gs: list[Any], saved: tuple[Any, ...]) -> list[Any]:
        directions = {i: g for i, g in zip(op.params["need"], gs) if g is not None}
        cts = dict(zip(which, saved[start:]))
        tangents, back = _joint(op, saved[:count], directions, cts, {})
        found = {**back, **{start + len(which) + n: directions.get(i) for n, i in enumerate(op.params["sums"])}}
        found.update({start + n: tangents[k] for n, k in enumerate(which) if k in tangents})
        return [found.get(i) for i in need]

    pull.op = op  # type: ignore[attr-defined]
    return wrap_many(outs, level, make_node(pull, parents, tuple(lower)))


def _push_backward(op: Op, level: int, lower: list[Any], need: tuple[int, ...], tangents: list[Any]) -> Any:
    count, start, which = _parts(op.params)
    given = dict(zip(need, tangents))
    asked = op.params["need"]
    directions = {
        i: given[i] if i in given else zeros_like(lower[i]) for i in {*asked, *[i for i in given if i < count]}
    }
    cts = dict(zip(which, lower[start:]))
    pushed = {k: given[start + n] for n, k in enumerate(which) if start + n in given}
    _, back = _joint(op, lower[:count], directions, cts, pushed)
    for n, i in enumerate(op.params["sums"], start + len(which)):
        if n in given:
            back[i] = back[i] + given[n] if i in back else given[n]
    outs = op(*lower)
    return tuple([dual(z, back[i], level) if i in back else z for z, i in zip(outs, asked)])


def _start_of_sum(eq: Equation, k: int) -> int | None:
    """The position of the operand that is the initial value of a sum over all steps."""
    sums, i = eq.op.params["sums"], eq.op.params["need"][k]
    return len(eq.operands) - len(sums) + sums.index(i) if i in sums else None


SUMMING[loop_backward] = _start_of_sum
REGISTRY.expansion(loop_forward, _run_forward)
REGISTRY.expansion(loop_backward, _run_backward)
RECORDERS[loop_forward] = _record_forward
RECORDERS[loop_backward] = _record_backward
JVP_RULES[loop_forward] = _push_forward
JVP_RULES[loop_backward] = _push_backward
