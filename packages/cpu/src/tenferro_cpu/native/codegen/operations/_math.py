"""Elementary functions on vectors, for f32 and f64.

Bounds in units in the last place, verified by tests over the whole range, including subnormal results:
exp exp2 log rsqrt 1.5; sqrt 0.5; all others 2.5 (hypot sin cos tan asin acos atan atan2 sinh cosh tanh asinh acosh
atanh expm1 log1p log2 log10). Special values follow C99. Every function requires fused
multiply-add.

Polynomials are Chebyshev interpolants computed with 60 digits. Range reductions: W. J. Cody, W. Waite, Software Manual
for the Elementary Functions (1980); logarithms and inverse functions after the fdlibm of Sun Microsystems (1993). With
AVX-512, exponentials and logarithms are those of `_math_wide`.
"""

import math

from tenferro_cpu.native.codegen.builder import BITS, Vec
from tenferro_cpu.native.codegen.builder import _avx512 as avx512
from tenferro_cpu.native.codegen.operations import _math_wide as wide
from tenferro_cpu.native.codegen.operations._math_tables import (
    BIAS,
    EXP,
    EXPM1,
    LN2,
    LN2_SHORT,
    LOG,
    LOG2_E,
    LOG10_2_SHORT,
    LOG10_E,
    MANTISSA,
    NARROW,
    SMALLEST_NORMAL,
    SQRT_HALF_BITS,
    WIDE,
)


def fma(x: Vec, y: "Vec | float", z: "Vec | float") -> Vec:
    """``x * y + z``, rounded once."""
    return x.block.call("fma", x, x.like(y), x.like(z))


def absolute(x: Vec) -> Vec:
    return x.block.call("fabs", x)


def with_sign(x: Vec, sign: Vec) -> Vec:
    return x.block.call("copysign", x, sign)


def sqrt(x: Vec) -> Vec:
    return x.block.call("sqrt", x)


def polynomial(x: Vec, coefficients: tuple[float, ...]) -> Vec:
    """Estrin's scheme: half the depth of Horner's, so that short chains overlap."""
    terms: list[Vec | float] = list(coefficients)
    power = x
    while len(terms) > 1:
        paired: list[Vec | float] = []
        for low, high in zip(terms[::2], terms[1::2]):
            paired.append(fma(power, high, low))
        if len(terms) % 2:
            paired.append(terms[-1])
        terms = paired
        if len(terms) > 1:
            power = power * power
    result = terms[0]
    assert isinstance(result, Vec)
    return result


def integer(x: Vec) -> Vec:
    """Convert whole floating-point lanes below 2^31 to i32."""
    return x.block.cast("fptosi", x, "i32")


def scaled(x: Vec, n: Vec) -> Vec:
    """``x * 2**n`` for whole `n` of the kind of `x`, rounded once, also for subnormal results."""
    block, kind = x.block, x.kind
    if wide.serves(x):
        return avx512.scaled(x, n)
    # Two factors, each a normal number: the range of n is twice the exponent's.
    whole = block.cast("sext", integer(n), f"i{BITS[kind]}")
    half = whole >> 1
    first = ((half + BIAS[kind]) << MANTISSA[kind]).float
    second = ((whole - half + BIAS[kind]) << MANTISSA[kind]).float
    return x * first * second


def _clamped(x: Vec, low: float, high: float) -> Vec:
    """Clamp to bounds; NaN stays NaN."""
    if wide.serves(x):
        return avx512.bounded(x, low, high)
    x = x.block.where(x < low, x.like(low), x)
    return x.block.where(x > high, x.like(high), x)


EXP_RANGE = {WIDE: (-760.0, 720.0), NARROW: (-106.0, 90.0)}


def _reduced(x: Vec) -> tuple[Vec, Vec]:
    """x = n ln 2 + r."""
    n = x.block.call("rint", x * LOG2_E[x.kind][0])
    high, low = LN2[x.kind]
    return n, fma(n, -low, fma(n, -high, x))


def exp(x: Vec) -> Vec:
    x = _clamped(x, *EXP_RANGE[x.kind])
    if wide.serves(x):
        return wide.exp(x)
    n, r = _reduced(x)
    return scaled(fma(r * r, polynomial(r, EXP[x.kind]), r) + 1.0, n)


def exp2(x: Vec) -> Vec:
    x = _clamped(x, *((-1100.0, 1030.0) if x.kind == WIDE else (-160.0, 130.0)))
    if wide.serves(x):
        return wide.exp2(x)
    n = x.block.call("rint", x)
    high, low = LN2[x.kind]
    whole = x - n
    r = whole * high
    error = fma(whole, low, fma(whole, high, -r))
    return scaled(fma(r * r, polynomial(r, EXP[x.kind]), error) + r + 1.0, n)


def _expm1_parts(x: Vec) -> tuple[Vec, Vec, Vec]:
    """exp(x) - 1 = 2^n (p + q), with the larger part q exact."""
    n, r = _reduced(x)
    p = fma(r * r, polynomial(r, EXPM1[x.kind]), r)
    return n, p, 1.0 - scaled(x.like(1.0), -n)


def expm1(x: Vec) -> Vec:
    low = -44.0 if x.kind == WIDE else -20.0
    found = with_sign(_expm1(_clamped(x, low, EXP_RANGE[x.kind][1])), x)
    return _linear(x, found)


def _linear(x: Vec, found: Vec) -> Vec:
    """`found`, or `x` itself if it is so small that halving may lose bits."""
    return x.block.where(absolute(x) < 2.0**-100, x, found)


def _expm1(x: Vec, halvings: float = 0.0) -> Vec:
    """``(exp(x) - 1) / 2**halvings`` of a bounded `x`."""
    if wide.serves(x):
        return wide.expm1(x, halvings)
    n, p, q = _expm1_parts(x)
    return scaled(p + q, n - halvings)


def tanh(x: Vec) -> Vec:
    double = _clamped(absolute(x) * 2.0, 0.0, 44.0 if x.kind == WIDE else 20.0)
    if wide.serves(x):
        return with_sign(wide.tanh(double), x)
    n, p, q = _expm1_parts(double)
    total = p + q
    lost = scaled((q - total) + p, n - 1.0)
    e = scaled(total, n)
    y = e / (e + 2.0)
    rest = 1.0 - y  # the derivative by e is 2/(e+2)^2 = rest^2 / 2
    return with_sign(fma(lost, rest * rest, y), x)


def sinh(x: Vec) -> Vec:
    size = _clamped(absolute(x), 0.0, EXP_RANGE[x.kind][1])
    half = _expm1(size, 1.0)
    # e/2 + e/(e+1)/2 with e = exp - 1; of an infinite half there is nothing to add.
    rest = x.block.where(half.equals(math.inf), x.like(0.0), half / fma(half, 2.0, 1.0))
    return _linear(x, with_sign(half + rest, x))


def cosh(x: Vec) -> Vec:
    size = _clamped(absolute(x), 0.0, EXP_RANGE[x.kind][1])
    if wide.serves(x):
        half = wide.exp(size, 1.0)
    else:
        n, r = _reduced(size)
        half = scaled(fma(r * r, polynomial(r, EXP[x.kind]), r) + 1.0, n - 1.0)
    return half + 0.25 / half


def split(x: Vec) -> tuple[Vec, Vec]:
    """x = 2^k m with m between 1/sqrt(2) and sqrt(2), for positive finite `x`."""
    block, kind = x.block, x.kind
    tiny = x < SMALLEST_NORMAL[kind]
    shift = float(MANTISSA[kind] + 2)
    x = block.where(tiny, x * 2.0**shift, x)
    offset = x.bits - SQRT_HALF_BITS[kind]
    whole = offset >> MANTISSA[kind]
    m = (x.bits - (whole << MANTISSA[kind])).float
    k = _from_integer(whole, kind)
    return block.where(tiny, k - shift, k), m


def _from_integer(n: Vec, kind: str) -> Vec:
    """Convert small integers to floating point; AVX2 converts no others."""
    return n.block.cast("sitofp", n.block.cast("trunc", n, "i32"), kind)


def _log_tail(f: Vec) -> tuple[Vec, Vec]:
    """log(1 + f) = f - (h - s (h + R)); returns h = f^2/2 and s (h + R)."""
    s = f / (f + 2.0)
    z = s * s
    h = f * f * 0.5
    return h, s * fma(z, polynomial(z, LOG[f.kind]), h)


def _log_edges(x: Vec, result: Vec) -> Vec:
    """Logarithms of operands that are not positive and finite."""
    where = x.block.where
    result = where(x.equals(math.inf), x, result)
    result = where(x.equals(0.0), x.like(-math.inf), result)
    return where(x.compare("uge", "?", 0.0), result, math.nan)


def log(x: Vec) -> Vec:
    if wide.serves(x):
        return wide.log(x)
    k, m = split(x)
    f = m - 1.0
    h, tail = _log_tail(f)
    high, low = LN2_SHORT[x.kind]
    result = fma(k, high, f - (h - fma(k, low, tail)))
    return _nan_through(x, _log_edges(x, result))


def _nan_through(x: Vec, result: Vec) -> Vec:
    return x.block.where(x.is_nan, x, result)


def log1p(x: Vec) -> Vec:
    if wide.serves(x):
        return x.block.where(x.equals(0.0), x, wide.log1p(x))
    u = x + 1.0
    lost = x.block.where(x > 1.0, 1.0 - (u - x), x - (u - 1.0))
    k, m = split(u)
    f = m - 1.0
    h, tail = _log_tail(f)
    high, low = LN2_SHORT[x.kind]
    # The rounding error of 1 + x is added to the logarithm; it matters only if u is small.
    low_part = fma(k, low, tail) + lost / u
    result = _log_edges(u, fma(k, high, f - (h - low_part)))
    return _nan_through(x, x.block.where(x.equals(0.0), x, result))


def _log_scaled(x: Vec, unit: tuple[float, float], power: tuple[float, float]) -> Vec:
    """k log(2) + log(m) in another base, carried in two parts."""
    if wide.serves(x):
        k, _, high, low = wide.split_log(x)
    else:
        k, m = split(x)
        f = m - 1.0
        h, tail = _log_tail(f)
        high = f - h
        low = (f - high) - h + tail
    main = high * unit[0]
    rest = fma(high, unit[0], -main) + fma(high, unit[1], low * unit[0])
    whole = k * power[0]
    total = whole + main
    rest = rest + k * power[1] + ((whole - total) + main)
    return wide.edged(x, total + rest) if wide.serves(x) else _nan_through(x, _log_edges(x, total + rest))


def log2(x: Vec) -> Vec:
    return _log_scaled(x, LOG2_E[x.kind], (1.0, 0.0))


def log10(x: Vec) -> Vec:
    return _log_scaled(x, LOG10_E[x.kind], LOG10_2_SHORT[x.kind])


def asinh(x: Vec) -> Vec:
    where = x.block.where
    size = absolute(x)
    huge = size > (2.0**28 if x.kind == WIDE else 2.0**13)
    t = where(huge, x.like(1.0), size)
    square = t * t
    inside = t + square / (sqrt(square + 1.0) + 1.0)
    result = log1p(where(huge, size - 1.0, inside))
    return with_sign(where(huge, result + LN2[x.kind][0], result), x)


def acosh(x: Vec) -> Vec:
    where = x.block.where
    huge = x > (2.0**28 if x.kind == WIDE else 2.0**13)
    t = where(huge, x.like(1.0), x) - 1.0
    result = log1p(where(huge, x - 1.0, t + sqrt(fma(t, t, t + t))))
    return where(x < 1.0, x.like(math.nan), where(huge, result + LN2[x.kind][0], result))


def atanh(x: Vec) -> Vec:
    size = absolute(x)
    double = size + size
    small = size < 0.5
    inside = x.block.where(small, double + double * size / (1.0 - size), double / (1.0 - size))
    return with_sign(log1p(inside) * 0.5, x)


def hypot(x: Vec, y: Vec) -> Vec:
    where = x.block.where
    a, b = absolute(x), absolute(y)
    big = where(a > b, a, b)
    huge, tiny, step = (2.0**500, 2.0**-450, 2.0**600) if x.kind == WIDE else (2.0**60, 2.0**-50, 2.0**100)
    up, down = big < tiny, big > huge
    factor = where(up, x.like(step), where(down, x.like(1 / step), x.like(1.0)))
    back = where(up, x.like(1 / step), where(down, x.like(step), x.like(1.0)))
    a, b = a * factor, b * factor
    square = b * b
    result = sqrt(fma(a, a, square)) * back
    return where(absolute(x).equals(math.inf) | absolute(y).equals(math.inf), x.like(math.inf), result)
