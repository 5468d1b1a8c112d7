"""Slices, updates and pads whose position moves in each iteration, as ops that take the position as operands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tenferro_runtime.ir._program import Equation, Operand
from tenferro_runtime.lowering.rolling._equations import BodyWriter
from tenferro_runtime.passes.schedule import extent_in_trace
from tenferro_tensor import HOST, Spec, catalog


def moving(
    body: BodyWriter,
    groups: Sequence[Equation],
    operands: Sequence[Operand],
    out: Spec,
    offsets: Sequence[tuple[int, ...]],
) -> int | None:
    """The result of an equation that differs between groups only by a position; ``None`` if it has another form.

    Args:
        body: the body of the loop.
        groups: the equation in each group.
        operands: the operands in the body.
        out: spec of the result.
        offsets: the position in each group.
    """
    p, x = groups[0].op.primitive, operands[0]
    if out.place is not HOST or x.__class__ is not int:
        return None
    if p is catalog.slice_:
        return _slice(body, groups[0], x, out, offsets)
    return (_update if p is catalog.update_slice else _pad)(body, groups, operands, out, offsets)


def _starts(body: BodyWriter, eq: Equation, offsets: Sequence[tuple[int, ...]]) -> list[int]:
    return [body.position(column, eq.source) for column in zip(*offsets, strict=True)]


def _slice(body: BodyWriter, eq: Equation, x: int, out: Spec, offsets: Sequence[tuple[int, ...]]) -> int | None:
    source, params = body.specs[x], eq.op.params
    sizes: list[Any] = []
    for start, limit, extent in zip(params["start"], params["limit"], source.shape, strict=True):
        if start.__class__ is not int or not (limit.__class__ is int or (start == 0 and limit is extent)):
            return None
        sizes.append(limit - start if limit.__class__ is int else limit)
    block = source.with_(shape=tuple(sizes))
    read = catalog.dynamic_slice.op(sizes=block.shape)
    v = body.emit(read, (x, *_starts(body, eq, offsets)), block, eq.source)
    if all(n == 1 for n in params["stride"]):
        return v
    op = catalog.slice_.op(start=(0,) * len(sizes), limit=block.shape, stride=params["stride"])
    return body.emit(op, (v,), out, eq.source)


def _update(
    body: BodyWriter, groups: Sequence[Equation], operands: Sequence[Operand], out: Spec,
    offsets: Sequence[tuple[int, ...]],
) -> int | None:  # fmt: skip
    eq, (x, u) = groups[0], operands
    assert u.__class__ is int
    update, params = body.specs[u], eq.op.params
    if any(n.__class__ is not int for n in params["start"]):
        return None
    if any(step != 1 and n != 1 for step, n in zip(params["stride"], update.shape, strict=True)):
        return None
    starts = _starts(body, eq, offsets)
    if params["mode"] == "add":
        there = body.emit(catalog.dynamic_slice.op(sizes=update.shape), (x, *starts), update, eq.source)
        u = body.emit(catalog.add.op(), (there, u), update, eq.source)
    return body.emit(catalog.dynamic_update_slice.op(), (x, u, *starts), out, eq.source)


def _pad(
    body: BodyWriter, groups: Sequence[Equation], operands: Sequence[Operand], out: Spec,
    offsets: Sequence[tuple[int, ...]],
) -> int | None:  # fmt: skip
    eq, (x, value) = groups[0], operands
    if any(eq.op.params["interior"]) or any(_crops(body, each) for each in groups):
        return None
    starts = _starts(body, eq, offsets)
    whole = catalog.broadcast_in_dim.op(shape=out.shape, dims=())
    filled = body.emit(whole, (value,), out, eq.source)
    return body.emit(catalog.dynamic_update_slice.op(), (filled, x, *starts), out, eq.source)


def _crops(body: BodyWriter, pad: Equation) -> bool:
    """Whether padding may remove elements; guards ensure that sizes are large enough."""
    examples = body.around.program.examples
    ends = (*pad.op.params["low"], *pad.op.params["high"])
    return any((n if n.__class__ is int else extent_in_trace(n, examples)) < 0 for n in ends)
