"""Rules of the elementwise primitives.

Conventions where a function has no derivative:

===========================================  ==================================================================
``abs``, ``sign`` at 0                       0
``hypot``, ``atan2`` at the origin           0
``copysign(0, y)``                           0 for both operands (for the second operand everywhere)
``maximum``, ``minimum``, ``clamp`` at ties  half to each side; a quarter to `x` where ``lo == x == hi``
``pow``: ``0 ** 0``                          0 for the base
``pow``: base 0                              0 for the exponent, and for mixed derivatives in any order
``pow``: negative real base                  NaN for the exponent: the power is not defined around it
``logaddexp`` of two equal infinities        half to each
``sqrt``, ``cbrt``, ``log``, ... at a pole   infinite, but 0 where the cotangent (tangent) is exactly 0
rounding, ``floor_divide``, comparisons      0 everywhere
``nextafter``                                1 for `x`, 0 for `y`
===========================================  ==================================================================

The derivative of a product is the other operand: if that is infinite or NaN, an exact zero times it is NaN. Products
are not guarded, because that would double the cost of the most common operation; select the operand instead.
"""

from __future__ import annotations

import cmath
import math
from typing import Any, Final

from tenferro_ad.rules._conjugate import conjugate
from tenferro_runtime.extension import General, Inactive, Linear, Slopes
from tenferro_tensor import SCALARS, Primitive
from tenferro_tensor import catalog as c
from tenferro_tensor.functions import abs2

_LN2: Final = math.log(2)
_LN10: Final = math.log(10)
_ERF: Final = 2 / math.sqrt(math.pi)


# Magnitude and sign of complex numbers are not holomorphic: tangents and cotangents differ.


def _abs_jvp(primals: Any, tangents: Any, outs: Any) -> Any:
    (x,), (t,) = primals, tangents
    return (c.real(c.conj(c.sign(x)) * t) if x.spec.cplx else t * c.sign(x),)


def _tangential(x: Any, sign: Any, t: Any) -> Any:
    """The tangential part of `t` divided by the magnitude of `x`: the derivative of the sign, which is self-adjoint."""
    r = c.abs(x)
    along = c.real(c.conj(sign) * t)
    return c.select(c.eq(r, 0), 0, (t - sign * along) / c.select(c.eq(r, 0), 1, r))


# The larger (smaller) operand receives the whole cotangent; operands that tie (or are NaN) share equally. Cotangents
# are routed by select, never multiplied by 0: an infinite cotangent must not turn the other operand's zero into NaN.


def _push_extremum(beats: Primitive, x: Any, y: Any, t: Any, u: Any) -> Any:
    if t is None and u is None:
        return None
    half = 0.5 * (u if t is None else t if u is None else t + u)
    t, u = (0 if v is None else v for v in (t, u))
    return c.select(beats(x, y), t, c.select(beats(y, x), u, half))


def _pull_extremum(beats: Primitive, x: Any, y: Any, g: Any) -> Any:
    half, first, second = 0.5 * g, beats(x, y), beats(y, x)
    return c.select(first, g, c.select(second, 0, half)), c.select(second, g, c.select(first, 0, half))


def _extremum(beats: Primitive) -> General:
    return General(
        jvp=lambda primals, tangents, outs: (_push_extremum(beats, *primals, *tangents),),
        vjp=lambda primals, outs, cotangents: _pull_extremum(beats, *primals, *cotangents),
    )


def _clamp_jvp(primals: Any, tangents: Any, outs: Any) -> Any:
    (x, lo, hi), (t, t_lo, t_hi) = primals, tangents
    raised = _push_extremum(c.gt, x, lo, t, t_lo)
    return (_push_extremum(c.lt, c.maximum(x, lo), hi, raised, t_hi),)


def _clamp_vjp(primals: Any, outs: Any, cotangents: Any) -> Any:
    (x, lo, hi), (g,) = primals, cotangents
    raised, g_hi = _pull_extremum(c.lt, c.maximum(x, lo), hi, g)
    g_x, g_lo = _pull_extremum(c.gt, x, lo, raised)
    return g_x, g_lo, g_hi


def _is_number(x: Any) -> bool:
    return x.__class__ in SCALARS


# Powers. A literal exponent is not differentiated, so a negative base is harmless.


def _base_slope(x: Any, y: Any) -> Any:
    if _is_number(y):
        return float(y.real) if y in (0, 1) else y * x if y == 2 else y * c.pow(x, y - 1)
    # The exponent counts as constant where the base is 0, here too: mixed derivatives are the same in every order. The
    # branches keep its zero tangent from an infinite power.
    at_zero = c.eq(x, 0)
    constant = c.stop_gradient(y)
    y = c.select(at_zero, constant, y)
    # x ** 0 is 1 for every x, but 0 * 0 ** -1 would be NaN. Replace the exponent only there: elsewhere this
    # expression must stay differentiable in y.
    power = c.pow(x, c.select(c.bitwise_and(at_zero, c.eq(y, 0)), 1, y - 1))
    return c.select(at_zero, constant * power, y * c.select(at_zero, 1, power))


def _exponent_slope(x: Any, out: Any) -> Any:
    if _is_number(x):
        return out * _log_of_number(x, out.spec.cplx)
    at_zero = c.eq(x, 0)
    if x.spec.cplx:
        return c.select(at_zero, 0, out * c.log(c.select(at_zero, 1, x)))
    # Never take the logarithm of a negative base: the derivative in the exponent may be evaluated but unused.
    slope = out * c.log(c.select(c.gt(x, 0), x, 1))
    return c.select(at_zero, 0, c.select(c.lt(x, 0), math.nan, slope))


def _log_of_number(x: Any, cplx: bool) -> complex:
    if x == 0:
        return 0.0
    return cmath.log(x) if cplx else math.log(x) if x > 0 else math.nan


# Functions of two variables.


def _ratio(a: Any, r: Any) -> Any:
    """``a / r``, 0 where `r` is 0."""
    at_zero = c.eq(r, 0)
    return c.select(at_zero, 0, a / c.select(at_zero, 1, r))


def _angular(a: Any, x: Any, y: Any) -> Any:
    """``a / (x * x + y * y)`` without overflow, 0 at the origin and at infinity."""
    r = c.hypot(x, y)
    off = c.bitwise_or(c.eq(r, 0), c.is_inf(r))
    safe = c.select(off, 1, r)
    return c.select(off, 0, a / safe / safe)


def _share(x: Any, y: Any) -> Any:
    """``exp(x) / (exp(x) + exp(y))``; one half for two equal infinities."""
    if _is_number(x) or _is_number(y):
        return c.exp(-c.logaddexp(y - x, 0.0))
    same = c.bitwise_and(c.eq(x, y), c.is_inf(x))
    return c.exp(-c.logaddexp(c.select(same, 0, y) - c.select(same, 0, x), 0.0))


def _counting(x: Any, y: Any) -> Any:
    """The effective `y` in an absorbing product: 0 where it is absorbed."""
    return c.select(c.bitwise_or(c.ne(x, 0), c.is_finite(y)), y, 0)


def _absorbing_jvp(primals: Any, tangents: Any, outs: Any) -> Any:
    (x, y), (dx, dy) = primals, tangents
    parts = ([] if dx is None else [dx * _counting(x, y)]) + ([] if dy is None else [c.absorbing_mul(x, dy)])
    return (sum(parts[1:], parts[0]),)


def _absorbing_vjp(primals: Any, outs: Any, cotangents: Any) -> Any:
    (x, y), (g,) = primals, cotangents
    return g * conjugate(_counting(x, y)), c.absorbing_mul(conjugate(x), g)


def singular(**slopes: Any) -> Slopes:
    """`Slopes` that are infinite or undefined at some finite operands, or overflow."""
    return Slopes(singular=True, **slopes)


RULES: Final[dict[Primitive, Any]] = {
    # -- arithmetic ---------------------------------------------------------------------------------------------
    c.add: Slopes(x=1, y=1),
    c.sub: Slopes(x=1, y=-1),
    c.mul: Slopes(x=lambda y: y, y=lambda x: x),
    c.absorbing_mul: General(jvp=_absorbing_jvp, vjp=_absorbing_vjp),
    c.div: singular(x=lambda y: 1 / y, y=lambda y, out: -out / y),
    c.pow: singular(x=_base_slope, y=_exponent_slope),
    c.neg: Linear(x=lambda g: -g),
    c.remainder: singular(x=1, y=lambda x, y: -c.floor_divide(x, y)),
    c.fmod: singular(x=1, y=lambda x, y, out: -c.round((x - out) / y)),
    c.copysign: Slopes(x=lambda x, out: c.sign(x) * c.sign(out), y=0),
    c.nextafter: Slopes(x=1, y=0),
    c.abs: General(
        jvp=_abs_jvp, vjp=lambda primals, outs, cotangents: (cotangents[0] * c.sign(primals[0]),), square=abs2
    ),
    c.sign: General(
        jvp=lambda primals, tangents, outs: (
            _tangential(*primals, *outs, *tangents) if primals[0].spec.cplx else None,
        ),
        vjp=lambda primals, outs, cotangents: (
            _tangential(*primals, *outs, *cotangents) if primals[0].spec.cplx else None,
        ),
    ),
    # -- extrema and selection ----------------------------------------------------------------------------------
    c.maximum: _extremum(c.gt),
    c.minimum: _extremum(c.lt),
    c.clamp: General(jvp=_clamp_jvp, vjp=_clamp_vjp),
    c.select: Linear(
        joint=True, x=lambda g, pred: c.select(pred, g, 0), y=lambda g, pred: c.select(pred, 0, g)
    ),
    # -- exponentials and logarithms ----------------------------------------------------------------------------
    c.exp: singular(x=lambda out: out),
    c.exp2: singular(x=lambda out: out * _LN2),
    c.expm1: singular(x=lambda x: c.exp(x)),  # not out + 1, which loses all digits for very negative x
    c.log: singular(x=lambda x: 1 / x),
    c.log2: singular(x=lambda x: (1 / _LN2) / x),
    c.log10: singular(x=lambda x: (1 / _LN10) / x),
    c.log1p: singular(x=lambda x: 1 / (1 + x)),
    c.logaddexp: Slopes(x=_share, y=lambda x, y: _share(y, x)),
    # -- roots and lengths --------------------------------------------------------------------------------------
    c.sqrt: singular(x=lambda out: 0.5 / out),
    c.rsqrt: singular(x=lambda x, out: -0.5 * out / x),
    c.cbrt: singular(x=lambda out: (1 / 3) / (out * out)),
    c.hypot: Slopes(
        x=lambda x, out: _ratio(x, out), y=lambda y, out: _ratio(y, out), square=lambda x, y: x * x + y * y
    ),
    # -- circular and hyperbolic functions ----------------------------------------------------------------------
    c.sin: Slopes(x=lambda x: c.cos(x)),
    c.cos: Slopes(x=lambda x: -c.sin(x)),
    c.tan: singular(x=lambda out: 1 + out * out),
    c.asin: singular(x=lambda x: c.rsqrt((1 - x) * (1 + x))),
    c.acos: singular(x=lambda x: -c.rsqrt((1 - x) * (1 + x))),
    c.atan: singular(x=lambda x: 1 / (1 + x * x)),
    c.atan2: Slopes(x=lambda x, y: _angular(y, x, y), y=lambda x, y: -_angular(x, x, y)),
    c.sinh: singular(x=lambda x: c.cosh(x)),
    c.cosh: singular(x=lambda x: c.sinh(x)),
    c.tanh: Slopes(x=lambda out: 1 - out * out),
    c.asinh: singular(x=lambda x: c.rsqrt(1 + x * x)),
    c.acosh: singular(x=lambda x: c.rsqrt(x - 1) * c.rsqrt(x + 1)),  # one root of the product takes the wrong branch
    c.atanh: singular(x=lambda x: 1 / ((1 - x) * (1 + x))),
    # -- error and gamma functions ------------------------------------------------------------------------------
    c.erf: Slopes(x=lambda x: _ERF * c.exp(-(x * x))),
    c.erfc: Slopes(x=lambda x: -_ERF * c.exp(-(x * x))),
    c.erfinv: singular(x=lambda out: (1 / _ERF) * c.exp(out * out)),
    c.lgamma: singular(x=lambda x: c.digamma(x)),
    c.digamma: singular(x=lambda x: c.polygamma(x, order=1)),
    c.polygamma: singular(x=lambda x, order: c.polygamma(x, order=order + 1)),
    # -- complex numbers and dtypes -----------------------------------------------------------------------------
    c.conj: Linear(x=lambda g: conjugate(g)),
    c.real: Linear(x=lambda g, x_spec: c.convert(g, dtype=x_spec.dtype) if x_spec.cplx else g),
    c.imag: General(
        jvp=lambda primals, tangents, outs: (c.imag(tangents[0]) if primals[0].spec.cplx else None,),
        vjp=lambda primals, outs, cotangents: (c.complex(0.0, cotangents[0]) if primals[0].spec.cplx else None,),
    ),
    c.complex: Linear(joint=True, re=lambda g: c.real(g), im=lambda g: c.imag(g)),
    c.convert: Linear(
        x=lambda g, x_spec: c.convert(c.real(g) if g.spec.cplx and not x_spec.cplx else g, dtype=x_spec.dtype)
    ),
    # -- zero by definition -------------------------------------------------------------------------------------
    **dict.fromkeys(
        (
            c.stop_gradient, c.floor, c.ceil, c.trunc, c.round, c.floor_divide,
            c.eq, c.ne, c.lt, c.le, c.gt, c.ge, c.is_finite, c.is_nan, c.is_inf, c.signbit,
            c.bitwise_and, c.bitwise_or, c.bitwise_xor, c.bitwise_not, c.shift_left, c.shift_right, c.population_count,
        ),
        Inactive(),
    ),
}  # fmt: skip
