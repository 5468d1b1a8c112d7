"""Circular functions and their inverses on vectors; bounds and references are those of `_math`."""

import math

from tenferro_cpu.native.codegen.builder import Vec
from tenferro_cpu.native.codegen.operations._math import absolute, fma, integer, polynomial, sqrt, with_sign
from tenferro_cpu.native.codegen.operations._math_tables import ASIN, ATAN, COS, NARROW, PI_2, PI_4, SIN, WIDE

CIRCLE_RANGE = {WIDE: 2.0**30, NARROW: 2.0**16}
"""Larger angles are computed by the C library, lane by lane."""


def _angle(x: Vec) -> tuple[Vec, Vec, Vec]:
    """x = n pi/2 + r + e; n as i32."""
    n = x.block.call("rint", x * (2 / math.pi))
    parts = PI_2[x.kind]
    first = fma(n, -parts[0], x)  # exact: a multiple of the last bit of pi/2 below 1
    # Close to a multiple of pi/2 little is left: the second part and its rounding are carried exactly (Knuth's sum).
    p = n * parts[1]
    r = first - p
    back = r - first
    e = ((first - (r - back)) - (p + back)) - fma(n, parts[1], -p)
    return integer(n), r, fma(n, -parts[2], e)


def _sin_cos(r: Vec, e: Vec) -> tuple[Vec, Vec]:
    """Sine and cosine of r + e, |r| <= pi/4."""
    z = r * r
    # sin(r + e) = sin r + e cos r, cos(r + e) = cos r - e sin r
    sine = r + fma(z * r, polynomial(z, SIN[r.kind]), e * fma(z, -0.5, 1.0))
    h = z * 0.5
    one = 1.0 - h
    cosine = one + (((1.0 - one) - h) + fma(z * z, polynomial(z, COS[r.kind]), -(r * e)))
    return sine, cosine


def _circular(x: Vec, names: tuple[str, ...]) -> list[Vec]:
    """Sine, cosine, or both."""
    block, kind = x.block, x.kind
    wild = absolute(x).compare("ugt", "?", CIRCLE_RANGE[kind])
    tame = block.where(wild, x.like(0.0), x)
    n, r, e = _angle(tame)
    sine, cosine = _sin_cos(r, e)
    found = []
    for name in names:
        quarter = n if name == "sin" else n + 1
        usual = block.where((quarter & 1).equals(0), sine, cosine)
        usual = block.where((quarter & 2).equals(0), usual, -usual)
        if name == "sin":
            usual = block.where(x.equals(0.0), x, usual)
        found.append(block.rare(wild, usual, name + ("" if kind == WIDE else "f"), x))
    return found


def sin(x: Vec) -> Vec:
    return _circular(x, ("sin",))[0]


def cos(x: Vec) -> Vec:
    return _circular(x, ("cos",))[0]


def sin_cos(x: Vec) -> tuple[Vec, Vec]:
    sine, cosine = _circular(x, ("sin", "cos"))
    return sine, cosine


def tan(x: Vec) -> Vec:
    block, kind = x.block, x.kind
    wild = absolute(x).compare("ugt", "?", CIRCLE_RANGE[kind])
    n, r, e = _angle(block.where(wild, x.like(0.0), x))
    sine, cosine = _sin_cos(r, e)
    even = (n & 1).equals(0)
    usual = block.where(even, sine, -cosine) / block.where(even, cosine, sine)
    return block.rare(wild, block.where(x.equals(0.0), x, usual), "tan" + ("" if kind == WIDE else "f"), x)


def _atan_of(top: Vec, bottom: Vec) -> Vec:
    """atan(top / bottom) for nonnegative operands, one division for all ranges."""
    where = top.block.where
    tan_1, tan_3 = math.sqrt(2) - 1, math.sqrt(2) + 1
    steep, middle = top > bottom * tan_3, top > bottom * tan_1
    up = where(steep, -bottom, where(middle, top - bottom, top))
    down = where(steep, top, where(middle, top + bottom, bottom))
    z = up / down
    w = z * z
    high, low = PI_4[top.kind]
    zero = top.like(0.0)
    base = where(steep, top.like(2 * high), where(middle, top.like(high), zero))
    rest = where(steep, top.like(2 * low), where(middle, top.like(low), zero))
    return base + (z + fma(z * w, polynomial(w, ATAN[top.kind]), rest))


def atan(x: Vec) -> Vec:
    return with_sign(_atan_of(absolute(x), x.like(1.0)), x)


def atan2(y: Vec, x: Vec) -> Vec:
    where = x.block.where
    up, right = absolute(y), absolute(x)
    # Two infinities count as equal numbers.
    both = up.equals(math.inf) & right.equals(math.inf)
    up, right = where(both, x.like(1.0), up), where(both, x.like(1.0), right)
    nothing = up.equals(0.0) & right.equals(0.0)
    right_ = where(nothing, x.like(1.0), right)
    steep = up > right_
    over = where(steep, right_, up) / where(steep, up, right_)
    base = _atan_of(over, x.like(1.0))
    high, low = PI_2[x.kind][:2]
    base = where(steep, high - (base - low), base)
    left = x.bits < 0
    base = where(left, 2 * high - (base - 2 * low), base)
    base = where(x.is_nan, x, where(y.is_nan, y, base))
    return with_sign(base, y)


def asin(x: Vec) -> Vec:
    size = absolute(x)
    outer = size > 0.5
    w = x.block.where(outer, (1.0 - size) * 0.5, size * size)
    p = w * polynomial(w, ASIN[x.kind])
    inner_value = fma(size, p, size)
    s = sqrt(w)
    rest = (fma(-s, s, w)) / (s + s)  # what the root lost
    rest = x.block.where(s.equals(0.0), x.like(0.0), rest)
    high, low = PI_4[x.kind]
    # pi/2 - 2 (s + s p), around pi/4 so that nothing is lost
    outer_value = high - (2.0 * fma(s, p, rest) - 2 * low - (high - 2.0 * s))
    result = with_sign(x.block.where(outer, outer_value, inner_value), x)
    return x.block.where(size > 1.0, x.like(math.nan), result)


def acos(x: Vec) -> Vec:
    where = x.block.where
    size = absolute(x)
    outer = size > 0.5
    w = where(outer, (1.0 - size) * 0.5, size * size)
    p = w * polynomial(w, ASIN[x.kind])
    s = sqrt(w)
    rest = where(s.equals(0.0), x.like(0.0), fma(-s, s, w) / (s + s))
    high, low = PI_2[x.kind][:2]
    inner_value = high - (x - fma(-x, p, low))
    near = 2.0 * (s + fma(s, p, rest))
    far = 2.0 * (high - (s + (fma(s, p, rest) - low)))
    result = where(outer, where(x > 0.0, near, far), inner_value)
    return where(size > 1.0, x.like(math.nan), result)
