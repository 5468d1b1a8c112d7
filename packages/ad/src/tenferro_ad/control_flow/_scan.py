"""Derivatives of `scan`.

In reverse mode, a scan of the body's first part stacks the residuals, and a scan of the second part runs over them in
the opposite direction.
"""

from __future__ import annotations

from typing import Any

from tenferro_ad._attribution import blamed
from tenferro_ad._dual import JVP_RULES, dual
from tenferro_ad._eager import wrap_many
from tenferro_ad._node import make_node
from tenferro_ad._record import RECORDERS
from tenferro_ad._zeros import full, zeros_like
from tenferro_ad.control_flow._pushed import interleaved, outranked, spread
from tenferro_ad.control_flow._residuals import LoopForward, backward_of, forward_of
from tenferro_runtime.control_flow import within_budget
from tenferro_runtime.control_flow.primitives import scan
from tenferro_runtime.ir import applied, without_effects
from tenferro_tensor import Op
from tenferro_tensor.calls import Node


def record_scan(
    op: Op, level: int, lower: list[Any], need: tuple[int, ...], parents: tuple[Node, ...], *, defer: bool = True
) -> Any:
    """Run the first part of all steps, and save its residuals for the second.

    With `defer`, sums of products over the steps may be computed after the loop.
    """
    params = op.params
    consts, carry = params["consts"], params["carry"]
    forward = forward_of(params["body"], consts, carry, need)
    once = applied(forward.once, lower[:consts]) if forward.once.output_ids else ()
    step = scan.op(**{**params, "body": forward.body, "consts": consts + len(once)})
    found = step(*lower[:consts], *once, *lower[consts:])
    count = len(forward.split.active)
    held = {("once", i): v for i, v in enumerate(once)}
    held.update({("row", i): v for i, v in enumerate(found[carry:])})
    held.update({("operand", i): v for i, v in enumerate(lower)})
    held.update({("carry", j): found[j] for j in forward.restored})
    wanted = [source for source in dict.fromkeys(forward.sources) if source[0] != "constant"]

    def pull(gs: list[Any], saved: tuple[Any, ...]) -> list[Any]:
        return _pull(op, forward, dict(zip(wanted, saved)), gs, need, defer)

    pull.op = op  # type: ignore[attr-defined]
    node = make_node(blamed(pull, found[0]), parents, tuple([held[source] for source in wanted]))
    # With zero steps the carry is returned unchanged, so a differentiated carry is active whatever the body does.
    active = [forward.split.active[k] or consts + k in need for k in range(carry)]
    active += forward.split.active[carry:]
    wrapped = wrap_many(found[:count], level, node)
    return tuple([w if there else z for w, z, there in zip(wrapped, found, active)])


def _pull(
    op: Op,
    forward: LoopForward,
    saved: dict[tuple[str, int], Any],
    gs: list[Any],
    asked: tuple[int, ...],
    defer: bool,
) -> list[Any]:
    params = op.params
    consts, carry = params["consts"], params["carry"]
    rows = gs[carry:]
    there = tuple([g is not None for g in rows])
    back = backward_of(params["body"], consts, carry, asked, there, defer)
    moving = [i for i in forward.need if consts <= i < consts + carry]
    inputs = params["body"].inputs
    late = {sum_.carry for sum_ in back.deferred}
    sums = [i for k, i in enumerate(back.sums) if len(moving) + k not in late]
    start = [full(inputs[i], 0) if gs[i - consts] is None else gs[i - consts] for i in moving]
    start += [full(inputs[i], 0) for i in sums]
    start += [saved["carry", j] for j in forward.restored]
    slices = [*[g for g in rows if g is not None], *[saved[source] for source in back.sliced]]
    found = scan(
        *[saved[source] for source in back.reads], *start, *slices,
        body=back.body, consts=len(back.reads), carry=len(start),
        length=params["length"], reverse=not params["reverse"],
    )  # fmt: skip
    results = dict(zip((*moving, *sums), found))
    results.update(zip(back.slices, found[len(start) :]))
    for sum_ in back.deferred:
        results[back.sums[sum_.carry - len(moving)]] = sum_.formed(slices, found[len(start) :])
    return [results.get(i) for i in asked]


def push_scan(
    op: Op,
    level: int,
    lower: list[Any],
    need: tuple[int, ...],
    tangents: list[Any],
    memory_budget: int | None = None,
) -> Any:
    """A scan over values and tangents."""
    params = op.params
    consts, carry, total = params["consts"], params["carry"], len(lower)
    apart = outranked(lower, tangents)
    body = without_effects(params["body"]) if apart else params["body"]
    pushed, wanted, moving = spread(body, need, consts, carry)
    order = interleaved(total, wanted, consts, consts + carry)
    program = pushed.program
    count = len(params["body"].output_ids)
    out = interleaved(count, pushed.active, carry)
    joint = scan.op(
        **{
            **params,
            "body": program.with_(
                input_ids=tuple([program.input_ids[i] for i in order]),
                output_ids=tuple([program.output_ids[k] for k in out]),
            ),
            "consts": consts + sum(i < consts for i in wanted),
            "carry": carry + len(moving),
        }
    )
    given = dict(zip(need, tangents))
    every = [*lower, *[given[i] if i in given else zeros_like(lower[i]) for i in wanted]]
    found = dict(zip(out, within_budget(joint, [every[i] for i in order], memory_budget)))
    outs = op(*lower) if apart else [found[k] for k in range(count)]
    moved = {k: found[count + j] for j, k in enumerate(pushed.active)}
    return tuple([dual(z, moved[k], level) if k in moved else z for k, z in enumerate(outs)])


RECORDERS[scan] = record_scan
JVP_RULES[scan] = push_scan
