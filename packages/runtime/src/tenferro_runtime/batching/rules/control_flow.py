"""Programs that are called, branches and loops.

A decision that is the same for all lanes is taken once. If it differs between lanes, concrete lanes that decide
equally are computed together; in a program, each lane is computed by itself.
"""

from __future__ import annotations

from typing import Any

from tenferro_runtime.batching._groups import by_branch, by_rounds
from tenferro_runtime.batching._lanes import lane_by_lane
from tenferro_runtime.batching._programs import batched_body, calling
from tenferro_runtime.batching._records import Flags, Shared, Values, with_lanes
from tenferro_runtime.control_flow import primitives
from tenferro_runtime.control_flow._rows import rows
from tenferro_runtime.ir._call import call
from tenferro_runtime.ir._program import Program
from tenferro_runtime.tracing._traced import is_traced
from tenferro_tensor import Registry, catalog
from tenferro_tensor_core import DimLike


def _cond(size: DimLike, values: Values, batched: Flags, *, branches: tuple[Program, ...]) -> Any:
    if batched[0]:
        if _known(size, values[:1], branches):
            return tuple(by_branch(values[0], branches, size, values[1:], batched[1:]))  # type: ignore[arg-type]
        return lane_by_lane(primitives.cond.op(branches=branches), size, values, batched)
    flags = [batched_body(branch, batched[1:], size).batched for branch in branches]
    outputs = tuple([any(column) for column in zip(*flags, strict=True)])
    made = tuple([batched_body(branch, batched[1:], size, outputs).program for branch in branches])
    return _marked(primitives.cond(*values, branches=made), outputs)


def _while_loop(
    size: DimLike,
    values: Values,
    batched: Flags,
    *,
    cond: Program,
    body: Program,
    consts: int,
    max_steps: DimLike | None,
) -> Any:
    fixed = batched[:consts]
    carry = _settled(body, size, fixed, batched[consts:], ())
    goes_on = batched_body(cond, (*fixed, *carry), size)
    if goes_on.batched[0]:
        op = primitives.while_loop.op(cond=cond, body=body, consts=consts, max_steps=max_steps)
        found = by_rounds(op, size, values, batched) if _known(size, values, (cond, body)) else None  # type: ignore[arg-type]
        return lane_by_lane(op, size, values, batched) if found is None else tuple(found)
    step = batched_body(body, (*fixed, *carry), size, carry)
    first = _brought(size, values[consts:], batched[consts:], carry)
    outs = primitives.while_loop(
        *values[:consts], *first, cond=goes_on.program, body=step.program, consts=consts, max_steps=max_steps
    )
    return _marked(outs, carry)


def _scan(
    size: DimLike,
    values: Values,
    batched: Flags,
    *,
    body: Program,
    consts: int,
    carry: int,
    length: DimLike,
    reverse: bool,
) -> Any:
    start = consts + carry
    fixed, slices = batched[:consts], batched[start:]
    kept = _settled(body, size, fixed, batched[consts:start], slices)
    rows = batched_body(body, (*fixed, *kept, *slices), size).batched[carry:]
    step = batched_body(body, (*fixed, *kept, *slices), size, (*kept, *rows))
    first = _brought(size, values[consts:start], batched[consts:start], kept)
    over = [_swapped(x) if lanes else x for x, lanes in zip(values[start:], slices, strict=True)]
    outs = primitives.scan(
        *values[:consts], *first, *over,
        body=step.program, consts=consts, carry=carry, length=length, reverse=reverse,
    )  # fmt: skip
    made = [_swapped(x) if lanes else x for x, lanes in zip(outs[carry:], rows, strict=True)]
    return _marked((*outs[:carry], *made), (*kept, *rows))


def _known(size: DimLike, values: Values, programs: tuple[Program, ...]) -> bool:
    """Whether the values of the lanes are concrete."""
    return (
        size.__class__ is int
        and size != 0
        and not any(p.symbolic for p in programs)
        and not any(map(is_traced, values))
    )


def _settled(body: Program, size: DimLike, fixed: Flags, carry: Flags, slices: Flags) -> Flags:
    """Which parts of a carry differ between lanes after some step."""
    while True:
        after = batched_body(body, (*fixed, *carry, *slices), size).batched
        wider = tuple([a or b for a, b in zip(carry, after)])
        if wider == carry:
            return carry
        carry = wider


def _brought(size: DimLike, values: Values, batched: Flags, wanted: Flags) -> list[Any]:
    return [
        with_lanes(size, v) if want and not lanes else v for v, lanes, want in zip(values, batched, wanted, strict=True)
    ]


def _budgeted(size: DimLike, values: Values, batched: Flags, *, program: Program, memory_budget: int) -> Any:
    found = batched_body(program, batched, size)
    return _marked(primitives.budgeted(*values, program=found.program, memory_budget=memory_budget), found.batched)


def _rows(size: DimLike, values: Values, batched: Flags) -> Any:
    return rows(_swapped(values[0]))


def _swapped(x: Any) -> Any:
    """Swap the lane axis and the axis of steps."""
    return catalog.transpose(x, permutation=(1, 0, *range(2, x.spec.ndim)))


def _marked(outs: tuple[Any, ...], batched: Flags) -> tuple[Any, ...]:
    return tuple([x if lanes else Shared(x) for x, lanes in zip(outs, batched, strict=True)])


def register(registry: Registry) -> None:
    """Register them."""
    registry.batching(call, calling(call))
    registry.batching(primitives.cond, _cond)
    registry.batching(primitives.while_loop, _while_loop)
    registry.batching(primitives.scan, _scan)
    registry.batching(primitives.budgeted, _budgeted)
    registry.batching(rows, _rows)
