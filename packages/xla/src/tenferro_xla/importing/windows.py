"""Reductions over windows: cumulative operations, and other windows by doubling."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from tenferro_runtime.extension import catalog
from tenferro_xla.importing._bodies import apply, arg, compare, expression_of, monoid_of, returned
from tenferro_xla.importing._reader import Handler, ModuleReader, ValueScope, unknown
from tenferro_xla.importing._values import Splat, Value, arrays, as_array
from tenferro_xla.importing.reduction import JOINS, is_neutral, joined, joining, least
from tenferro_xla.importing.structure import integers

_CUMULATIVE: Final[dict[str, Any]] = {
    "add": catalog.cumsum, "multiply": catalog.cumprod, "maximum": catalog.cummax, "minimum": catalog.cummin,
}  # fmt: skip


def _reduce_window(reader: ModuleReader, op: Any, xs: list[Value], scope: ValueScope) -> Sequence[Value]:
    count = len(xs) // 2
    body = op.regions[0].blocks[0]
    operands, starts = arrays(xs[:count]), xs[count:]
    x = operands[0]
    ndim = x.spec.ndim
    window = integers(op, "window_dimensions")
    strides, into, apart = (
        integers(op, name) if name in op.attributes else (1,) * ndim
        for name in ("window_strides", "base_dilations", "window_dilations")
    )
    padding = _padding(op, ndim)
    name = monoid_of(body, x.spec.dtype) if count == 1 else None
    name = name if name in JOINS else None
    ones = (1,) * ndim
    axis = _running_axis(x.spec.shape, window, padding) if strides == into == apart == ones else None
    if axis is not None and count == 1 and x.spec.size:
        reverse = padding[axis][0] == 0
        if name is not None and is_neutral(starts[0], name) and x.spec.dtype.kind != "b":
            return (_CUMULATIVE[name](x, axis=axis, reverse=reverse),)
        if isinstance(starts[0], Splat) and starts[0].number == least(x.spec.dtype) and _is_logaddexp(body):
            return (catalog.cumlogsumexp(x, axis=axis, reverse=reverse),)
    low, high = (tuple([p[i] for p in padding]) for i in (0, 1))
    between = tuple([n - 1 for n in into])
    if any(low) or any(high) or any(between):
        operands = [
            catalog.pad(x, as_array(s), low=low, high=high, interior=between)
            for x, s in zip(operands, starts, strict=True)
        ]
    if name is not None:
        join = _joining_by(name)
    else:
        join = joining(reader, op, body, count, scope)
        if sum(n != 1 for n in window) > 1:
            raise unknown(op, "its body is not add, multiply, maximum or minimum, and its window has several axes")
    for axis, (n, stride, step) in enumerate(zip(window, strides, apart, strict=True)):
        operands = _over_axis(join, operands, axis, n, stride, step)
    if name is not None and is_neutral(starts[0], name):
        return operands
    shape = operands[0].spec.shape
    return join([catalog.broadcast_in_dim(as_array(s), shape=shape, dims=()) for s in starts], operands)


def _joining_by(name: str) -> Callable[..., list[Any]]:
    return lambda left, right: [joined(name, left[0], right[0])]


def _padding(op: Any, ndim: int) -> list[tuple[int, int]]:
    if "padding" not in op.attributes:
        return [(0, 0)] * ndim
    return [(int(a), int(b)) for a, b in np.array(op.attributes["padding"]).reshape(ndim, 2)]


def _running_axis(shape: tuple[int, ...], window: tuple[int, ...], padding: list[tuple[int, int]]) -> int | None:
    """Return the axis of a window that extends to the first or last element, or ``None``."""
    axes = [a for a, n in enumerate(window) if n != 1]
    if len(axes) > 1 or any(p != (0, 0) for a, p in enumerate(padding) if a not in axes):
        return None
    if not axes:
        return None
    n = shape[axes[0]]
    return axes[0] if window[axes[0]] == n and padding[axes[0]] in ((n - 1, 0), (0, n - 1)) else None


def _over_axis(join: Callable[..., list[Any]], xs: list[Any], axis: int, n: int, stride: int, step: int) -> list[Any]:
    """Reduce windows of `n` elements `step` apart by combining windows of 1, 2, 4, ... elements."""
    extent = xs[0].spec.shape[axis]
    found = max(0, (extent - (n - 1) * step - 1) // stride + 1) if n else 0
    if found == 0:
        return [_cut(x, axis, 0, 0, 1) for x in xs]
    size, doubled, done, made = 1, xs, 0, None
    while True:
        if n & size:
            part = [_cut(x, axis, done * step, extent - (n - done - size) * step, 1) for x in doubled]
            part = [_cut(p, axis, 0, extent - (n - 1) * step, 1) for p in part]
            made = part if made is None else join(made, part)
            done += size
        if done == n:
            break
        reach = doubled[0].spec.shape[axis] - size * step
        doubled = join(
            [_cut(x, axis, 0, reach, 1) for x in doubled],
            [_cut(x, axis, size * step, reach + size * step, 1) for x in doubled],
        )
        size *= 2
    return [_cut(x, axis, 0, (found - 1) * stride + 1, stride) for x in made or []]


def _cut(x: Any, axis: int, start: int, limit: int, stride: int) -> Any:
    shape = x.spec.shape
    if (start, limit, stride) == (0, shape[axis], 1):
        return x
    begin, end, steps = [0] * len(shape), list(shape), [1] * len(shape)
    begin[axis], end[axis], steps[axis] = start, min(limit, shape[axis]), stride
    return catalog.slice_(x, start=tuple(begin), limit=tuple(end), stride=tuple(steps))


def _is_logaddexp(body: Any) -> bool:
    """Return whether a body is ``log(exp(x) + exp(y))`` in the form that tenferro lowers it to."""
    (result,) = returned(body)
    x, y = arg(0), arg(1)
    match expression_of(result, body):
        case ("stablehlo.add", "", *terms):
            top = apply("maximum", x, y)
            gap = apply("negate", apply("abs", apply("subtract", x, y)))
            tail = apply("log_plus_one", apply("exponential", gap))
            rest = [t for t in terms if t != top]
            match rest:
                case [("stablehlo.select", "", test, ("constant", same), found)]:
                    half = math.isclose(float(same), math.log(2), rel_tol=2e-3)
                    return bool(half and test == compare("EQ", x, y) and found == tail)
    return False


WINDOWS: Final[dict[str, Handler]] = {"stablehlo.reduce_window": _reduce_window}
"""Reductions over windows."""
