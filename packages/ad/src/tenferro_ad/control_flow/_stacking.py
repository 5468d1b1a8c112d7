"""Reverse mode of a `scan` that stacks the residuals of all steps.

A scan of the body's first part stacks the residuals, and a scan of the second part runs over them in the opposite
direction.
"""

from __future__ import annotations

from typing import Any

from tenferro_ad._zeros import full
from tenferro_ad.control_flow._loop import Loop
from tenferro_ad.control_flow._loop_parts import backward_part, by_source, forward_part, recorded
from tenferro_runtime.control_flow.primitives import scan
from tenferro_runtime.ir import applied
from tenferro_tensor.calls import Node


def record_stacking(
    loop: Loop, level: int, lower: list[Any], need: tuple[int, ...], parents: tuple[Node, ...], *, defer: bool = True
) -> tuple[Any, ...]:
    """Run the first part of all steps, and save its residuals for the second.

    With `defer`, sums of products over the steps may be computed after the loop.
    """
    consts, carry = loop.consts, loop.carry
    forward = forward_part(loop, need)
    once = applied(forward.once, lower[:consts]) if forward.once.output_ids else ()
    step = loop._replace(body=forward.body, consts=consts + len(once))
    found = step.op(*lower[:consts], *once, *lower[consts:])
    held = by_source(once=once, operand=lower, carry=found[:carry], row=found[carry:])
    wanted = [source for source in dict.fromkeys(forward.sources) if source[0] != "constant"]

    def vjp(gs: list[Any], saved: tuple[Any, ...]) -> list[Any]:
        held, inputs = dict(zip(wanted, saved)), loop.body.inputs
        back = backward_part(forward, loop, tuple([g is not None for g in gs]), defer=defer)
        start = [full(inputs[i], 0) if gs[i - consts] is None else gs[i - consts] for i in back.moving]
        start += [full(inputs[i], 0) for i in back.sums]
        start += [held["carry", j] for j in forward.restored]
        slices = [*[g for g in gs[carry:] if g is not None], *[held[source] for source in back.sliced]]
        outs = scan(
            *[held[source] for source in back.reads], *start, *slices,
            body=back.body, consts=len(back.reads), carry=len(start), length=loop.length, reverse=not loop.reverse,
        )  # fmt: skip
        rows = outs[len(start) :]
        results = dict(zip((*back.moving, *back.sums), outs))
        results.update(zip(back.slices, rows))
        results.update({product.operand: product.formed(slices, rows) for product in back.deferred})
        return [results.get(i) for i in need]

    return recorded(loop, forward, vjp, found, level, parents, tuple([held[source] for source in wanted]))
