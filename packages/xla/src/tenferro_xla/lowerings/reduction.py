"""Reductions, cumulative operations and sorting: operations with a region for a step."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from tenferro_tensor import Primitive, Spec, catalog
from tenferro_xla._emitter import HloEmitter, HloValue
from tenferro_xla._text import i64s
from tenferro_xla.lowerings.elementwise import ELEMENTWISE, is_nan, parts, scalar_of

Start = Callable[[Any], Any]
"""Returns the neutral element of a reduction for a dtype."""


def _least(dtype: Any) -> Any:
    return -math.inf if dtype.kind == "f" else np.iinfo(dtype).min if dtype.kind in "iu" else False


def _greatest(dtype: Any) -> Any:
    return math.inf if dtype.kind == "f" else np.iinfo(dtype).max if dtype.kind in "iu" else True


def joined(e: HloEmitter, name: str, spec: Spec) -> str:
    """Return a region that combines two scalars by one operation."""
    s = scalar_of(spec)
    return e.region((s, s), lambda inner, a, b: (inner.op(name, (a, b), s),))


def _reduce(name: str, start: Start) -> Callable[..., HloValue]:
    def lower(e: HloEmitter, xs: Any, outs: Any, *, axes: Any) -> HloValue:
        return e.reduce(name, xs[0], start(xs[0].spec.dtype), axes)

    return lower


def _arg_reduce(direction: str, start: Start) -> Callable[..., HloValue]:
    """Return the lowering to the index of the first extremum; NaN precedes every number."""

    def lower(e: HloEmitter, xs: Any, outs: Any, *, axis: int) -> HloValue:
        (x,) = xs
        index = x.spec.with_(dtype=np.dtype("int64"))
        s, i = scalar_of(x.spec), scalar_of(index)

        def body(inner: HloEmitter, a: HloValue, ia: HloValue, b: HloValue, ib: HloValue) -> tuple[HloValue, HloValue]:
            flag = i.with_(dtype=np.dtype(bool))
            better, equal = inner.compare(direction, a, b), inner.compare("EQ", a, b)
            if s.inexact:
                na, nb = is_nan(inner, a), is_nan(inner, b)
                only_a = inner.op("and", (na, inner.op("not", (nb,), flag)), flag)
                better = inner.op("or", (better, only_a), flag)
                equal = inner.op("or", (equal, inner.op("and", (na, nb), flag)), flag)
            earlier = inner.op("and", (equal, inner.compare("LT", ia, ib)), flag)
            first = inner.op("or", (better, earlier), flag)
            return inner.select(first, a, b), inner.select(first, ia, ib)

        counter = e.iota(index, axis)
        starts = (e.constant(start(x.spec.dtype), s), e.constant(np.iinfo(np.int64).max, i))
        best = outs[0].with_(dtype=x.spec.dtype)
        return e.ops(
            "reduce", (x, counter, *starts), (best, outs[0]), f"dimensions = {i64s((axis,))}",
            (e.region((s, i, s, i), body),),
        )[1]  # fmt: skip

    return lower


def _scan(step: str | Callable[..., HloValue], start: Start) -> Callable[..., HloValue]:
    """Return the lowering to a window from the start of the axis, or, if reversed, to its end."""

    def lower(e: HloEmitter, xs: Any, outs: Any, *, axis: int, reverse: bool) -> HloValue:
        (x,) = xs
        n, ndim = x.spec.shape[axis], x.spec.ndim
        if x.spec.size == 0:
            return x  # type: ignore[no-any-return]
        s = scalar_of(x.spec)
        neutral = e.constant(start(x.spec.dtype), s)
        window = i64s(n if a == axis else 1 for a in range(ndim))
        reach = (0, n - 1) if reverse else (n - 1, 0)
        rows = ", ".join(f"[{reach[0]}, {reach[1]}]" if a == axis else "[0, 0]" for a in range(ndim))
        body = step if callable(step) else lambda inner, ab, outs: inner.op(step, ab, outs[0])
        region = e.region((s, s), lambda inner, a, b: (body(inner, (a, b), (s,)),))
        return e.op(
            "reduce_window",
            (x, neutral),
            outs[0],
            f"window_dimensions = {window}, padding = dense<[{rows}]> : tensor<{ndim}x2xi64>",
            (region,),
        )

    return lower


def _before(e: HloEmitter, a: HloValue, b: HloValue, descending: bool) -> HloValue:
    """Return whether `a` precedes `b`: by real part, then imaginary part; NaN is last in both orders."""
    pairs = list(zip(parts(e, a), parts(e, b))) if a.spec.cplx else [(a, b)]
    keys = [("GT" if descending else "LT", x, y) for x, y in pairs]
    if a.spec.inexact:
        keys = [("LT", is_nan(e, x), is_nan(e, y)) for x, y in pairs] + keys
    *first, last = keys
    before = e.compare(*last)
    for direction, x, y in reversed(first):
        ahead, behind = e.compare(direction, x, y), e.compare(direction, y, x)
        flag = before.spec
        before = e.op("or", (ahead, e.op("and", (e.op("not", (behind,), flag), before), flag)), flag)
    return before


def _sort(e: HloEmitter, xs: Any, outs: Any, *, axis: int, descending: bool) -> HloValue:
    s = scalar_of(xs[0].spec)
    region = e.region((s, s), lambda inner, a, b: (_before(inner, a, b, descending),))
    return e.op("sort", xs, outs[0], f"dimension = {axis} : i64, is_stable = true", (region,))


def _argsort(e: HloEmitter, xs: Any, outs: Any, *, axis: int, descending: bool) -> HloValue:
    (x,) = xs
    s, i = scalar_of(x.spec), scalar_of(outs[0])
    counter = e.iota(outs[0], axis)
    region = e.region((s, s, i, i), lambda inner, a, b, _ia, _ib: (_before(inner, a, b, descending),))
    attributes = f"dimension = {axis} : i64, is_stable = true"
    return e.ops("sort", (x, counter), (x.spec, outs[0]), attributes, (region,))[1]


REDUCTIONS: Final[dict[Primitive, Callable[..., HloValue]]] = {
    catalog.reduce_sum: _reduce("add", lambda dtype: 0),
    catalog.reduce_prod: _reduce("multiply", lambda dtype: 1),
    catalog.reduce_max: _reduce("maximum", _least),
    catalog.reduce_min: _reduce("minimum", _greatest),
    catalog.reduce_all: _reduce("and", lambda dtype: True),
    catalog.reduce_any: _reduce("or", lambda dtype: False),
    catalog.argmax: _arg_reduce("GT", _least),
    catalog.argmin: _arg_reduce("LT", _greatest),
    catalog.cumsum: _scan("add", lambda dtype: 0),
    catalog.cumprod: _scan("multiply", lambda dtype: 1),
    catalog.cummax: _scan("maximum", _least),
    catalog.cummin: _scan("minimum", _greatest),
    catalog.cumlogsumexp: _scan(ELEMENTWISE[catalog.logaddexp], _least),
    catalog.sort: _sort,
    catalog.argsort: _argsort,
}
"""Lowerings of reductions, cumulative operations and sorts."""
