"""The error function and its complement on vectors, for f32 and f64, within 2.5 units in the last place.

Beyond 1/2 the complement is ``exp(-x^2) / (1 + 2 x)`` times a polynomial in ``(x - 3.75) / (x + 3.75)``, after
M. M. Shepherd, J. G. Laframboise, Chebyshev approximation of (1 + 2x) exp(x^2) erfc x in 0 <= x < inf (1981). Single
precision is computed in double precision.
"""

from collections.abc import Callable
from typing import Final

from tenferro_cpu.native.codegen.builder import Vec
from tenferro_cpu.native.codegen.operations._math import absolute, fma, polynomial, scaled, with_sign
from tenferro_cpu.native.codegen.operations._math_power import exp2_parts, exp2_short
from tenferro_cpu.native.codegen.operations._math_tables import LOG2_E, WIDE

_CENTRE: Final = 3.75
_TAIL: Final = (
    1.2375126308378275, -0.14024059858554702, 0.0035854154854658496, 0.08227673849015059, -0.1088039301418558,
    0.09230432116022246, -0.05869339858656682, 0.028362277420937457, -0.009746579602513314, 0.0017556258398018613,
    0.0002937140375272005, -0.0002901540353336165, 5.164717365417525e-05, 2.2384180644872092e-05,
    -1.1437767278950732e-05, -9.7368428239226e-07, 1.7380461262457937e-06, -5.658053403353585e-08,
    -2.405381553661818e-07, 2.2156361551057863e-08, 2.4650884795239513e-08, -2.819125663086401e-09,
)  # fmt: skip
"""(1 + 2 x) exp(x^2) erfc(x), 1/2 <= x <= 28."""
_TAIL_SHORT: Final = (
    1.2375126308275017, -0.14024059864473462, 0.003585418027554961, 0.0822767360142258, -0.10880402696637084,
    0.09230445830839196, -0.05869199586958249, 0.028360780777116616, -0.009756464275234954, 0.0017606147216643578,
    0.00032856928907100554, -0.000288791214057103,
)  # fmt: skip
"""The same to 34 bits, x <= 11."""
_ERF: Final = (
    -0.3761263890318375, 0.11283791670954388, -0.026866170644835378, 0.005223977620813342, -0.0008548326651491142,
    0.00012055315509827725, -1.4925137231361603e-05, 1.6452392414414235e-06, -1.624658795725963e-07,
    1.3884625209147687e-08, -8.101869549660952e-10,
)  # fmt: skip
"""(erf(x) / x - 2 / sqrt(pi)) / z in z = x^2, |x| <= 1."""
_ERF_SHORT: Final = (
    1.1283791658483509, -0.37612626666720334, 0.11283594715160218, -0.026854212010626412, 0.005189087423433974,
    -0.000801686428716587, 7.875875062685488e-05,
)  # fmt: skip
"""erf(x) / x in z to 29 bits."""
_SLOPE: Final = (1.1283791670955126, 1.533545961316588e-17)
"""2 / sqrt(pi)."""


def erf(x: Vec) -> Vec:
    """The error function."""
    if x.kind != WIDE:
        return _narrow(x, _erf_short)
    size = absolute(x)
    outer = with_sign(1.0 - _tail(size), x)
    return x.block.where(size < 1.0, _inner(x), x.block.where(x.is_nan, x, outer))


def erfc(x: Vec) -> Vec:
    """One minus the error function."""
    return _complement(x, _inner, _tail) if x.kind == WIDE else _narrow(x, _erfc_short)


def _inner(x: Vec) -> Vec:
    """erf within [-1, 1]."""
    z = x * x
    return fma(x, fma(z, polynomial(z, _ERF), _SLOPE[1]), x * _SLOPE[0])


def _tail(size: Vec) -> Vec:
    """erfc of at least 1/2."""
    x = size.block.where(size > 28.0, size.like(28.0), size)
    square = x * x
    lost = fma(x, x, -square)
    high = square * -LOG2_E[WIDE][0]
    low = fma(square, -LOG2_E[WIDE][0], -high) - fma(square, LOG2_E[WIDE][1], lost * LOG2_E[WIDE][0])
    fraction, fraction_low, n = exp2_parts(high, low)
    t = (x - _CENTRE) / (x + _CENTRE)
    steep = polynomial(t, _TAIL[1:])
    top = fma(t, steep, _TAIL[0])
    top_low = fma(t, steep, _TAIL[0] - top)
    below = fma(x, 2.0, 1.0)
    below_low = fma(x, 2.0, 1.0 - below)
    ratio = top / below
    # What the division lost, by a reciprocal of one digit: the numerator is about 1.2.
    ratio_low = (fma(-ratio, below, top) + (top_low - ratio * below_low)) * (ratio * (1 / 1.2))
    return scaled(fma(fraction, ratio, fma(fraction, ratio_low, fraction_low * ratio)), n)


def _inner_short(x: Vec) -> Vec:
    return x * polynomial(x * x, _ERF_SHORT)


def _tail_short(size: Vec) -> Vec:
    x = size.block.where(size > 11.0, size.like(11.0), size)
    below = x + _CENTRE
    shared = 1.0 / (below * fma(x, 2.0, 1.0))  # of both quotients
    t = (x - _CENTRE) * fma(x, 2.0, 1.0) * shared
    return exp2_short(x * x * -LOG2_E[WIDE][0]) * polynomial(t, _TAIL_SHORT) * (below * shared)


def _erf_short(x: Vec) -> Vec:
    size = absolute(x)
    return x.block.where(size < 1.0, _inner_short(x), with_sign(1.0 - _tail_short(size), x))


def _erfc_short(x: Vec) -> Vec:
    return _complement(x, _inner_short, _tail_short)


def _complement(x: Vec, inner: Callable[[Vec], Vec], tail: Callable[[Vec], Vec]) -> Vec:
    size = absolute(x)
    outer = tail(size)
    outer = x.block.where(x < 0.0, 2.0 - outer, outer)
    return x.block.where(size < 0.5, 1.0 - inner(x), x.block.where(x.is_nan, x, outer))


def _narrow(x: Vec, f: Callable[[Vec], Vec]) -> Vec:
    result = x.block.cast("fptrunc", f(x.block.cast("fpext", x, WIDE)), x.kind)
    return x.block.where(x.is_nan, x, result)
