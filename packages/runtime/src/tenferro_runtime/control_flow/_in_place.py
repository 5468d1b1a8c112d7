"""Which carries of a loop its body overwrites, so that a step costs as much as it changes, not the whole array.

From the second step, the loop owns the memory of a carry that the body allocated in the previous step and did not
share. For the first step the loop copies the initial value, unless that is donated.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tenferro_runtime.control_flow.primitives import scan, while_loop
from tenferro_runtime.ir._kept import kept
from tenferro_runtime.ir._program import Program
from tenferro_runtime.ir._reuse import CARRIED, UPDATES, SharedMemory, keeps
from tenferro_runtime.running._execute import lowered
from tenferro_runtime.running.rendering._overwriting import overwriting
from tenferro_tensor import Op


@kept
def overwritten_carries(body: Program, consts: int, carry: int) -> tuple[int, ...]:
    """The carries that a body updates in place, as positions among its inputs.

    Args:
        body: the body; its outputs start with the carry.
        consts: number of inputs before the carry.
        carry: number of carries.
    """
    return _overwritten(lowered(body), consts, carry)


def overwritten_by_while(cond: Program, body: Program, consts: int) -> tuple[int, ...]:
    """The same for the body of a `while_loop`; the steps of a third party in its condition may keep references."""
    if any(keeps(cond, eq) for eq in cond.equations):
        return ()
    return overwritten_carries(body, consts, len(body.output_ids))


def _overwritten(body: Program, consts: int, carry: int) -> tuple[int, ...]:
    if not any(eq.op.primitive in UPDATES or eq.op.primitive in CARRIED for eq in body.equations):
        return ()
    victims = {*overwriting(body, _private(body, consts, carry)).values()}
    return tuple([i for i in range(consts, consts + carry) if body.input_ids[i] in victims])


def _private(body: Program, consts: int, carry: int) -> list[int]:
    """Carries whose memory no other carry and no outside value shares.

    Rows are ignored, because they are copied before the next step.
    """
    groups = SharedMemory(body).group
    ins, outs = body.input_ids[consts : consts + carry], body.output_ids[:carry]
    outside = {groups[v] for v in (*body.input_ids[:consts], *body.input_ids[consts + carry :], *body.constants)}
    outside.update([groups[v] for eq in body.equations if keeps(body, eq) for v in eq.variables])
    before, after = Counter([groups[v] for v in ins]), Counter([groups[v] for v in outs])
    return [
        consts + j
        for j, (u, v) in enumerate(zip(ins, outs, strict=True))
        if groups[v] not in outside and after[groups[v]] == 1 and before[groups[v]] == (groups[u] == groups[v])
    ]


def copying(which: tuple[int, ...], consts: int) -> Callable[[Sequence[Any], Sequence[Any]], tuple[Any, ...]]:
    """The function that copies operands which a loop overwrites.

    Args:
        which: positions of operands that the loop overwrites.
        consts: number of operands before the carry.

    Returns:
        A function of the operands and of output arrays, one for each carry, or none.
    """

    def own(raws: Sequence[Any], over: Sequence[Any]) -> tuple[Any, ...]:
        found = list(raws)
        for i in which:
            if not over or over[i - consts] is None or not found[i].flags.carray:
                found[i] = np.array(found[i], order="C")
        return tuple(found)

    return own


def _carried(op: Op) -> Mapping[int, int]:
    params = op.params
    body, consts = params["body"], params["consts"]
    if op.primitive is while_loop:
        which = overwritten_by_while(params["cond"], body, consts)
    else:
        which = overwritten_carries(body, consts, params["carry"])
    return {i - consts: i for i in which}


CARRIED[scan] = CARRIED[while_loop] = _carried
