"""Element-wise primitives: most are one operation, the others exact compositions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from tenferro_tensor import Primitive, Spec, catalog
from tenferro_tensor.loop_ir import WRITTEN_OUT, Literal, expansion
from tenferro_tensor_core import float16, float32, float64, int32, is_narrow
from tenferro_xla._emitter import HloEmitter, HloValue

_BOOL = np.dtype(bool)


def named(name: str) -> Callable[..., HloValue]:
    """Return the lowering to one operation with the same operands."""
    return lambda e, xs, outs, **_: e.op(name, xs, outs[0])


def parts(e: HloEmitter, z: HloValue) -> tuple[HloValue, HloValue]:
    """Return the real and imaginary parts of a complex value."""
    part = z.spec.with_(dtype=np.empty(0, z.spec.dtype).real.dtype)
    return e.op("real", (z,), part), e.op("imag", (z,), part)


def _by_parts(f: Callable[[HloEmitter, HloValue], HloValue]) -> Callable[..., HloValue]:
    """Return the lowering that applies a real function to both parts of complex numbers."""

    def lower(e: HloEmitter, xs: Any, outs: Any) -> HloValue:
        if not xs[0].spec.cplx:
            return f(e, xs[0])
        re, im = parts(e, xs[0])
        return e.op("complex", (f(e, re), f(e, im)), outs[0])

    return lower


def _floats_only(name: str) -> Callable[..., HloValue]:
    """Return the lowering to an operation that is the identity on integers."""
    return _by_parts(lambda e, x: e.op(name, (x,), x.spec) if x.spec.inexact else x)


def _trunc(e: HloEmitter, xs: Any, outs: Any) -> HloValue:
    (x,) = xs
    if not x.spec.inexact:
        return x  # type: ignore[no-any-return]
    down, up = e.op("floor", (x,), x.spec), e.op("ceil", (x,), x.spec)
    return e.select(e.compare("LT", x, e.constant(0, x.spec)), up, down)


def _compared(direction: str) -> Callable[..., HloValue]:
    return lambda e, xs, outs: e.compare(direction, *xs)


def _any_part(
    test: Callable[[HloEmitter, HloValue], HloValue], join: str, of_integers: bool
) -> Callable[..., HloValue]:
    """Return the lowering of a test of real numbers, combined for the parts of complex numbers, fixed for integers."""

    def lower(e: HloEmitter, xs: Any, outs: Any) -> HloValue:
        (x,) = xs
        if not x.spec.inexact:
            return e.constant(of_integers, outs[0])
        if not x.spec.cplx:
            return test(e, x)
        re, im = parts(e, x)
        return e.op(join, (test(e, re), test(e, im)), outs[0])

    return lower


def _is_finite(e: HloEmitter, x: HloValue) -> HloValue:
    return e.op("is_finite", (x,), x.spec.with_(dtype=_BOOL))


def is_nan(e: HloEmitter, x: HloValue) -> HloValue:
    """Return whether a real number is NaN, that is, differs from itself."""
    return e.compare("NE", x, x)


def _is_inf(e: HloEmitter, x: HloValue) -> HloValue:
    return e.compare("EQ", e.op("abs", (x,), x.spec), e.constant(math.inf, x.spec))


def _signbit(e: HloEmitter, xs: Any, outs: Any) -> HloValue:
    (x,) = xs
    bits = x.spec.with_(dtype=np.dtype(f"int{8 * x.spec.dtype.itemsize}"))
    return e.compare("LT", e.op("bitcast_convert", (x,), bits), e.constant(0, bits))


def _copysign(e: HloEmitter, xs: Any, outs: Any) -> HloValue:
    x, y = xs
    size = e.op("abs", (x,), x.spec)
    return e.select(_signbit(e, (y,), None), e.op("negate", (size,), x.spec), size)


def _scaled_log(base: float) -> Callable[..., HloValue]:
    def lower(e: HloEmitter, xs: Any, outs: Any) -> HloValue:
        y = e.op("log", xs, outs[0])
        return e.op("multiply", (y, e.constant(1 / math.log(base), outs[0])), outs[0])

    return lower


def _exp2(e: HloEmitter, xs: Any, outs: Any) -> HloValue:
    return e.op("power", (e.constant(2, outs[0]), xs[0]), outs[0])


def _hypot(e: HloEmitter, xs: Any, outs: Any) -> HloValue:
    out = outs[0]
    x, y = (e.op("abs", (v,), out) for v in xs)
    long, short = e.op("maximum", (x, y), out), e.op("minimum", (x, y), out)
    safe = e.select(e.compare("EQ", long, e.constant(0, out)), e.constant(1, out), long)
    ratio = e.op("divide", (short, safe), out)
    root = e.op("sqrt", (e.op("add", (e.op("multiply", (ratio, ratio), out), e.constant(1, out)), out),), out)
    inf = e.constant(math.inf, out)
    infinite = e.op("or", (e.compare("EQ", x, inf), e.compare("EQ", y, inf)), out.with_(dtype=_BOOL))
    return e.select(infinite, inf, e.op("multiply", (long, root), out))


def _divided(e: HloEmitter, x: HloValue, y: HloValue) -> tuple[HloValue, HloValue]:
    """Return the quotient rounded down and the remainder with the sign of the divisor, as in NumPy."""
    out = x.spec
    zero, one = e.constant(0, out), e.constant(1, out)
    by_zero = e.compare("EQ", y, zero)
    safe = y if out.inexact else e.select(by_zero, one, y)
    r = e.op("remainder", (x, safe), out)
    nonzero = e.compare("NE", r, zero)
    across = e.op(
        "and", (nonzero, e.compare("NE", e.compare("LT", r, zero), e.compare("LT", safe, zero))), nonzero.spec
    )
    mod = e.select(across, e.op("add", (r, safe), out), r)
    if not out.inexact:
        q = e.op("divide", (x, safe), out)
        q = e.select(across, e.op("subtract", (q, one), out), q)
        return e.select(by_zero, zero, q), e.select(by_zero, zero, mod)
    q = e.op("divide", (e.op("subtract", (x, r), out), safe), out)
    q = e.select(across, e.op("subtract", (q, one), out), q)
    down = e.op("floor", (q,), out)
    far = e.compare("GT", e.op("subtract", (q, down), out), e.constant(0.5, out))
    q = e.select(far, e.op("add", (down, one), out), down)
    ratio = e.op("divide", (x, y), out)
    q = e.select(e.compare("EQ", q, zero), _copysign(e, (q, ratio), (out,)), q)
    mod = e.select(e.compare("EQ", r, zero), _copysign(e, (r, y), (out,)), mod)
    as_ratio = by_zero
    for operand in (x, y):
        infinite = e.compare("EQ", e.op("abs", (operand,), out), e.constant(math.inf, out))
        as_ratio = e.op("or", (as_ratio, infinite), by_zero.spec)
    return e.select(as_ratio, ratio, q), mod


def _fmod(e: HloEmitter, xs: Any, outs: Any) -> HloValue:
    x, y = xs
    if x.spec.inexact:
        return e.op("remainder", xs, outs[0])
    zero = e.constant(0, outs[0])
    by_zero = e.compare("EQ", y, zero)
    r = e.op("remainder", (x, e.select(by_zero, e.constant(1, outs[0]), y)), outs[0])
    return e.select(by_zero, zero, r)


def _shift_right(e: HloEmitter, xs: Any, outs: Any) -> HloValue:
    kind = "logical" if outs[0].dtype.kind == "u" else "arithmetic"
    return e.op(f"shift_right_{kind}", xs, outs[0])


def _population_count(e: HloEmitter, xs: Any, outs: Any) -> HloValue:
    (x,) = xs
    if x.spec.dtype.kind == "i":
        x = e.op("abs", (x,), x.spec)
    return e.convert(e.op("popcnt", (x,), x.spec), np.uint8)


def _abs(e: HloEmitter, xs: Any, outs: Any) -> HloValue:
    return xs[0] if xs[0].spec.dtype.kind in "bu" else e.op("abs", xs, outs[0])


def _sign(e: HloEmitter, xs: Any, outs: Any) -> HloValue:
    (x,) = xs
    if x.spec.cplx:
        return _complex_sign(e, x)
    if x.spec.dtype.kind == "f":  # adding 0 turns -0 into 0
        return e.op("add", (e.op("sign", xs, outs[0]), e.constant(0, outs[0])), outs[0])
    if x.spec.dtype.kind != "u":
        return e.op("sign", xs, outs[0])
    zero = e.constant(0, x.spec)
    return e.select(e.compare("EQ", x, zero), zero, e.constant(1, x.spec))


def _complex_sign(e: HloEmitter, z: HloValue) -> HloValue:
    """Return ``z / |z|``; infinite numbers have the direction of their infinite parts."""
    re, im = parts(e, z)
    part = re.spec
    zero, one, inf = (e.constant(n, part) for n in (0, 1, math.inf))
    sizes = [e.op("abs", (p,), part) for p in (re, im)]
    own = [e.compare("EQ", size, inf) for size in sizes]
    endless = e.op("or", tuple(own), own[0].spec)
    along = []
    for p, infinite in zip((re, im), own, strict=True):
        towards = _copysign(e, (e.select(infinite, one, zero), p), (part,))
        along.append(e.select(e.compare("EQ", p, p), e.select(endless, towards, p), p))
    largest = e.op("maximum", tuple([e.op("abs", (p,), part) for p in along]), part)
    nothing = e.compare("EQ", largest, zero)
    beyond = e.compare("GT", largest, e.constant(float(np.finfo(part.dtype).max) / 4, part))
    factor = e.select(beyond, e.constant(0.25, part), one)
    re, im = (e.op("multiply", (p, factor), part) for p in along)
    size = e.select(nothing, one, _hypot(e, (re, im), (part,)))
    re, im = (e.select(nothing, zero, e.op("divide", (p, size), part)) for p in (re, im))
    return e.op("complex", (re, im), z.spec)


def _conj(e: HloEmitter, xs: Any, outs: Any) -> HloValue:
    if not xs[0].spec.cplx:
        return xs[0]  # type: ignore[no-any-return]
    re, im = parts(e, xs[0])
    return e.op("complex", (re, e.op("negate", (im,), im.spec)), outs[0])


def _real(e: HloEmitter, xs: Any, outs: Any) -> HloValue:
    return parts(e, xs[0])[0] if xs[0].spec.cplx else xs[0]


def _imag(e: HloEmitter, xs: Any, outs: Any) -> HloValue:
    return parts(e, xs[0])[1] if xs[0].spec.cplx else e.constant(0, outs[0])


def converted(e: HloEmitter, xs: Any, outs: Any, *, dtype: Any) -> HloValue:
    """Convert dtypes: complex numbers to their real parts, and to booleans by comparison with zero."""
    (x,) = xs
    if dtype == _BOOL:
        return x if x.spec.dtype == _BOOL else e.compare("NE", x, e.constant(0, x.spec))
    if x.spec.cplx and dtype.kind != "c":
        x = parts(e, x)[0]
    if is_narrow(dtype):  # via float32, rounded to odd, which avoids double rounding
        x = _round_to_odd(e, x) if dtype == float16 and x.spec.dtype == float64 else e.convert(x, float32)
    return e.convert(x, dtype)


def _round_to_odd(e: HloEmitter, x: HloValue) -> HloValue:
    """Convert float64 to float32 with rounding to odd: inexact results have an odd last bit."""
    near = e.convert(x, float32)
    back = e.convert(near, float64)
    bits = e.op("bitcast_convert", (near,), near.spec.with_(dtype=int32))
    beyond = e.compare("GT", e.op("abs", (back,), back.spec), e.op("abs", (x,), x.spec))
    # The bit patterns of numbers of one sign are ordered like their magnitudes.
    towards_zero = e.select(beyond, e.op("subtract", (bits, e.constant(1, bits.spec)), bits.spec), bits)
    odd = e.op("or", (towards_zero, e.constant(1, bits.spec)), bits.spec)
    inexact = e.op("and", (e.compare("NE", back, x), e.compare("EQ", x, x)), beyond.spec)
    return e.op("bitcast_convert", (e.select(inexact, odd, bits),), near.spec)


def _absorbing_mul(e: HloEmitter, xs: Any, outs: Any) -> HloValue:
    x, y = xs
    if outs[0].inexact:
        finite = _any_part(_is_finite, "and", True)(e, (y,), (y.spec.with_(dtype=_BOOL),))
        counts = e.op("or", (e.compare("NE", x, e.constant(0, x.spec)), finite), finite.spec)
        y = e.select(counts, y, e.constant(0, y.spec))
    return e.op("multiply", (x, y), outs[0])


def _clamp(e: HloEmitter, xs: Any, outs: Any) -> HloValue:
    x, lo, hi = xs
    return e.op("minimum", (e.op("maximum", (x, lo), outs[0]), hi), outs[0])


def _lgamma(e: HloEmitter, xs: Any, outs: Any) -> HloValue:
    """XLA's function, except at minus infinity, where SciPy and the other backends have minus infinity."""
    lowest = e.constant(-np.inf, outs[0])
    return e.select(e.compare("EQ", xs[0], lowest), lowest, e.op("chlo.lgamma", xs, outs[0]))


def _digamma(e: HloEmitter, xs: Any, outs: Any) -> HloValue:
    """XLA's function, except at the zeros of both signs, where it has poles of both signs rather than NaN."""
    pole = e.op("divide", (e.constant(-1, outs[0]), xs[0]), outs[0])
    return e.select(e.compare("EQ", xs[0], e.constant(0, outs[0])), pole, e.op("chlo.digamma", xs, outs[0]))


def _polygamma(e: HloEmitter, xs: Any, outs: Any, *, order: int) -> HloValue:
    if order == 0:
        return _digamma(e, xs, outs)
    return e.op("chlo.polygamma", (e.constant(order, outs[0]), xs[0]), outs[0])


def _identity(e: HloEmitter, xs: Any, outs: Any) -> HloValue:
    return xs[0]  # type: ignore[no-any-return]


def _written_out(primitive: Primitive) -> Callable[..., HloValue]:
    """Return the lowering to the statements of `loop_ir.expansion`."""

    def lower(e: HloEmitter, xs: Any, outs: Any, **params: Any) -> HloValue:
        simpler = expansion(primitive.op(**params), *[x.spec.dtype for x in xs])
        assert simpler is not None
        values = {reg.number: x for reg, x in zip(simpler.args, xs, strict=True)}
        for s in simpler.body:
            args = [
                e.constant(a.value, outs[0].with_(dtype=a.dtype)) if isinstance(a, Literal) else values[a.number]
                for a in s.args
            ]
            spec = outs[0].with_(dtype=s.result.dtype)
            values[s.result.number] = ELEMENTWISE[s.op.primitive](e, args, (spec,), **s.op.params)
        return values[simpler.result.number]  # type: ignore[no-any-return, union-attr]

    return lower


_NAMED: Final[dict[Primitive, str]] = {
    catalog.add: "add", catalog.sub: "subtract", catalog.mul: "multiply", catalog.div: "divide", catalog.pow: "power",
    catalog.neg: "negate", catalog.maximum: "maximum", catalog.minimum: "minimum", catalog.atan2: "atan2",
    catalog.sqrt: "sqrt", catalog.rsqrt: "rsqrt", catalog.cbrt: "cbrt", catalog.exp: "exponential",
    catalog.expm1: "exponential_minus_one", catalog.log: "log", catalog.log1p: "log_plus_one", catalog.sin: "sine",
    catalog.cos: "cosine", catalog.tan: "tan", catalog.tanh: "tanh", catalog.asin: "chlo.asin",
    catalog.acos: "chlo.acos", catalog.atan: "chlo.atan", catalog.sinh: "chlo.sinh", catalog.cosh: "chlo.cosh",
    catalog.asinh: "chlo.asinh", catalog.acosh: "chlo.acosh", catalog.atanh: "chlo.atanh", catalog.erf: "chlo.erf",
    catalog.erfc: "chlo.erfc", catalog.erfinv: "chlo.erf_inv", catalog.nextafter: "chlo.next_after",
    catalog.bitwise_and: "and", catalog.bitwise_or: "or", catalog.bitwise_xor: "xor", catalog.bitwise_not: "not",
    catalog.shift_left: "shift_left", catalog.complex: "complex", catalog.select: "select",
}  # fmt: skip

ELEMENTWISE: Final[dict[Primitive, Callable[..., HloValue]]] = {
    **{p: _written_out(p) for p in WRITTEN_OUT},
    **{p: named(name) for p, name in _NAMED.items()},
    catalog.eq: _compared("EQ"),
    catalog.ne: _compared("NE"),
    catalog.lt: _compared("LT"),
    catalog.le: _compared("LE"),
    catalog.gt: _compared("GT"),
    catalog.ge: _compared("GE"),
    catalog.absorbing_mul: _absorbing_mul,
    catalog.abs: _abs,
    catalog.sign: _sign,
    catalog.floor: _floats_only("floor"),
    catalog.ceil: _floats_only("ceil"),
    catalog.round: _floats_only("round_nearest_even"),
    catalog.trunc: _trunc,
    catalog.floor_divide: lambda e, xs, outs: _divided(e, *xs)[0],
    catalog.remainder: lambda e, xs, outs: _divided(e, *xs)[1],
    catalog.fmod: _fmod,
    catalog.copysign: _copysign,
    catalog.signbit: _signbit,
    catalog.is_finite: _any_part(_is_finite, "and", True),
    catalog.is_nan: _any_part(is_nan, "or", False),
    catalog.is_inf: _any_part(_is_inf, "or", False),
    catalog.log2: _scaled_log(2),
    catalog.log10: _scaled_log(10),
    catalog.exp2: _exp2,
    catalog.hypot: _hypot,
    catalog.lgamma: _lgamma,
    catalog.digamma: _digamma,
    catalog.polygamma: _polygamma,
    catalog.shift_right: _shift_right,
    catalog.population_count: _population_count,
    catalog.conj: _conj,
    catalog.real: _real,
    catalog.imag: _imag,
    catalog.convert: converted,
    catalog.clamp: _clamp,
    catalog.stop_gradient: _identity,
}
"""Lowerings of the element-wise primitives."""


def scalar_of(spec: Spec) -> Spec:
    """Return the spec of one element."""
    return spec.with_(shape=())
