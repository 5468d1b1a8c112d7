"""A `while_loop` with a maximum number of steps as a `scan`, whose steps do nothing once the condition fails.

A carry says whether the loop goes on. If the loop counts up to a bound, the step number determines this and the
counter, so the backward pass recomputes both instead of stacking them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from tenferro_ad.control_flow._loop import Loop
from tenferro_runtime.control_flow.primitives import cond
from tenferro_runtime.extension import Literal, Program, optimise
from tenferro_runtime.ir import applied
from tenferro_runtime.tracing import staged
from tenferro_tensor import HOST, Spec, tensor
from tenferro_tensor import catalog as c
from tenferro_tensor_core import int64


def as_scan(loop: Loop, operands: Sequence[Any]) -> tuple[Loop, list[Any], int]:
    """The `scan`, its operands, and the number of its results before those of the loop.

    Its operands are the constants, one more operand, the carry, and perhaps step numbers.
    """
    assert loop.cond is not None and loop.max_steps is not None
    consts, counter = loop.consts, _counter_of(loop.cond, loop.body, loop.consts)
    make = _guarded if counter is None else partial(_counted, counter)
    memo, key = loop.body.memo, ("as scan", loop.cond, consts)
    body: Program = memo.get(key) or memo.setdefault(key, make(loop.cond, loop.body, consts))
    step = loop._replace(body=body, cond=None, length=loop.max_steps, max_steps=None)
    fixed, carry = operands[:consts], operands[consts:]
    if counter is None:
        live = applied(loop.cond, operands)[0]
        return step._replace(carry=1 + len(carry)), [*fixed, live, *carry], 1
    start, steps = carry[counter[0]], loop.max_steps
    if isinstance(steps, int):
        numbers = tensor(np.arange(steps, dtype=int64))
    else:
        numbers = c.iota(shape=(steps,), dtype=int64, axis=0, place=HOST)
    return step._replace(consts=consts + 1), [*fixed, start, *carry, numbers], 0


def _counter_of(condition: Program, body: Program, consts: int) -> tuple[int, int] | None:
    """The index and the increment of a carry, if the condition only compares it with a constant of the loop."""
    if len(condition.equations) != 1 or condition.equations[0].op.primitive is not c.lt:
        return None
    index, bound = condition.equations[0].operands
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
    return carry, by.value


def _guarded(condition: Program, body: Program, consts: int) -> Program:
    """One step from the constants, whether the loop goes on, and the carry to whether it goes on and the carry."""

    def going(_: Any, *xs: Any) -> list[Any]:
        after = applied(body, xs)
        return [applied(condition, [*xs[:consts], *after])[0], *after]

    def ended(live: Any, *xs: Any) -> list[Any]:
        return [live, *xs[consts:]]  # `live` is false here, and on the right device

    def step(*xs: Any) -> tuple[Any, ...]:
        live = xs[consts]
        return _chosen(live, going, ended, [live, *xs[:consts], *xs[consts + 1 :]])

    return staged(step, (*body.inputs[:consts], condition.outputs[0], *body.inputs[consts:])).program


def _counted(counter: tuple[int, int], condition: Program, body: Program, consts: int) -> Program:
    """One step from the constants, the initial count, the carry and the step number to the carry."""
    j, by = counter

    def step(*xs: Any) -> list[Any]:
        fixed, start, carry = xs[:consts], xs[consts], xs[consts + 1 : -1]
        number = c.convert(xs[-1], dtype=start.spec.dtype)
        now = list(carry)  # once the loop has ended, the carry holds the final count
        now[j] = c.add(start, c.mul(number, by) if by > 1 else number)
        live = applied(condition, [*fixed, *now])[0]
        after = list(_chosen(live, lambda *xs: applied(body, xs), lambda *xs: xs[consts:], [*fixed, *now]))
        after[j] = c.select(live, after[j], carry[j])
        return after

    specs = body.inputs
    return optimise(staged(step, (*specs[:consts], specs[consts + j], *specs[consts:], Spec((), int64, HOST))).program)


def _chosen(live: Any, going: Callable[..., Any], ended: Callable[..., Any], operands: list[Any]) -> tuple[Any, ...]:
    """The results of one of two branches."""
    branches = [optimise(staged(branch, [x.spec for x in operands]).program) for branch in (ended, going)]
    return cond(live, *operands, branches=tuple(branches))  # type: ignore[no-any-return]
