"""Branches and loops: StableHLO's ``case`` and ``while`` around the bodies of their programs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from tenferro_runtime.control_flow import primitives, rows
from tenferro_runtime.extension import Primitive, Program, Spec
from tenferro_tensor_core import bool_, int64
from tenferro_xla._emitter import HloEmitter, HloValue
from tenferro_xla._text import i64s

_INT32: Final = np.dtype("int32")


def _cond(e: HloEmitter, operands: Sequence[HloValue], outs: Any, branches: tuple[Program, ...]) -> Sequence[HloValue]:
    index, rest = operands[0], list(operands[1:])
    last = len(branches) - 1
    # ``case`` takes its last branch for every index out of range, so negative indices are clamped here.
    wide = e.convert(index, int64)
    zero = e.constant(0, wide.spec)
    small = e.select(e.compare("LT", wide, zero), zero, wide)
    most = e.constant(last, wide.spec)
    chosen = e.convert(e.select(e.compare("GT", small, most), most, small), _INT32)
    bodies = [lambda inner, p=p: inner.inline(p, rest) for p in branches]
    results = branches[0].outputs
    checked = any(e.can_fail((), body) for body in bodies)
    if not checked:
        return e.ops("case", (chosen,), results, regions=[e.region((), body) for body in bodies])
    regions = [e.region((), lambda inner, body=body: [*body(inner), inner.failed()]) for body in bodies]
    *found, failed = e.ops("case", (chosen,), (*results, Spec((), bool_)), regions=regions)
    e.fail(failed)
    return found


def _while(
    e: HloEmitter,
    operands: Sequence[HloValue],
    outs: Any,
    cond: Program,
    body: Program,
    consts: int,
    max_steps: int | None,
) -> Sequence[HloValue]:
    count = _count(e)
    fixed = list(operands[:consts])

    def goes_on(inner: HloEmitter, i: HloValue, *carry: HloValue) -> Sequence[HloValue]:
        inner.optimistic = False  # failures of conditions are lost
        going = inner.inline(cond, [*fixed, *carry])[0]
        if max_steps is None:
            return (going,)
        below = inner.compare("LT", i, inner.constant(max_steps, i.spec))
        return (inner.op("and", (going, below), going.spec),)

    def step(inner: HloEmitter, i: HloValue, *carry: HloValue) -> Sequence[HloValue]:
        return [_next(inner, i), *inner.inline(body, [*fixed, *carry])]

    return _loop(e, [count, *operands[consts:]], goes_on, step)[1:]


def _scan(
    e: HloEmitter,
    operands: Sequence[HloValue],
    outs: Any,
    body: Program,
    consts: int,
    carry: int,
    length: int,
    reverse: bool,
) -> Sequence[HloValue]:
    fixed, start, over = list(operands[:consts]), operands[consts : consts + carry], operands[consts + carry :]
    rows = [s.with_(shape=(length, *s.shape)) for s in body.outputs[carry:]]
    empty = [e.constant(0, s) for s in rows]
    if length == 0:
        return [*start, *empty]

    def goes_on(inner: HloEmitter, i: HloValue, *rest: HloValue) -> Sequence[HloValue]:
        return (inner.compare("LT", i, inner.constant(length, i.spec)),)

    def step(inner: HloEmitter, i: HloValue, *rest: HloValue) -> Sequence[HloValue]:
        at = inner.op("subtract", (inner.constant(length - 1, i.spec), i), i.spec) if reverse else i
        slices = [_row(inner, x, at) for x in over]
        found = inner.inline(body, [*fixed, *rest[:carry], *slices])
        made = [_with_row(inner, xs, row, at) for xs, row in zip(rest[carry:], found[carry:], strict=True)]
        return [_next(inner, i), *found[:carry], *made]

    return _loop(e, [_count(e), *start, *empty], goes_on, step)[1:]


def _count(e: HloEmitter) -> HloValue:
    return e.constant(0, Spec((), int64))


def _next(e: HloEmitter, i: HloValue) -> HloValue:
    return e.op("add", (i, e.constant(1, i.spec)), i.spec)


def _loop(
    e: HloEmitter,
    start: list[HloValue],
    goes_on: Callable[..., Sequence[HloValue]],
    step: Callable[..., Sequence[HloValue]],
) -> tuple[HloValue, ...]:
    specs = [v.spec for v in start]
    if not e.can_fail(specs, step):
        return e.ops("while", start, specs, regions=(e.region(specs, goes_on), e.region(specs, step)))

    def checked(inner: HloEmitter, failed: HloValue, *carry: HloValue) -> Sequence[HloValue]:
        following = step(inner, *carry)
        inner.fail(failed)
        return [inner.failed(), *following]

    start = [e.constant(False, Spec((), bool_)), *start]
    specs = [v.spec for v in start]
    test = e.region(specs, lambda inner, failed, *carry: goes_on(inner, *carry))
    failed, *found = e.ops("while", start, specs, regions=(test, e.region(specs, checked)))
    e.fail(failed)
    return tuple(found)


def _rows(e: HloEmitter, operands: Sequence[HloValue], outs: Sequence[Spec]) -> Sequence[HloValue]:
    x = operands[0]
    return [_row(e, x, e.constant(i, Spec((), int64))) for i in range(len(outs))]


def _row(e: HloEmitter, x: HloValue, i: HloValue) -> HloValue:
    """``x[i]``."""
    shape: tuple[Any, ...] = (1, *x.spec.shape[1:])
    zero = e.constant(0, i.spec)
    starts = [i, *[zero] * (x.spec.ndim - 1)]
    cut = e.op("dynamic_slice", (x, *starts), x.spec.with_(shape=shape), f"slice_sizes = {i64s(shape)}")
    return e.op("reshape", (cut,), x.spec.with_(shape=shape[1:]))


def _with_row(e: HloEmitter, xs: HloValue, row: HloValue, i: HloValue) -> HloValue:
    """``xs`` with ``row`` at index ``i``."""
    zero = e.constant(0, i.spec)
    update = e.op("reshape", (row,), row.spec.with_(shape=(1, *row.spec.shape)))
    return e.op("dynamic_update_slice", (xs, update, i, *[zero] * row.spec.ndim), xs.spec)


CONTROL_FLOW: Final[dict[Primitive, Callable[..., Sequence[HloValue]]]] = {
    primitives.cond: _cond,
    primitives.while_loop: _while,
    primitives.scan: _scan,
    rows: _rows,
}
