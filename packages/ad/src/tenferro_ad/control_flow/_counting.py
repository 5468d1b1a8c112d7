"""Loops that count up to a bound: the step number determines the counter and whether the loop still runs.

So the backward pass recomputes both instead of stacking them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tenferro_runtime.control_flow.primitives import cond
from tenferro_runtime.extension import Literal, Program, optimise
from tenferro_runtime.ir import applied, kept
from tenferro_runtime.tracing import staged
from tenferro_tensor import HOST, Spec, tensor
from tenferro_tensor import catalog as c
from tenferro_tensor_core import DimLike, int64


class LoopCounter(NamedTuple):
    """A counter among the carries of a `while_loop`.

    Attributes:
        carry: index of the carry.
        by: increment of one step.
    """

    carry: int
    by: int


def counter_of(condition: Program, body: Program, consts: int) -> LoopCounter | None:
    """The counter, if the condition only compares a counter with a constant of the loop; else ``None``."""
    if len(condition.equations) != 1 or condition.equations[0].op.primitive is not c.lt:
        return None
    (compare,) = condition.equations
    index, bound = compare.operands
    if not isinstance(index, int) or index not in condition.input_ids[consts:]:
        return None
    if bound in condition.input_ids[consts:] or condition.specs[index].dtype != int64:
        return None  # a narrower integer could wrap around after the loop has ended
    carry = condition.input_ids.index(index) - consts
    before, after = body.input_ids[consts + carry], body.output_ids[carry]
    made = next((eq for eq in body.equations if after in eq.results), None)
    if made is None or made.op.primitive is not c.add or before not in made.operands:
        return None
    by = made.operands[made.operands[0] == before]
    if not isinstance(by, Literal) or not isinstance(by.value, int) or by.value <= 0:
        return None
    return LoopCounter(carry, by.value)


@kept
def counted(body: Program, condition: Program, consts: int, counter: LoopCounter) -> Program:
    """One step as the body of a scan, from the constants, the initial count, the carry and the step number."""
    specs, at = body.inputs, consts + counter.carry
    going = optimise(staged(lambda *xs: applied(body, xs), specs).program)
    ended = optimise(staged(lambda *xs: xs[consts:], specs).program)

    def step(*xs: Any) -> list[Any]:
        fixed, start, carry = xs[:consts], xs[consts], xs[consts + 1 : -1]
        number = c.convert(xs[-1], dtype=specs[at].dtype)
        count = c.add(start, c.mul(number, counter.by) if counter.by > 1 else number)
        # After the loop has ended, the carry holds the final count.
        now = [count if j == counter.carry else x for j, x in enumerate(carry)]
        live = applied(condition, [*fixed, *now])[0]
        went = cond(live, *fixed, *now, branches=(ended, going))
        kept = c.select(live, went[counter.carry], carry[counter.carry])
        return [kept if j == counter.carry else x for j, x in enumerate(went)]

    inputs = [*specs[:consts], specs[at], *specs[consts:], Spec((), int64, HOST)]
    return optimise(staged(step, inputs).program)


def numbers(steps: DimLike) -> Any:
    """The step numbers, from 0."""
    if isinstance(steps, int):
        return tensor(np.arange(steps, dtype=int64))
    return c.iota(shape=(steps,), dtype=int64, axis=0, place=HOST)
