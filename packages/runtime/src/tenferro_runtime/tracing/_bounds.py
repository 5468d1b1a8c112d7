"""Bounds of traced integers, and linear relations between them, that hold for every run of a program.

Indices are computed from loop counters, positions and sizes by a few operations, so bounds follow from those of the
operands. With bounds, a program needs no steps that handle negative or out-of-range indices.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from tenferro_runtime.ir._program import Equation, Literal, Operand
from tenferro_tensor import Interval, LinearForm, Primitive, Spec
from tenferro_tensor import catalog as c
from tenferro_tensor_core import DimLike, decide, dim_max, dim_min, floordiv

UNKNOWN: Final = Interval(None, None)

MAX_DEPTH: Final = 64
"""Longest chain of equations that is followed."""

Rule = Callable[[Mapping[str, Any], Sequence[Interval], Sequence[Spec]], Interval]


def interval_of(home: Any, v: int, depth: int = 0) -> Interval:
    """Bounds of the elements of a variable of a program being recorded; `UNKNOWN` unless it is an integer."""
    known: Interval | None = home.intervals.get(v)
    if known is not None:
        return known
    spec = home.spec_of(v)
    if spec.dtype.kind == "b":
        return Interval(0, 1)
    if spec.dtype.kind not in "iu":
        return UNKNOWN
    found = home.intervals[v] = _represented(_found(home, v, depth), spec)
    return found


def _found(home: Any, v: int, depth: int) -> Interval:
    value = home.source_of(v)
    if value is None or depth > MAX_DEPTH:
        return UNKNOWN
    if value.__class__ is not Equation:  # a constant, or a value of an enclosing trace
        return value._interval()  # type: ignore[no-any-return]
    rule = RULES.get(value.op.primitive)
    if rule is None:
        return UNKNOWN
    operands: tuple[Operand, ...] = value.operands
    specs = [home.spec_of(o) for o in operands if o.__class__ is int]
    return rule(value.op.params, [_operand(home, o, depth + 1) for o in operands], specs)


def _operand(home: Any, o: Operand, depth: int) -> Interval:
    if o.__class__ is not Literal:
        return interval_of(home, o, depth)  # type: ignore[arg-type]
    return Interval(o.value, o.value) if o.value.__class__ is int else UNKNOWN


def _represented(found: Interval, spec: Spec) -> Interval:
    """The bounds if the dtype represents all values between them, so that none wraps around."""
    info = np.iinfo(spec.dtype)
    least, most = int(info.min), int(info.max)
    low, high = found
    if low is None and high is None:
        return Interval(0, None) if least == 0 else UNKNOWN
    if all(end is None or _fits(end, least, most, spec.dtype.itemsize) for end in found):
        return Interval(0 if low is None and least == 0 else low, high)
    return Interval(0, None) if least == 0 else UNKNOWN


def _fits(end: DimLike, least: int, most: int, itemsize: int) -> bool:
    """Whether the dtype represents a bound; sizes have 64 bits."""
    if isinstance(end, int):
        return least <= end <= most
    return itemsize == 8 and (least < 0 or decide(end, ">=", 0) is True)


# -- rules -------------------------------------------------------------------------------------------------------------


def _same(params: Any, ins: Sequence[Interval], specs: Any) -> Interval:
    return ins[0]


def _add(params: Any, ins: Sequence[Interval], specs: Any) -> Interval:
    (a, b), (p, q) = ins[:2]
    # With one end unknown a sum could wrap around: an end is known only if the other is.
    return UNKNOWN if None in (a, b, p, q) else Interval(a + p, b + q)  # type: ignore[operator]


def _neg(params: Any, ins: Sequence[Interval], specs: Any) -> Interval:
    a, b = ins[0]
    return UNKNOWN if a is None or b is None else Interval(-b, -a)


def _sub(params: Any, ins: Sequence[Interval], specs: Any) -> Interval:
    return _add(params, (ins[0], _neg(params, ins[1:], specs)), specs)


def _mul(params: Any, ins: Sequence[Interval], specs: Any) -> Interval:
    (a, b), (p, q) = ins
    if None in (a, b, p, q):
        return UNKNOWN
    corners = [x * y for x in (a, b) for y in (p, q)]  # type: ignore[operator]
    return Interval(dim_min(*corners), dim_max(*corners))


def _maximum(params: Any, ins: Sequence[Interval], specs: Any) -> Interval:
    (a, b), (p, q) = ins
    low = p if a is None else a if p is None else dim_max(a, p)
    return Interval(low, None if b is None or q is None else dim_max(b, q))


def _minimum(params: Any, ins: Sequence[Interval], specs: Any) -> Interval:
    (a, b), (p, q) = ins
    high = q if b is None else b if q is None else dim_min(b, q)
    return Interval(None if a is None or p is None else dim_min(a, p), high)


def _clamp(params: Any, ins: Sequence[Interval], specs: Any) -> Interval:
    low, x, high = ins
    return _minimum(params, (_maximum(params, (x, low), specs), high), specs)


def _union(params: Any, ins: Sequence[Interval], specs: Any) -> Interval:
    lows, highs = [i.low for i in ins], [i.high for i in ins]
    return Interval(
        None if None in lows else dim_min(*lows),  # type: ignore[arg-type]
        None if None in highs else dim_max(*highs),  # type: ignore[arg-type]
    )


def _select(params: Any, ins: Sequence[Interval], specs: Any) -> Interval:
    return _union(params, ins[1:], specs)


def _remainder(params: Any, ins: Sequence[Interval], specs: Any) -> Interval:
    low, high = ins[1]
    if low is None or high is None or decide(low, ">=", 0) is not True:
        return UNKNOWN
    return Interval(0, high - 1)  # also for a divisor that may be 0: an axis of that extent has no index


def _floor_divide(params: Any, ins: Sequence[Interval], specs: Any) -> Interval:
    (a, b), (p, q) = ins
    if p is None or p != q or decide(p, ">", 0) is not True:
        return UNKNOWN
    return Interval(None if a is None else floordiv(a, p), None if b is None else floordiv(b, p))


def _bitwise_and(params: Any, ins: Sequence[Interval], specs: Any) -> Interval:
    masks = [i.high for i in ins if i.high is not None and i.low is not None and decide(i.low, ">=", 0)]
    return Interval(0, masks[0] if len(masks) == 1 else dim_min(*masks)) if masks else UNKNOWN


def _shift_right(params: Any, ins: Sequence[Interval], specs: Any) -> Interval:
    (a, b), (p, q) = ins
    if not isinstance(p, int) or p != q or not 0 <= p < 63:
        return UNKNOWN
    return Interval(None if a is None else floordiv(a, 1 << p), None if b is None else floordiv(b, 1 << p))


def _abs(params: Any, ins: Sequence[Interval], specs: Any) -> Interval:
    a, b = ins[0]
    if a is None or b is None:
        return UNKNOWN
    return ins[0] if decide(a, ">=", 0) else Interval(0, dim_max(-a, b))


def _iota(params: Any, ins: Any, specs: Any) -> Interval:
    return Interval(0, params["shape"][params["axis"]] - 1)


def _size(params: Any, ins: Any, specs: Any) -> Interval:
    return Interval(params["size"], params["size"])


def _along(params: Any, ins: Any, specs: Sequence[Spec]) -> Interval:
    return Interval(0, specs[0].shape[params["axis"]] - 1)


def _insertion(params: Any, ins: Any, specs: Sequence[Spec]) -> Interval:
    return Interval(0, specs[0].shape[0])


RULES: Final[dict[Primitive, Rule]] = {
    **dict.fromkeys(
        (
            c.broadcast_in_dim, c.convert, c.dynamic_slice, c.gather, c.reduce_max, c.reduce_min, c.reshape, c.reverse,
            c.slice_, c.sort, c.stop_gradient, c.transfer, c.transpose,
        ),
        _same,
    ),
    **dict.fromkeys((c.argmax, c.argmin, c.argsort), _along),
    c.abs: _abs,
    c.add: _add,
    c.bitwise_and: _bitwise_and,
    c.clamp: _clamp,
    c.concatenate: _union,
    c.dim_value: _size,
    c.dynamic_update_slice: lambda params, ins, specs: _union(params, ins[:2], specs),
    c.floor_divide: _floor_divide,
    c.iota: _iota,
    c.maximum: _maximum,
    c.minimum: _minimum,
    c.mul: _mul,
    c.neg: _neg,
    c.remainder: _remainder,
    c.searchsorted: _insertion,
    c.select: _select,
    c.shift_right: _shift_right,
    c.sub: _sub,
    c.update_slice: lambda params, ins, specs: _union(params, ins, specs) if params["mode"] == "set" else UNKNOWN,
}  # fmt: skip


# -- sums of multiples -------------------------------------------------------------------------------------------------


def linear_form(home: Any, v: int, depth: int = 0) -> LinearForm:
    """A 0-d integer as a constant plus multiples of variables; by default the variable itself."""
    known: LinearForm | None = home.linear_forms.get(v)
    if known is None:
        known = home.linear_forms[v] = _form(home, v, depth) or LinearForm({(id(home), v): 1}, 0)
    return known


def _form(home: Any, v: int, depth: int) -> LinearForm | None:
    value: Any = home.source_of(v)
    if value is None or depth > MAX_DEPTH:
        return None
    if value.__class__ is not Equation:
        return value._linear_form()  # type: ignore[no-any-return]
    p = value.op.primitive
    operands: tuple[Any, ...] = value.operands
    if p is c.dim_value:
        return LinearForm({}, value.op.params["size"])
    if p is c.convert:
        source, target = home.spec_of(operands[0]).dtype, home.spec_of(v).dtype
        widening = source.kind == target.kind == "i" and source.itemsize <= target.itemsize
        return linear_form(home, operands[0], depth + 1) if widening else None
    if p not in (c.add, c.sub, c.mul, c.neg):
        return None
    a, *rest = [_form_of(home, o, depth + 1) for o in operands]
    if p is c.neg:
        return a.times(-1)
    (b,) = rest
    if p is c.mul:
        return None if a.terms and b.terms else a.times(b.constant) if a.terms else b.times(a.constant)
    return a.plus(b if p is c.add else b.times(-1))


def _form_of(home: Any, o: Any, depth: int) -> LinearForm:
    return linear_form(home, o, depth) if isinstance(o, int) else LinearForm({}, o.value)
