"""Rules of arithmetic and extrema. Integers wrap."""

from __future__ import annotations

import math
from collections.abc import Callable

from tenferro_cpu.native.codegen.builder import Vec
from tenferro_cpu.native.codegen.operations import _math
from tenferro_cpu.native.codegen.operations._value import OpContext, Pair, Rule, Value


def parts(f: Callable[..., Vec]) -> Rule:
    """Apply `f` to each part."""

    def rule(context: OpContext, *args: Value) -> Value:
        if isinstance(args[0], Pair):
            return Pair(f(*(a.re for a in args)), f(*(a.im for a in args)))  # type: ignore[union-attr]
        return f(*args)

    return rule


def logical_or(usual: Callable[..., Value], boolean: Callable[..., Vec]) -> Rule:
    """`boolean` on masks, `usual` on numbers."""
    return lambda context, *args: boolean(*args) if context.dtype.kind == "b" else usual(context, *args)


def mul(context: OpContext, x: Value, y: Value) -> Value:
    if isinstance(x, Pair) and isinstance(y, Pair):
        return Pair(x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re)
    assert isinstance(x, Vec)
    return x * y  # type: ignore[operator]


def absorbing_mul(context: OpContext, x: Value, y: Value) -> Value:
    """A product in which a zero of `x` is zero even with an infinity or NaN of `y`."""
    where = context.block.where
    if isinstance(x, Pair) and isinstance(y, Pair):
        keep = x.re.differs(0.0) | x.im.differs(0.0) | (_finite(y.re) & _finite(y.im))
        return mul(context, x, Pair(where(keep, y.re, 0.0), where(keep, y.im, 0.0)))
    assert isinstance(x, Vec) and isinstance(y, Vec)
    if context.dtype.kind == "b":
        return x & y
    return x * (where(x.differs(0.0) | _finite(y), y, 0.0) if context.dtype.kind == "f" else y)


def _finite(x: Vec) -> Vec:
    return _math.absolute(x).differs(float("inf")) & ~x.is_nan


def div(context: OpContext, x: Value, y: Value) -> Value:
    if isinstance(x, Vec):
        return x / y  # type: ignore[operator]
    assert isinstance(y, Pair)
    # Smith's division, as NumPy does it: scaled by the larger part of the divisor.
    where = context.block.where
    big = _math.absolute(y.re) >= _math.absolute(y.im)
    large, small = where(big, y.re, y.im), where(big, y.im, y.re)
    nothing = large.equals(0.0) & small.equals(0.0)
    ratio = small / large
    scale = 1.0 / (large + small * ratio)
    re = where(big, x.re + x.im * ratio, x.re * ratio + x.im) * scale
    im = where(big, x.im - x.re * ratio, x.im * ratio - x.re) * scale
    # A zero divisor gives signed infinities and NaN part by part.
    zero = _math.absolute(y.re)
    return Pair(where(nothing, x.re / zero, re), where(nothing, x.im / zero, im))


def magnitude(context: OpContext, x: Value) -> Vec:
    if isinstance(x, Pair):
        return _math.hypot(x.re, x.im)
    if context.dtype.kind == "f":
        return _math.absolute(x)
    return x if context.dtype.kind in "bu" else context.block.where(x < 0, 0 - x, x)


def sign(context: OpContext, x: Value) -> Value:
    where = context.block.where
    if isinstance(x, Pair):
        return _complex_sign(x)
    if context.unsigned:
        return where(x.equals(0), x, x.like(1))
    result = where(x > 0, x.like(1), where(x < 0, x.like(-1), x.like(0)))
    return where(x.is_nan, x, result) if context.dtype.kind == "f" else result


def _complex_sign(z: Pair) -> Pair:
    """The direction of a number; infinities are on an axis, or half-way between two."""
    where = z.re.block.where
    re_endless, im_endless = (_math.absolute(part).equals(math.inf) for part in (z.re, z.im))
    endless = re_endless | im_endless
    re, im = (
        where(endless & ~part.is_nan, _math.with_sign(where(own, part.like(1.0), part.like(0.0)), part), part)
        for part, own in ((z.re, re_endless), (z.im, im_endless))
    )
    size = _math.hypot(re, im)
    # Sizes beyond the range, and those of a few bits.
    scale = where(size.equals(math.inf), size.like(0.25), where(size < 2.0**-100, size.like(2.0**60), size.like(1.0)))
    re, im = re * scale, im * scale
    size = _math.hypot(re, im)
    nothing = size.equals(0.0)
    size = where(nothing, size.like(1.0), size)
    return Pair(*(where(nothing, part.like(0.0), part / size) for part in (re, im)))


def order(context: OpContext, x: Vec, floating: str, signed: str, y: Vec) -> Vec:
    """Mask of the predicate for the dtype of the operands."""
    return x.compare(floating, signed.replace("s", "u", 1) if context.unsigned else signed, y)


def larger(context: OpContext, x: Vec, y: Vec) -> Vec:
    """The larger of two; NaN wins."""
    if context.dtype.kind == "b":
        return x | y
    first = order(context, x, "ogt", "sgt", y)
    return context.block.where(first | x.is_nan if context.dtype.kind == "f" else first, x, y)


def smaller(context: OpContext, x: Vec, y: Vec) -> Vec:
    """The smaller of two; NaN wins."""
    if context.dtype.kind == "b":
        return x & y
    first = order(context, x, "olt", "slt", y)
    return context.block.where(first | x.is_nan if context.dtype.kind == "f" else first, x, y)


def clamp(context: OpContext, x: Vec, lo: Vec, hi: Vec) -> Value:
    return smaller(context, larger(context, x, lo), hi)


def whole(rounding: str) -> Rule:
    """Rounding to whole numbers, part by part; integers are whole."""

    def rule(context: OpContext, x: Value) -> Value:
        if isinstance(x, Pair):
            return Pair(context.block.call(rounding, x.re), context.block.call(rounding, x.im))
        return context.block.call(rounding, x) if context.dtype.kind == "f" else x

    return rule


def nextafter(context: OpContext, x: Vec, y: Vec) -> Value:
    where = context.block.where
    # The bits of numbers of one sign are in the order of their sizes.
    away = (x < y) ^ (x.bits < 0)
    stepped = (x.bits + where(away, x.bits.like(1), -1)).float
    stepped = where(x.equals(0.0), _math.with_sign(x.bits.like(1).float, y), stepped)
    stepped = where(x.equals(y), y, stepped)
    return where(x.is_nan, x, where(y.is_nan, y, stepped))


def rsqrt(context: OpContext, x: Vec) -> Value:
    return 1.0 / _math.sqrt(x)
