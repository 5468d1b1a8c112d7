"""Exponential functions and logarithms by tables in registers, for 512-bit vectors (AVX-512).

One instruction looks up 16 numbers, and one scales by a power of two with a floating-point exponent, rounded down;
subnormal results are rounded once. Arguments are reduced to a sixteenth of the usual interval, and polynomials are half
as long. (P. T. P. Tang, Table-driven implementation of the exponential function in IEEE floating-point arithmetic, ACM
TOMS 15, 1989; the same for the logarithm, ACM TOMS 16, 1990.)

Signs of results and the bounds of arguments are left to the caller.
"""

from tenferro_cpu.native.codegen.builder import BITS, Vec
from tenferro_cpu.native.codegen.builder._avx512 import (
    ENTRIES,
    exponent,
    fixed,
    lookup,
    mantissa,
    reciprocal,
    scaled,
)
from tenferro_cpu.native.codegen.operations._math_tables import LN2, LN2_SHORT, WIDE
from tenferro_cpu.native.codegen.operations._math_wide_tables import (
    EXP,
    EXPM1,
    HALVES,
    HALVES_LOW,
    INVERSES,
    LOG1P,
    LOGS,
    LOGS_LOW,
    MAGIC,
    NEAREST,
    POWERS,
    STEP,
)


def serves(x: Vec) -> bool:
    """Whether a vector fills a 512-bit register of a processor that has them."""
    return x.block.tables and x.block.lanes * BITS[x.kind] == 512


def fma(x: Vec, y: Vec | float, z: Vec | float) -> Vec:
    return x.block.call("fma", x, x.like(y), x.like(z))


def horner(x: Vec, coefficients: tuple[float, ...]) -> Vec:
    """Evaluate a polynomial; interleaved vectors hide the latency."""
    result = x.like(coefficients[-1])
    for c in coefficients[-2::-1]:
        result = fma(x, result, c)
    return result


def exp(x: Vec, halvings: float = 0.0) -> Vec:
    """``exp(x) / 2**halvings`` of a bounded `x`."""
    high, low, inverse = STEP[x.kind]
    shifted = fma(x, inverse, MAGIC[x.kind])
    n = shifted - MAGIC[x.kind]
    r = fma(n, -low, fma(n, -high, x))
    power = lookup(shifted.bits, POWERS[x.kind], x.kind)
    p = fma(r * r, horner(r, EXP[x.kind]), r)
    return scaled(fma(power, p, power), fma(n, 1 / ENTRIES, -halvings))


def exp2(x: Vec) -> Vec:
    """``2**x`` of a bounded `x`."""
    shifted = fma(x, ENTRIES, MAGIC[x.kind])
    n = (shifted - MAGIC[x.kind]) * (1 / ENTRIES)
    r = (x - n) * LN2[x.kind][0]  # the difference is exact
    power = lookup(shifted.bits, POWERS[x.kind], x.kind)
    p = fma(r * r, horner(r, EXP[x.kind]), r)
    return scaled(fma(power, p, power), n)


def _expm1(x: Vec, *, far: bool) -> tuple[Vec, Vec, Vec]:
    """s, v and n with ``exp(x) - 1 = 2 s / v`` and ``v = 2**floor(n)``; `far` where `x` may be above 50."""
    high, low, inverse = STEP[x.kind]
    shifted = fma(x, -inverse, MAGIC[x.kind])
    m = shifted - MAGIC[x.kind]
    r = fma(m, high, x)  # exact
    power, rest = (lookup(shifted.bits, table[x.kind], x.kind) for table in (HALVES, HALVES_LOW))
    rest_of_x = m * low
    t = r + rest_of_x if far else r
    tail = fma(t * t, horner(t, EXPM1[x.kind]), rest_of_x)
    n = m * (1 / ENTRIES)
    v = scaled(x.like(1.0), n)
    # power - v/2 is exact where it is small, and 0 where x is.
    return fma(v, -0.5, power) + fma(power, r, fma(power, tail, rest)), v, n


def expm1(x: Vec, halvings: float = 0.0) -> Vec:
    """``(exp(x) - 1) / 2**halvings`` of a bounded `x`."""
    s, _, n = _expm1(x, far=True)
    return scaled(s, (1.0 - halvings) - x.block.call("floor", n))


def tanh(x: Vec) -> Vec:
    """Of ``x / 2``, bounded and not negative: ``s / (s + v)`` in the terms of `_expm1`."""
    s, v, _ = _expm1(x, far=False)
    d = s + v
    w = reciprocal(d)
    if x.kind == WIDE:
        w = fma(w, fma(-d, w, 1.0), w)
    y = s * w
    # The correction follows from the equation itself, which does not contain the rounding error of d.
    return fma(fma(-y, s, fma(-y, v, s)), w, y)


def split_log(x: Vec, with_exponent: bool = False) -> tuple[Vec, Vec, Vec, Vec]:
    """k, c, a, b with ``x = 2**k m`` and log(m) = a + b, a the larger part; c is 1/m to within a thousandth.

    With the exponent, a + b is log(x).
    """
    m = mantissa(x)
    k = exponent(x) - exponent(m)
    index = (m + NEAREST[x.kind]).bits
    inverse, high, low = (lookup(index, table[x.kind], x.kind) for table in (INVERSES, LOGS, LOGS_LOW))
    r = fma(m, inverse, -1.0)
    if with_exponent:
        high, low = fma(k, LN2_SHORT[x.kind][0], high), fma(k, LN2_SHORT[x.kind][1], low)
    total = high + r
    lost = (high - total) + r
    return k, fma(-inverse, r, inverse), total, lost + fma(r * r, horner(r, LOG1P[x.kind]), low)


_EDGES = 0x03530421
"""Results for NaN, zero, negative numbers and infinity: four bits for each class of operand."""


def edged(x: Vec, result: Vec) -> Vec:
    """Replace the logarithms of operands that are not positive and finite."""
    return fixed(x, result, _EDGES)


def log(x: Vec) -> Vec:
    """Logarithm, valid for all `x`."""
    _, _, total, rest = split_log(x, True)
    return edged(x, total + rest)


def log1p(x: Vec) -> Vec:
    """Logarithm of 1 + x, valid for all `x`; -0 becomes 0."""
    u = x + 1.0
    lost = x.block.where(x > 1.0, 1.0 - (u - x), x - (u - 1.0))
    k, inverse, total, rest = split_log(u, True)
    # lost / u is far below the result: a few bits of it do.
    return edged(u, total + (rest + scaled(lost * inverse, -k)))
