"""Roots and powers on vectors, for f32 and f64: cbrt within 1 unit in the last place, power within 2.

The power needs the logarithm to about 64 bits, because its error grows with the exponent: it is carried in two numbers,
after T. J. Dekker, A floating-point technique for extending the available precision (1971). Single precision is
computed in double precision. Special values follow C99, F.9.4.4.
"""

import math
from typing import Final

from tenferro_cpu.native.codegen.builder import Vec
from tenferro_cpu.native.codegen.operations._math import absolute, fma, polynomial, scaled, split, with_sign
from tenferro_cpu.native.codegen.operations._math_tables import LN2, LOG2_E, WIDE

_CBRT: Final = (0.45368850939437955, 0.8967392149830209, -0.5237666939876867, 0.2093460512115113, -0.03600019208330247)
"""cbrt(m), 1/sqrt(2) <= m <= sqrt(2), to 16 bits."""
_CBRT_2: Final = 1.2599210498948732

_LOG: Final = (
    0.2, 0.14285714285714682, 0.11111111110828116, 0.09090909167657202, 0.07692297485447729, 0.06667402119112673,
    0.05853124270461193, 0.058615255140488765,
)  # fmt: skip
"""(atanh(s) / s - 1 - z / 3) / z^2 in z = s^2, for (1 + s) / (1 - s) between 1/sqrt(2) and sqrt(2)."""
_LOG_SHORT: Final = (0.3333333333368754, 0.19999999398668794, 0.14285877267957245, 0.11095700415154251,
                     0.09681326857101004)  # fmt: skip
"""(atanh(s) / s - 1) / z to 36 bits."""
_THIRD: Final = (0.3333333333333333, 1.850371707708594e-17)

_EXP2: Final = (
    0.24022650695910075, 0.05550410866482158, 0.009618129107618665, 0.0013333558146423213, 0.00015403530424776529,
    1.5252733820795803e-05, 1.3215451633221434e-06, 1.0178067267449427e-07, 7.070977866508138e-09,
    4.45410341058704e-10,
)  # fmt: skip
"""(2^r - 1 - r ln 2) / r^2, |r| <= 1/2."""
_EXP2_SHORT: Final = (0.24022650760568126, 0.055504108714600736, 0.009618082557277852, 0.0013333522307609031,
                      0.0001545316294512069, 1.52909485499206e-05)  # fmt: skip
"""The same to 28 bits."""

Double = tuple[Vec, Vec]
"""An unevaluated sum, the second part much smaller than the first."""


def cbrt(x: Vec) -> Vec:
    """The real cube root."""
    where = x.block.where
    k, m = split(absolute(x))
    thirds = x.block.call("rint", k * (1 / 3))
    rest = k - thirds * 3.0
    up, down = rest > 0.5, rest < -0.5
    t = polynomial(m, _CBRT) * where(up, x.like(_CBRT_2), where(down, x.like(1 / _CBRT_2), 1.0))
    m = m * where(up, x.like(2.0), where(down, x.like(0.5), 1.0))
    if x.kind == WIDE:
        cube = t * t * t  # Halley: three times as many digits
        t = t * ((cube + m + m) / (cube + cube + m))
    # Newton, with the residual free of rounding.
    square = t * t
    left = fma(square, t, -m) + fma(t, t, -square) * t
    t = t - left / (3.0 * square)
    result = with_sign(scaled(t, thirds), x)
    return where((x + x).equals(x) | x.is_nan, x, result)  # zeros, infinities


def _log2(x: Vec) -> Double:
    """Logarithm of positive numbers to about 64 bits."""
    k, m = split(x)
    f = m - 1.0
    below = f + 2.0
    lost = f - (below - 2.0)
    s = f / below
    s_low = (fma(-s, below, f) - s * lost) / below
    z = s * s
    z_low = fma(s, s, -z) + 2.0 * s * s_low
    # atanh(s) = s + s z (1/3 + z Q(z))
    q = z * polynomial(z, _LOG)
    w = q + _THIRD[0]
    w_low = (_THIRD[0] - w) + q + _THIRD[1]
    high, low = _product(s, s_low, *_product(z, z_low, w, w_low))
    low = (s - (s + high)) + high + (s_low + low)
    p, p_low = _product(s + high, low, x.like(2 * LOG2_E[WIDE][0]), x.like(2 * LOG2_E[WIDE][1]))
    total = k + p
    return total, (k - total) + p + p_low


def _log2_short(x: Vec) -> Vec:
    k, m = split(x)
    s = (m - 1.0) / (m + 1.0)
    z = s * s
    return fma(fma(s * z, polynomial(z, _LOG_SHORT), s), 2 * LOG2_E[WIDE][0], k)


def _product(x: Vec, x_low: Vec, y: Vec, y_low: Vec) -> Double:
    high = x * y
    return high, fma(x, y, -high) + fma(x, y_low, x_low * y)


def exp2_parts(high: Vec, low: Vec) -> tuple[Vec, Vec, Vec]:
    """Two to a power given in two parts, as a number near 1 in two parts and an integer exponent."""
    n = high.block.call("rint", high)
    whole = high - n
    r = whole + low
    low = (whole - r) + low
    main = r * LN2[WIDE][0]
    rest = fma(r, LN2[WIDE][0], -main) + fma(r, LN2[WIDE][1], low * LN2[WIDE][0])
    rest = fma(r * r, polynomial(r, _EXP2), rest)
    more = main + rest
    total = more + 1.0
    return total, ((1.0 - total) + more) + ((main - more) + rest), n


def exp2_short(x: Vec) -> Vec:
    """Two to a power, to 28 bits."""
    n = x.block.call("rint", x)
    r = x - n
    return scaled(fma(r, fma(r, polynomial(r, _EXP2_SHORT), LN2[WIDE][0]), 1.0), n)


def power(x: Vec, y: Vec) -> Vec:
    """`x` to the power `y`."""
    block, where = x.block, x.block.where
    size = absolute(x)
    if x.kind == WIDE:
        magnitude = _magnitude(size, y, short=False)
    else:
        wide = _magnitude(block.cast("fpext", size, WIDE), block.cast("fpext", y, WIDE), short=True)
        magnitude = block.cast("fptrunc", wide, x.kind)
    negative = x.bits < 0
    whole = block.call("trunc", y).equals(y)
    half = y * 0.5
    odd = whole & block.call("trunc", half).differs(half)
    result = where(negative & odd, -magnitude, magnitude)
    result = where((x < 0.0) & ~whole & size.differs(math.inf), x.like(math.nan), result)
    result = where(x.is_nan | y.is_nan, x + y, result)
    return where(x.equals(1.0) | y.equals(0.0), x.like(1.0), result)


def _magnitude(size: Vec, y: Vec, short: bool) -> Vec:
    """Power of a nonnegative number, neither operand NaN; `short` to single precision."""
    where = size.block.where
    high, low = (_log2_short(size), None) if short else _log2(size)
    high = where(size.equals(0.0), size.like(-math.inf), where(size.equals(math.inf), size, high))
    exponent = where(size.equals(1.0), size.like(0.0), y * high)
    # Beyond the range of the exponent nothing but its sign has a meaning.
    far = absolute(exponent) > 1100.0
    clamped = where(far, with_sign(size.like(1100.0), exponent), exponent)
    if low is None:
        return exp2_short(clamped)
    odd = far | size.equals(1.0) | size.equals(0.0) | size.equals(math.inf)
    fraction, rest, n = exp2_parts(clamped, where(odd, size.like(0.0), fma(y, high, -exponent) + y * low))
    return scaled(fraction + rest, n)
