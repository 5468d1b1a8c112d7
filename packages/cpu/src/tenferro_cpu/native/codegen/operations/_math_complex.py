"""Complex functions as rules, after W. Kahan, Branch cuts for complex elementary functions (1987).

Special values follow C99, annex G, except for signs of zeros and of infinities next to a NaN. Single precision is
computed in double precision. The relative error is below 4 units in the last place of the larger part; for `power` it
grows with the magnitude of ``y * log(x)``, for `exp2` with that of the imaginary part.
"""

import math
from collections.abc import Callable
from typing import Final

from tenferro_cpu.native.codegen.builder import Vec
from tenferro_cpu.native.codegen.operations import _math, _math_circular
from tenferro_cpu.native.codegen.operations._arithmetic import div, mul
from tenferro_cpu.native.codegen.operations._convert import resized_float
from tenferro_cpu.native.codegen.operations._math import absolute, fma, with_sign
from tenferro_cpu.native.codegen.operations._math_tables import LN2, LN2_SHORT, LOG2_E, LOG10_E, WIDE
from tenferro_cpu.native.codegen.operations._value import OpContext, Pair, Rule

_HUGE: Final = 700.0
"""Larger exponentials are computed as parts of 2^1024 and finally multiplied by it in two steps."""


def wide(f: Callable[..., Pair]) -> Rule:
    """A function of pairs of f64 as a rule for both precisions."""

    def rule(context: OpContext, *args: Pair) -> Pair:
        result = f(*(Pair(resized_float(z.re, WIDE), resized_float(z.im, WIDE)) for z in args))
        kind = args[0].re.kind
        return Pair(resized_float(result.re, kind), resized_float(result.im, kind))

    return rule


def _finite(x: Vec) -> Vec:
    return absolute(x) < math.inf


def _infinite(x: Vec) -> Vec:
    return absolute(x).equals(math.inf)


def _grown(x: Vec) -> tuple[Vec, Vec]:
    """exp(x) = e * f * f, where neither `e` nor `f` overflows before the product does."""
    where = x.block.where
    big = x > _HUGE
    high, low = (1024 * part for part in LN2_SHORT[WIDE])
    e = _math.exp(where(big, (x - high) - low, x))
    return e, where(big, x.like(2.0**512), x.like(1.0))


def exp(z: Pair) -> Pair:
    where = z.re.block.where
    e, f = _grown(z.re)
    sine, cosine = _math_circular.sin_cos(z.im)
    return _directed(z, where, e * cosine * f * f, e * sine * f * f)


def exp2(z: Pair) -> Pair:
    where = z.re.block.where
    big = z.re > 1000.0
    e, f = _math.exp2(where(big, z.re - 1024.0, z.re)), where(big, z.re.like(2.0**512), z.re.like(1.0))
    sine, cosine = _math_circular.sin_cos(z.im * LN2[WIDE][0])
    return _directed(z, where, e * cosine * f * f, e * sine * f * f)


def _directed(z: Pair, where: Callable[..., Vec], re: Vec, im: Vec) -> Pair:
    """Edge cases of an exponential: real arguments, and infinities without a direction."""
    astray = ~_finite(z.im)
    low, high = z.re.equals(-math.inf), z.re.equals(math.inf)
    re = where(astray & low, re.like(0.0), where(astray & high, re.like(math.inf), re))
    im = where(astray & low, with_sign(z.im.like(0.0), z.im), im)
    return Pair(re, where(z.im.equals(0.0), z.im, im))


def expm1(z: Pair) -> Pair:
    where = z.re.block.where
    half = _math_circular.sin(z.im * 0.5)
    near = fma(_math.expm1(z.re), _math_circular.cos(z.im), -2.0 * half * half)
    whole = exp(z)
    # Where the real part of exp is not near 1, simply subtract one.
    re = where(absolute(z.re) < 1.0, near, whole.re - 1.0)
    return Pair(re, whole.im)


def _hyperbolic(z: Pair) -> tuple[Vec, Vec, Vec, Vec, Vec]:
    """sinh x, cosh x, a factor to multiply in twice, sin y, cos y."""
    where = z.re.block.where
    size = absolute(z.re)
    e, f = _grown(where(size > _HUGE, size, size.like(1.0)))
    big = size > _HUGE
    half = e * 0.5
    sine, cosine = _math_circular.sin_cos(z.im)
    small = where(big, z.re.like(1.0), z.re)
    high = where(big, with_sign(half, z.re), _math.sinh(small))
    return high, where(big, half, _math.cosh(small)), where(big, f, f.like(1.0)), sine, cosine


def sinh(z: Pair) -> Pair:
    where = z.re.block.where
    sh, ch, f, sine, cosine = _hyperbolic(z)
    re = where((z.re.equals(0.0) | _infinite(z.re)) & ~_finite(z.im), z.re, sh * cosine * f * f)
    return Pair(re, where(z.im.equals(0.0), z.im, ch * sine * f * f))


def cosh(z: Pair) -> Pair:
    where = z.re.block.where
    sh, ch, f, sine, cosine = _hyperbolic(z)
    re = where(_infinite(z.re) & ~_finite(z.im), absolute(z.re), ch * cosine * f * f)
    flat = with_sign(z.re.like(0.0), z.re) * with_sign(z.re.like(1.0), z.im)
    level = z.im.equals(0.0) | (z.re.equals(0.0) & ~_finite(z.im))
    return Pair(re, where(level, flat, sh * sine * f * f))


def tanh(z: Pair) -> Pair:
    where = z.re.block.where
    size = absolute(z.re)
    far = size > 22.0
    x = where(far, z.re.like(1.0), z.re)
    sine, cosine = _math_circular.sin_cos(z.im)
    # tanh(x + iy) = (sinh x cosh x + i sin y cos y) / (sinh^2 x + cos^2 y)
    sh = _math.sinh(x)
    ch = _math.cosh(x)
    below = fma(sh, sh, cosine * cosine)
    turn = sine * cosine
    small = _math.exp(-size)
    re = where(far, with_sign(z.re.like(1.0), z.re), sh * ch / below)
    im = where(far, 4.0 * turn * small * small, turn / below)
    re = where(far & _finite(z.re) & ~_finite(z.im), turn, re)
    re = where(z.re.is_nan | z.re.equals(0.0), z.re, re)
    im = where(z.im.equals(0.0), z.im, im)
    # At infinity the zero has the sign of the operand, by the array API standard, whatever sin(2y) has.
    return Pair(re, where(_infinite(z.re), with_sign(z.im.like(0.0), z.im), im))


def _turned(z: Pair) -> Pair:
    """i z."""
    return Pair(-z.im, z.re)


def sin(z: Pair) -> Pair:
    w = sinh(_turned(z))
    return Pair(w.im, -w.re)


def cos(z: Pair) -> Pair:
    return cosh(_turned(z))


def tan(z: Pair) -> Pair:
    w = tanh(_turned(z))
    return Pair(w.im, -w.re)


def _sum(x: Vec, y: Vec) -> tuple[Vec, Vec]:
    """x + y and its rounding error (D. E. Knuth)."""
    total = x + y
    back = total - x
    return total, (x - (total - back)) + (y - back)


def _square(x: Vec) -> tuple[Vec, Vec]:
    high = x * x
    return high, fma(x, x, -high)


def _log_size(x: Vec, y: Vec) -> Vec:
    """log |x + iy|, accurate near the unit circle."""
    where = x.block.where
    a, b = absolute(x), absolute(y)
    swap = a < b
    large, small = where(swap, b, a), where(swap, a, b)
    usual = (large >= 0.5) & (large < 2.0)
    k, _ = _math.split(where(usual | large.equals(0.0) | ~_finite(large), large.like(1.0), large))
    large, small = _math.scaled(large, -k), _math.scaled(small, -k)
    high, high_low = _square(large)
    low, low_low = _square(small)
    # large^2 - 1 + small^2, from the large terms down
    total, lost = _sum(high - 1.0, low)
    rest = 0.5 * _math.log1p(total + (lost + high_low + low_low))
    size = fma(k, LN2_SHORT[WIDE][0], fma(k, LN2_SHORT[WIDE][1], rest))
    size = where(a.equals(0.0) & b.equals(0.0), a.like(-math.inf), size)
    size = where(x.is_nan | y.is_nan, x + y, size)
    return where(_infinite(x) | _infinite(y), a.like(math.inf), size)


def log(z: Pair) -> Pair:
    return Pair(_log_size(z.re, z.im), _math_circular.atan2(z.im, z.re))


def log2(z: Pair) -> Pair:
    w = log(z)
    return Pair(w.re * LOG2_E[WIDE][0], w.im * LOG2_E[WIDE][0])


def log10(z: Pair) -> Pair:
    w = log(z)
    return Pair(w.re * LOG10_E[WIDE][0], w.im * LOG10_E[WIDE][0])


def log1p(z: Pair) -> Pair:
    where = z.re.block.where
    near = (absolute(z.re) < 4.0) & (absolute(z.im) < 4.0)
    x, y = where(near, z.re, z.re.like(0.0)), where(near, z.im, z.im.like(0.0))
    # |1 + z|^2 - 1 = 2 x + x^2 + y^2
    square, square_low = _square(x)
    other, other_low = _square(y)
    total, lost = _sum(x + x, square)
    total, also = _sum(total, other)
    near = near & (total > -0.75)
    close = 0.5 * _math.log1p(total + (lost + also + square_low + other_low))
    one = z.re + 1.0
    return Pair(where(near, close, _log_size(one, z.im)), _math_circular.atan2(z.im, one))


def sqrt(z: Pair) -> Pair:
    where = z.re.block.where
    a, b = absolute(z.re), absolute(z.im)
    large = where(a < b, b, a)
    huge, tiny = large > 2.0**500, large < 2.0**-450
    factor = where(huge, a.like(2.0**-600), where(tiny, a.like(2.0**600), a.like(1.0)))
    back = where(huge, a.like(2.0**300), where(tiny, a.like(2.0**-300), a.like(1.0)))
    a, b = a * factor, b * factor
    t = _math.sqrt((a + _math.sqrt(fma(a, a, b * b))) * 0.5)
    other = b / (t + t)
    t, other = t * back, other * back
    left = z.re < 0.0
    re, im = where(left, other, t), with_sign(where(left, t, other), z.im)
    nothing = z.re.equals(0.0) & z.im.equals(0.0)
    re, im = where(nothing, re.like(0.0), re), where(nothing, z.im, im)
    endless = z.re.like(math.inf)
    # (+inf, y), (-inf, y), and infinite imaginary parts, which win over NaN
    up, down = z.re.equals(math.inf), z.re.equals(-math.inf)
    straight = where(z.im.is_nan, z.im, with_sign(re.like(0.0), z.im))
    re, im = where(up, endless, re), where(up, straight, im)
    re = where(down, where(z.im.is_nan, z.im, re.like(0.0)), re)
    im = where(down, with_sign(endless, z.im), im)
    infinite = _infinite(z.im)
    return Pair(where(infinite, endless, re), where(infinite, z.im, im))


def _turned_back(z: Pair) -> Pair:
    """z / i."""
    return Pair(z.im, -z.re)


def _roots(z: Pair) -> tuple[Pair, Pair]:
    """sqrt(1 - z) and sqrt(1 + z)."""
    return sqrt(Pair(1.0 - z.re, -z.im)), sqrt(Pair(z.re + 1.0, z.im))


def asin(z: Pair) -> Pair:
    where = z.re.block.where
    low, high = _roots(z)
    re = _math_circular.atan2(z.re, low.re * high.re - low.im * high.im)
    im = with_sign(_math.asinh(low.re * high.im - low.im * high.re), z.im)
    far, size, angle = _far(z)
    # For large operands only the angle to the imaginary axis remains; a NaN above 0 stays above it.
    re = where(z.re.equals(0.0), z.re, re)
    return Pair(where(far, with_sign(angle, z.re), re), where(far, with_sign(size, z.im), im))


def acos(z: Pair) -> Pair:
    where = z.re.block.where
    low, high = _roots(z)
    re = 2.0 * _math_circular.atan2(low.re, high.re)
    re = where(z.re.equals(0.0), z.re.like(math.pi / 2), re)
    im = with_sign(_math.asinh(high.re * low.im - high.im * low.re), -z.im)
    far, size, _ = _far(z)
    return Pair(where(far, _math_circular.atan2(absolute(z.im), z.re), re), where(far, with_sign(size, -z.im), im))


def _far(z: Pair) -> tuple[Vec, Vec, Vec]:
    """Mask of operands for which adding one changes nothing; there log |2 z|, and the angle to the imaginary axis."""
    far = (absolute(z.re) > 2.0**54) | (absolute(z.im) > 2.0**54)
    size = _log_size(z.re, z.im) + LN2[WIDE][0]
    return far, size, _math_circular.atan2(absolute(z.re), absolute(z.im))


def asinh(z: Pair) -> Pair:
    return _turned_back(asin(_turned(z)))


def acosh(z: Pair) -> Pair:
    where = z.re.block.where
    w = acos(z)
    # i acos(z) or its negative: the one in the right half-plane
    return Pair(absolute(w.im), where(z.im.bits < 0, -w.re, w.re))


def atanh(z: Pair) -> Pair:
    where = z.re.block.where
    x, y = absolute(z.re), absolute(z.im)
    far = (x > 2.0**54) | (y > 2.0**54)
    near_x, near_y = where(far, x.like(0.0), x), where(far, y.like(0.0), y)
    off = 1.0 - near_x
    # log(|1 + z| / |1 - z|) = log(1 + 4 x / |1 - z|^2) / 2
    re = 0.25 * _math.log1p(4.0 * near_x / fma(off, off, near_y * near_y))
    im = 0.5 * _math_circular.atan2(near_y + near_y, fma(off, near_x + 1.0, -near_y * near_y))
    # At 1 the square of a small height is lost: log(2 / y) / 2.
    above = off.equals(0.0) & (near_y < 2.0**-500)
    re = where(above, 0.5 * (LN2[WIDE][0] - _math.log(where(above, near_y, x.like(1.0)))), re)
    # For large operands the real part is that of 1/z, the imaginary part a quarter turn.
    scale = where(x > y, x, y)
    u, v = x / scale, y / scale
    endless = _infinite(x) | _infinite(y)
    re = where(far, where(endless, x.like(0.0), u / fma(u, u, v * v) / scale), re)
    re = where(x.equals(0.0), x, where(x.is_nan & ~_infinite(y), x, re))
    im = where(far, y.like(math.pi / 2), im)
    im = where(y.is_nan, y, where(x.is_nan & ~_infinite(y), x, im))
    return Pair(with_sign(re, z.re), with_sign(im, z.im))


def atan(z: Pair) -> Pair:
    return _turned_back(atanh(_turned(z)))


def rsqrt(context: OpContext, z: Pair) -> Pair:
    """One divided by the root, in the precision of the dtype."""
    like = z.re.like
    root = wide(sqrt)(context, z)
    quotient = div(context, Pair(like(1.0), like(0.0)), root)
    assert isinstance(quotient, Pair)
    return quotient


_REPEATED: Final = 100
"""Smaller integer exponents are repeated products, as in NumPy."""


def power(context: OpContext, z: Pair, exponent: Pair) -> Pair:
    result = wide(lambda x, y: _power(context, x, y))(context, z, exponent)
    assert isinstance(result, Pair)
    return result


def _power(context: OpContext, x: Pair, y: Pair) -> Pair:
    where, like = context.block.where, x.re.like
    angle = log(x)
    general = exp(_times(context, y, angle))
    nothing = x.re.equals(0.0) & x.im.equals(0.0)
    # A zero stays zero where the exponent has a positive real part, and is undefined otherwise.
    empty = where(y.re > 0.0, like(0.0), like(math.nan))
    re, im = where(nothing, empty, general.re), where(nothing, empty, general.im)
    whole = y.im.equals(0.0) & context.block.call("trunc", y.re).equals(y.re) & (absolute(y.re) < float(_REPEATED))
    repeated = _repeated(context, x, where(whole, y.re, like(0.0)))
    usable = whole & (~nothing | y.re.equals(0.0))
    return Pair(where(usable, repeated.re, re), where(usable, repeated.im, im))


def _times(context: OpContext, x: Pair, y: Pair) -> Pair:
    product = mul(context, x, y)
    assert isinstance(product, Pair)
    return product


def _repeated(context: OpContext, x: Pair, n: Vec) -> Pair:
    """Integer power, by squaring."""
    block, where = context.block, context.block.where
    count = block.cast("fptosi", absolute(n), "i32")
    result, square = Pair(n.like(1.0), n.like(0.0)), x
    for bit in range(_REPEATED.bit_length()):
        chosen = (count & (1 << bit)).differs(0)
        more = _times(context, result, square)
        first = (count & ((1 << bit) - 1)).equals(0)  # nothing to multiply with yet
        more = Pair(where(first, square.re, more.re), where(first, square.im, more.im))
        result = Pair(where(chosen, more.re, result.re), where(chosen, more.im, result.im))
        square = _times(context, square, square)
    inverse = div(context, Pair(n.like(1.0), n.like(0.0)), result)
    assert isinstance(inverse, Pair)
    return Pair(where(n < 0.0, inverse.re, result.re), where(n < 0.0, inverse.im, result.im))
