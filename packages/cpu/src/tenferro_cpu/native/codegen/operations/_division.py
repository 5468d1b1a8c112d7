"""Division with remainder: NumPy's `floor_divide`, `remainder` and C's `fmod`, for integers and floating point.

An infinite dividend has an infinite quotient, as the array API standard prefers; NumPy's is NaN.

Integers: a zero divisor yields 0, and the least integer divided by -1 is itself; both raise the flag, because NumPy
warns.
"""

from __future__ import annotations

import math

from tenferro_cpu.native.codegen.builder import BITS, Vec
from tenferro_cpu.native.codegen.operations import _math
from tenferro_cpu.native.codegen.operations._convert import resized
from tenferro_cpu.native.codegen.operations._value import OpContext, Rule, Value


def _quotient(context: OpContext, x: Vec, y: Vec) -> Vec:
    """The quotient rounded towards zero, for a divisor that is neither 0 nor -1 (of signed integers)."""
    block, bits = context.block, BITS[x.kind]
    if bits == 64:
        return x.unsigned_quotient(y) if context.unsigned else x / y
    # The processor divides no vectors of integers. A floating-point quotient of more than twice the bits is on the
    # right side of every whole number: it is further from the next one than its rounding.
    kind, wide = ("f32", "i32") if bits < 32 else ("f64", "i32")
    sign = "u" if context.unsigned else "s"
    ratio = block.cast(f"{sign}itofp", x, kind) / block.cast(f"{sign}itofp", y, kind)
    return resized(block.cast(f"fpto{sign}i", ratio, wide), x.kind, not context.unsigned)


def _divided(context: OpContext, x: Vec, y: Vec) -> tuple[Vec, Vec, Vec]:
    """Quotient towards zero and remainder, both 0 for a zero divisor; and a divisor that is never 0."""
    block, where = context.block, context.block.where
    nothing = y.equals(0)
    whole = where(nothing, y.like(1), y)
    odd = nothing
    if not context.unsigned:
        back = y.equals(-1)
        whole = where(back, y.like(1), whole)
        odd = odd | (back & x.equals(-(1 << (BITS[x.kind] - 1))))
    block.signal(odd)
    quotient = _quotient(context, x, whole)
    rest = x - quotient * whole
    if not context.unsigned:
        quotient = where(back, 0 - quotient, quotient)
    zero = x.like(0)
    return where(nothing, zero, quotient), where(nothing, zero, rest), where(nothing, y.like(1), y)


def _beyond(context: OpContext, rest: Vec, y: Vec) -> Vec:
    """Mask of the quotients that rounding towards zero rounded up."""
    return rest.differs(0) & ((rest ^ y) < 0)


def _integer_floor_divide(context: OpContext, x: Vec, y: Vec) -> Vec:
    quotient, rest, divisor = _divided(context, x, y)
    return (
        quotient if context.unsigned else context.block.where(_beyond(context, rest, divisor), quotient - 1, quotient)
    )


def _integer_remainder(context: OpContext, x: Vec, y: Vec) -> Vec:
    _, rest, divisor = _divided(context, x, y)
    return rest if context.unsigned else context.block.where(_beyond(context, rest, divisor), rest + divisor, rest)


def _integer_fmod(context: OpContext, x: Vec, y: Vec) -> Vec:
    return _divided(context, x, y)[1]


def _fmod(x: Vec, y: Vec) -> Vec:
    """The exact remainder with the sign of `x`; quotients beyond the precision go to the C library."""
    where = x.block.where
    size, by = _math.absolute(x), _math.absolute(y)
    # Rounding keeps the order, so the whole part of the rounded quotient is the true one or one more.
    ratio = x.block.call("trunc", size / by)
    rest = _math.fma(-ratio, by, size)
    rest = where(rest < 0.0, rest + by, rest)
    rest = where(ratio.equals(0.0), size, rest)
    limit = 2.0 ** (53 if x.kind == "f64" else 24)
    return x.block.rare(ratio >= limit, _math.with_sign(rest, x), "fmod" + ("" if x.kind == "f64" else "f"), x, y)


def _floored(x: Vec, y: Vec) -> tuple[Vec, Vec]:
    """Exact remainder towards zero, and a mask of the quotients to decrement."""
    rest = _fmod(x, y)
    return rest, rest.differs(0.0) & ((rest < 0.0) ^ (y < 0.0))


def _floating_remainder(x: Vec, y: Vec) -> Vec:
    where = x.block.where
    rest, down = _floored(x, y)
    signed = where(rest.equals(0.0), _math.with_sign(rest, y), where(down, rest + y, rest))
    return where(y.equals(0.0), rest, signed)


def _floating_floor_divide(x: Vec, y: Vec) -> Vec:
    where = x.block.where
    rest, down = _floored(x, y)
    ratio = x / y
    quotient = (x - rest) / y
    quotient = where(down, quotient - 1.0, quotient)
    # The remaining fraction is rounding error.
    low = x.block.call("floor", quotient)
    low = where(quotient - low > 0.5, low + 1.0, low)
    low = where(quotient.equals(0.0), _math.with_sign(quotient, ratio), low)
    # The ratio is its own floor, or has none, where an operand is infinite or the divisor 0.
    endless = _math.absolute(x).equals(math.inf) | _math.absolute(y).equals(math.inf)
    return where(y.equals(0.0) | endless, ratio, low)


def _either(integer: Rule, floating: Rule) -> Rule:
    def rule(context: OpContext, x: Vec, y: Vec) -> Value:
        return floating(x, y) if context.dtype.kind == "f" else integer(context, x, y)

    return rule


floor_divide = _either(_integer_floor_divide, _floating_floor_divide)
remainder = _either(_integer_remainder, _floating_remainder)
fmod = _either(_integer_fmod, _fmod)
