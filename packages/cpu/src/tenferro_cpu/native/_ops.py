"""Which primitives have a native form, and what it is.

A real value is a `Vec`, a complex one a `Pair`, a boolean one a mask. What is missing here stays on NumPy: integer
division (it warns), powers, conversions of floating point to integers (out of range they are the processor's), special
functions.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from tenferro_cpu.native import _math
from tenferro_cpu.native._emit import BITS, Block, Vec
from tenferro_tensor import Op, Primitive
from tenferro_tensor.catalog import analytic, arithmetic, bits, comparison, numbers


@dataclass(frozen=True, slots=True, eq=False)
class Pair:
    """A complex value as two vectors."""

    re: Vec
    im: Vec


Value: TypeAlias = Vec | Pair


@dataclass(frozen=True, slots=True)
class Site:
    """Where an op is applied: the dtype of its operands and of its result."""

    block: Block
    dtype: np.dtype[Any]
    out: np.dtype[Any]

    @property
    def unsigned(self) -> bool:
        return self.dtype.kind == "u"


Rule: TypeAlias = Callable[..., Value]


def kind_of(dtype: np.dtype[Any]) -> str:
    """Element kind of a dtype; of a complex one that of its parts.

    >>> kind_of(np.dtype("complex64")), kind_of(np.dtype("uint8")), kind_of(np.dtype("bool"))
    ('f32', 'i8', 'i1')
    """
    if dtype.kind == "c":
        return f"f{dtype.itemsize * 4}"
    return "i1" if dtype.kind == "b" else ("f" if dtype.kind == "f" else "i") + str(dtype.itemsize * 8)


def literal(block: Block, value: Any, dtype: np.dtype[Any]) -> Value:
    """A number in every lane; integers wrap as NumPy's conversion does."""
    kind = kind_of(dtype)
    if dtype.kind == "c":
        z = complex(value)
        return Pair(block.splat(kind, z.real), block.splat(kind, z.imag))
    return block.splat(kind, value)


def _parts(f: Callable[..., Vec]) -> Rule:
    """`f` part by part."""

    def rule(site: Site, *args: Value) -> Value:
        if isinstance(args[0], Pair):
            return Pair(f(*(a.re for a in args)), f(*(a.im for a in args)))  # type: ignore[union-attr]
        return f(*args)

    return rule


def _real(f: Callable[..., Vec]) -> Rule:
    return lambda site, *args: f(*args)


def _logical_or(real: Callable[..., Value], boolean: Callable[..., Vec]) -> Rule:
    """`boolean` on masks."""
    return lambda site, *args: boolean(*args) if site.dtype.kind == "b" else real(site, *args)


def _mul(site: Site, x: Value, y: Value) -> Value:
    if isinstance(x, Pair) and isinstance(y, Pair):
        return Pair(x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re)
    assert isinstance(x, Vec)
    return x * y  # type: ignore[operator]


def _div(site: Site, x: Value, y: Value) -> Value:
    if isinstance(x, Vec):
        return x / y  # type: ignore[operator]
    assert isinstance(y, Pair)
    # Smith's division, as NumPy does it: scaled by the larger part of the divisor.
    where = site.block.where
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


def _abs(site: Site, x: Value) -> Value:
    if isinstance(x, Pair):
        return _math.hypot(x.re, x.im)
    if site.dtype.kind == "f":
        return _math.absolute(x)
    return x if site.dtype.kind in "bu" else site.block.where(x < 0, 0 - x, x)


def _sign(site: Site, x: Vec) -> Value:
    if site.unsigned:
        return site.block.where(x.equals(0), x, x.like(1))
    result = site.block.where(x > 0, x.like(1), site.block.where(x < 0, x.like(-1), x.like(0)))
    return site.block.where(x.is_nan, x, result) if site.dtype.kind == "f" else result


def _order(site: Site, x: Vec, floating: str, signed: str, y: Vec) -> Vec:
    return x.compare(floating, signed.replace("s", "u", 1) if site.unsigned else signed, y)


def larger(site: Site, x: Vec, y: Vec) -> Vec:
    """The larger of two; NaN wins."""
    if site.dtype.kind == "b":
        return x | y
    first = _order(site, x, "ogt", "sgt", y)
    return site.block.where(first | x.is_nan if site.dtype.kind == "f" else first, x, y)


def smaller(site: Site, x: Vec, y: Vec) -> Vec:
    """The smaller of two; NaN wins."""
    if site.dtype.kind == "b":
        return x & y
    first = _order(site, x, "olt", "slt", y)
    return site.block.where(first | x.is_nan if site.dtype.kind == "f" else first, x, y)


def _clamp(site: Site, x: Vec, lo: Vec, hi: Vec) -> Value:
    return smaller(site, larger(site, x, lo), hi)


def _comparison(floating: str, signed: str) -> Rule:
    def rule(site: Site, x: Vec, y: Vec) -> Value:
        if site.dtype.kind == "b":
            return x.compare("?", signed.replace("s", "u", 1), y)
        return _order(site, x, floating, signed, y)

    return rule


def _eq(site: Site, x: Value, y: Value) -> Value:
    if isinstance(x, Pair):
        assert isinstance(y, Pair)
        return x.re.equals(y.re) & x.im.equals(y.im)
    return x.equals(y)  # type: ignore[arg-type]


def _ne(site: Site, x: Value, y: Value) -> Value:
    if isinstance(x, Pair):
        assert isinstance(y, Pair)
        return x.re.differs(y.re) | x.im.differs(y.im)
    return x.differs(y)  # type: ignore[arg-type]


def _class(test: Callable[[Vec], Vec], join: str, whole: bool) -> Rule:
    """A classification of floating-point numbers; whole numbers have the answer `whole`."""

    def rule(site: Site, x: Value) -> Value:
        if isinstance(x, Pair):
            a, b = test(x.re), test(x.im)
            return a & b if join == "and" else a | b
        if site.dtype.kind == "f":
            return test(x)
        return site.block.splat("i1", whole)

    return rule


def _select(site: Site, pred: Vec, x: Value, y: Value) -> Value:
    if isinstance(x, Pair) and isinstance(y, Pair):
        return Pair(site.block.where(pred, x.re, y.re), site.block.where(pred, x.im, y.im))
    return site.block.where(pred, x, y)  # type: ignore[arg-type]


def _whole(rounding: str) -> Rule:
    def rule(site: Site, x: Value) -> Value:
        if isinstance(x, Pair):
            return Pair(site.block.call(rounding, x.re), site.block.call(rounding, x.im))
        return site.block.call(rounding, x) if site.dtype.kind == "f" else x

    return rule


def _shift(left: bool) -> Rule:
    def rule(site: Site, x: Vec, y: Vec) -> Value:
        # Shifts by the width or more are not defined in LLVM; NumPy shifts everything out.
        width = BITS[x.kind]
        inside = y.compare("?", "ult", width)
        by = site.block.where(inside, y, y.like(0))
        word = "shl" if left else "lshr" if site.unsigned else "ashr"
        shifted = site.block.apply(f"{word} {site.block.vector(x.kind)} %s, %s", x.kind, x, by)
        rest = x.like(0) if left or site.unsigned else x >> (width - 1)
        return site.block.where(inside, shifted, rest)

    return rule


def _population(site: Site, x: Vec) -> Value:
    size = x if site.unsigned else site.block.where(x < 0, 0 - x, x)
    return resized(site.block.call("ctpop", size), "i8", False)


def resized(x: Vec, kind: str, signed: bool) -> Vec:
    """Integer lanes of another width."""
    if BITS[kind] < BITS[x.kind]:
        return x.block.cast("trunc", x, kind)
    return x.block.cast("sext" if signed else "zext", x, kind)


def converted(x: Value, source: np.dtype[Any], target: np.dtype[Any]) -> Value:
    """`x` in another dtype, unchecked."""
    if isinstance(x, Pair):
        if target.kind == "b":
            return x.re.differs(0.0) | x.im.differs(0.0)
        if target.kind != "c":
            return converted(x.re, np.dtype(f"f{source.itemsize // 2}"), target)
        return Pair(_resized_float(x.re, kind_of(target)), _resized_float(x.im, kind_of(target)))
    if target.kind == "c":
        part = converted(x, source, np.dtype(f"f{target.itemsize // 2}"))
        assert isinstance(part, Vec)
        return Pair(part, part.like(0.0))
    kind = kind_of(target)
    if target.kind == "b":
        return x if source.kind == "b" else x.differs(0)
    if source.kind == "f":
        return _resized_float(x, kind)
    if target.kind == "f":
        return x.block.cast("uitofp" if source.kind in "bu" else "sitofp", x, kind)
    return resized(x, kind, source.kind == "i")


def _resized_float(x: Vec, kind: str) -> Vec:
    return x.block.cast("fptrunc" if kind == "f32" else "fpext", x, kind)


def _convert(site: Site, x: Value, *, dtype: Any) -> Value:
    return converted(x, site.dtype, site.out)


def _is_inf(x: Vec) -> Vec:
    return _math.absolute(x).equals(math.inf)


def _is_finite(x: Vec) -> Vec:
    return _math.absolute(x) < math.inf


def _rsqrt(site: Site, x: Vec) -> Value:
    return 1.0 / _math.sqrt(x)


def _conj(site: Site, x: Value) -> Value:
    return Pair(x.re, -x.im) if isinstance(x, Pair) else x


def _real_part(site: Site, x: Value) -> Value:
    return x.re if isinstance(x, Pair) else x


def _imaginary_part(site: Site, x: Value) -> Value:
    return x.im if isinstance(x, Pair) else x.like(0)


def _same(site: Site, x: Value) -> Value:
    return x


# Kinds of dtype for which a rule holds, as NumPy's letters, and the rule.
RULES: dict[Primitive, tuple[str, Rule]] = {
    arithmetic.add: ("biufc", _logical_or(_parts(lambda x, y: x + y), lambda x, y: x | y)),
    arithmetic.sub: ("iufc", _parts(lambda x, y: x - y)),
    arithmetic.mul: ("biufc", _logical_or(_mul, lambda x, y: x & y)),
    arithmetic.div: ("fc", _div),
    arithmetic.neg: ("iufc", _parts(lambda x: -x)),
    arithmetic.abs: ("biufc", _abs),
    arithmetic.sign: ("iuf", _sign),
    arithmetic.maximum: ("biuf", larger),
    arithmetic.minimum: ("biuf", smaller),
    arithmetic.clamp: ("biuf", _clamp),
    arithmetic.copysign: ("f", _real(_math.with_sign)),
    arithmetic.floor: ("biuf", _whole("floor")),
    arithmetic.ceil: ("biuf", _whole("ceil")),
    arithmetic.trunc: ("biuf", _whole("trunc")),
    arithmetic.round: ("biufc", _whole("roundeven")),
    numbers.conj: ("biufc", _conj),
    numbers.real: ("biufc", _real_part),
    numbers.imag: ("biufc", _imaginary_part),
    numbers.complex: ("f", lambda site, re, im: Pair(re, im)),
    numbers.convert: ("biufc", _convert),
    numbers.stop_gradient: ("biufc", _same),
    comparison.eq: ("biufc", _eq),
    comparison.ne: ("biufc", _ne),
    comparison.lt: ("biuf", _comparison("olt", "slt")),
    comparison.le: ("biuf", _comparison("ole", "sle")),
    comparison.gt: ("biuf", _comparison("ogt", "sgt")),
    comparison.ge: ("biuf", _comparison("oge", "sge")),
    comparison.is_nan: ("biufc", _class(lambda x: x.is_nan, "or", False)),
    comparison.is_inf: ("biufc", _class(_is_inf, "or", False)),
    comparison.is_finite: ("biufc", _class(_is_finite, "and", True)),
    comparison.signbit: ("f", lambda site, x: x.bits < 0),
    comparison.select: ("biufc", _select),
    bits.bitwise_and: ("biu", _real(lambda x, y: x & y)),
    bits.bitwise_or: ("biu", _real(lambda x, y: x | y)),
    bits.bitwise_xor: ("biu", _real(lambda x, y: x ^ y)),
    bits.bitwise_not: ("biu", _real(lambda x: ~x)),
    bits.shift_left: ("iu", _shift(True)),
    bits.shift_right: ("iu", _shift(False)),
    bits.population_count: ("iu", _population),
    analytic.sqrt: ("f", _real(_math.sqrt)),
    analytic.rsqrt: ("f", _rsqrt),
}

# The inline library is written for fused multiply-add.
FUSED_RULES: dict[Primitive, tuple[str, Rule]] = {
    getattr(analytic, name): ("f", _real(getattr(_math, name)))
    for name in (
        "exp", "exp2", "expm1", "log", "log1p", "log2", "log10", "sin", "cos", "tan", "asin", "acos", "atan", "sinh",
        "cosh", "tanh", "asinh", "acosh", "atanh", "atan2", "hypot", "logaddexp",
    )
}  # fmt: skip


def rule_for(primitive: Primitive, dtypes: tuple[np.dtype[Any], ...], out: np.dtype[Any] | None, fused: bool) -> Any:
    """The rule of a primitive for operands of these dtypes, or None where NumPy must serve."""
    found = RULES.get(primitive) or (FUSED_RULES.get(primitive) if fused else None)
    ruled = next((d for i, d in enumerate(dtypes) if i != primitive.chooser), None)
    if found is None or ruled is None or ruled.kind not in found[0]:
        return None
    if not fused and ruled.kind == "c" and primitive in (arithmetic.abs,):
        return None
    if primitive is numbers.convert and out is not None and ruled.kind in "fc" and out.kind in "iu":
        return None
    return found[1]


def apply(block: Block, op: Op, dtypes: tuple[np.dtype[Any], ...], out: np.dtype[Any], *args: Value) -> Value:
    """The native form of one application; `rule_for` tells beforehand whether there is one."""
    ruled = next(d for i, d in enumerate(dtypes) if i != op.primitive.chooser)
    rule = rule_for(op.primitive, dtypes, out, block.fused)
    return rule(Site(block, ruled, out), *args, **op.params)  # type: ignore[no-any-return]
