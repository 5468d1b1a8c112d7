"""Special functions as statements of simpler primitives.

Every formula covers all real arguments: `select` chooses between regions, so each lane computes all of them. A region
may yield infinity or NaN outside its own range; these values are discarded.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, Final

import numpy as np

from tenferro_tensor._primitive import Op, Primitive
from tenferro_tensor.catalog import analytic, arithmetic, comparison
from tenferro_tensor.loop_ir._nodes import Literal
from tenferro_tensor.loop_ir._terms import OpStatements, ScalarFormula, Term

MAX_EXPONENT: Final = 64
"""Largest exponent for which a power of integers is expanded into products."""

MAX_ORDER: Final = 8
"""Largest order of polygamma that is expanded: up to it, the fixed number of terms is accurate."""

_BERNOULLI: Final = [
    Fraction(n, d)
    for n, d in (
        (1, 6), (-1, 30), (1, 42), (-1, 30), (5, 66), (-691, 2730), (7, 6), (-3617, 510), (43867, 798),
        (-174611, 330), (854513, 138), (-236364091, 2730),
    )
]  # fmt: skip
"""The Bernoulli numbers B_2, B_4, ..., B_24."""

_ZETA: Final = (
    0.3224670334241132, -0.0673523010531981, 0.020580808427784546, -0.007385551028673986, 0.0028905103307415234,
    -0.001192753911703261, 0.0005096695247430425, -0.00022315475845357939, 9.945751278180853e-05,
    -4.492623673813314e-05, 2.050721277567069e-05, -9.439488275268397e-06, 4.374866789907488e-06,
    -2.039215753801366e-06, 9.55141213040742e-07, -4.492469198764566e-07, 2.1207184805554665e-07,
    -1.0043224823968099e-07, 4.7698101693639804e-08, -2.2711094608943164e-08, 1.0838659214896955e-08,
    -5.183475041970047e-09, 2.4836745438024785e-09, -1.1921401405860912e-09,
)  # fmt: skip
"""(-1)^k (zeta(k) - 1) / k for k from 2: the Taylor series of log Gamma around 2 after its linear term."""

_ONE_LESS_GAMMA: Final = 0.42278433509846713
_HALF_LOG_TWO_PI: Final = 0.9189385332046728


def expansion(op: Op, *operands: np.dtype[Any] | Literal) -> OpStatements | None:
    """Equal statements of simpler element-wise primitives for an op, if some are known.

    Results agree with SciPy to a few units in the last place, and to a few units of rounding of 1 near the zeros of
    `lgamma` on the negative axis, of `digamma` and of `polygamma`.

    Args:
        op: the op.
        operands: dtype of each operand, or its literal, which the statements do not read.

    Returns:
        The statements, or None.

    >>> print(expansion(arithmetic.pow.op(), np.dtype("int64"), Literal(3, np.dtype("int64"))))
    r2: int64 = mul(r0, r0)
    r3: int64 = mul(r0, r2)
    """
    dtypes = [o.dtype if isinstance(o, Literal) else np.dtype(o) for o in operands]
    formula = ScalarFormula(dtypes)
    x, *others = formula.operands()
    if op.primitive is arithmetic.pow:
        exponent = operands[1].value if isinstance(operands[1], Literal) else None
        if dtypes[0].kind not in "iu" or not isinstance(exponent, int) or not 0 <= exponent <= MAX_EXPONENT:
            return None
        return formula.expansion(x.power(exponent) if exponent else formula.literal(1))
    write = _FORMULAS.get(op.primitive)
    if write is None or dtypes[0].kind != "f":
        return None
    result = write(formula, x, *others, **op.params)
    return None if result is None else formula.expansion(result)


def _erfinv(b: ScalarFormula, x: Term) -> Term:
    """An initial value of three digits (S. Winitzki, A handy approximation for the error function and its inverse,
    2008) and two steps of Halley's method, which triples them; the tails use the complement, where 1 - |x| is exact.
    """
    log, log1p, sqrt = b.function(analytic.log), b.function(analytic.log1p), b.function(analytic.sqrt)
    erf, erfc, exp = b.function(analytic.erf), b.function(analytic.erfc), b.function(analytic.exp)
    a = b.apply(arithmetic.abs, x)
    middle, tail = a < 0.5, 1 - a
    curve = 0.147
    bend = log1p(-(a * a)).where(middle, log(tail * (a + 1)))
    t = bend * 0.5 + 2 / (math.pi * curve)
    y = sqrt(bend * (-1 / curve) / (sqrt(t * t - bend * (1 / curve)) + t))
    for _ in range(2):
        missing = (erf(y) - a).where(middle, tail - erfc(y))
        step = missing * (math.sqrt(math.pi) / 2) / exp(-(y * y))
        y = y - step / (y * step + 1)
    y = b.literal(math.inf).where(a.equals(1), y)
    return b.apply(arithmetic.copysign, y, x)


def _lgamma(b: ScalarFormula, x: Term) -> Term:
    """Stirling's series from 8 on; below, the Taylor series around 2, reached by the recurrence in one logarithm; below
    -1/2, the reflection log |Gamma(x) Gamma(-x)| = log pi - log |x sin(pi x)|.
    """
    log, magnitude = b.function(analytic.log), b.function(arithmetic.abs)
    mirrored, a = x < -0.5, magnitude(x)
    v = a.where(mirrored, x)
    left, steps = v, b.literal(1.0)
    for _ in range(6):
        above = left >= 2.5
        left = (left - 1).where(above, left)
        steps = (steps * left).where(above, steps)
    small, low, big = v < 0.5, v < 1.5, v >= 8
    factors = magnitude(v * (v + 1)).where(small, v.where(low, steps))
    z = v.where(small, (v - 1).where(low, left - 2))
    taylor = z * z.polynomial(_ONE_LESS_GAMMA, *_ZETA)
    logarithm = log(v.where(big, factors))
    q = 1 / v
    series = q * (q * q).polynomial(*[float(c / (2 * k * (2 * k - 1))) for k, c in enumerate(_BERNOULLI[:10], 1)])
    stirling = (v - 0.5) * (logarithm - 1) + (_HALF_LOG_TWO_PI - 0.5) + series
    value = stirling.where(big, taylor + (-logarithm).where(low, logarithm))
    off, sine, _ = _turn(b, x)
    reflected = math.log(math.pi) - log(magnitude(x * sine)) - value
    reflected = b.literal(math.inf).where(off.equals(0), reflected)
    return x.where(x.equals(-math.inf), reflected.where(mirrored, value))


def _digamma(b: ScalarFormula, x: Term) -> Term:
    """The asymptotic series from 8 on, reached by the recurrence as one quotient; below -1/2, the reflection psi(x) =
    psi(-x) - 1 / x - pi cot(pi x).
    """
    log = b.function(analytic.log)
    mirrored, a = x < -0.5, b.apply(arithmetic.abs, x)
    v = a.where(mirrored, x)
    below = v < 8
    above, product = b.literal(1.0), v
    for j in range(1, 8):
        above, product = above * (v + j) + product, product * (v + j)
    w = (v + 8).where(below, v)
    q = 1 / w
    series = (q * q).polynomial(0.0, *[float(c / (2 * k)) for k, c in enumerate(_BERNOULLI[:10], 1)])
    value = log(w) - (q * 0.5 + series) - (above / product).where(below, 0.0)
    off, sine, cosine = _turn(b, x)
    reflected = value + 1 / a - cosine / sine * math.pi
    reflected = b.literal(math.nan).where(off.equals(0), reflected)
    return reflected.where(mirrored, value)


def _polygamma(b: ScalarFormula, x: Term, *, order: int) -> Term | None:
    """The Euler-Maclaurin sum of 1 / (x + k)^(order + 1); below -1/2, the derivatives of the reflection psi(1 - x) -
    psi(x) = pi cot(pi x), which are polynomials in the cotangent.
    """
    if order == 0:
        return _digamma(b, x)
    if order > MAX_ORDER:
        return None
    power, mirrored = order + 1, x < -0.5
    v = (1 - x).where(mirrored, x)
    below = v < 12
    head = (1 / v).power(power)
    for j in range(1, 12):
        head = head + (1 / (v + j)).power(power)
    q = 1 / (v + 12).where(below, v)
    rising, series = Fraction(power), [Fraction(1, order)]
    for k, c in enumerate(_BERNOULLI, 1):
        series.append(c * rising / math.factorial(2 * k))
        rising *= (power + 2 * k - 1) * (power + 2 * k)
    tail = q.power(order) * ((q * q).polynomial(*map(float, series)) + q * 0.5)
    total = (tail + head.where(below, 0.0)) * float(math.factorial(order))
    sign = 1 if order % 2 else -1
    off, sine, cosine = _turn(b, x)
    reflected = -total - _cotangent_derivative(cosine / sine, order)
    value = reflected.where(mirrored, total if sign > 0 else -total)
    pole = b.literal(sign * math.inf)
    value = pole.where(off.equals(0), value).where(x < 0.5, value)
    return pole.where(x.equals(-math.inf), value)


def _logaddexp(b: ScalarFormula, x: Term, y: Term) -> Term:
    """The larger one and the rest; equal operands are separate, since infinities have no difference."""
    log1p, exp = b.function(analytic.log1p), b.function(analytic.exp)
    rest = log1p(exp(-b.apply(arithmetic.abs, x - y)))
    return b.apply(arithmetic.maximum, x, y) + b.literal(math.log(2)).where(b.apply(comparison.eq, x, y), rest)


def _turn(b: ScalarFormula, x: Term) -> tuple[Term, Term, Term]:
    """The distance to the nearest integer, and sine and cosine of pi times it."""
    off = x - b.apply(arithmetic.round, x)
    angle = off * math.pi
    return off, b.apply(analytic.sin, angle), b.apply(analytic.cos, angle)


def _cotangent_derivative(c: Term, order: int) -> Term:
    """The derivative of pi cot(pi x) of a given order, as pi^(order + 1) times a polynomial in the cotangent `c`."""
    coefficients = [0, 1]
    for _ in range(order):
        slope = [k * a for k, a in enumerate(coefficients)][1:]
        coefficients = [-(a + b) for a, b in zip([*slope, 0, 0], [0, 0, *slope], strict=True)]
    odd = next(k for k, a in enumerate(coefficients) if a)
    even = (c * c).polynomial(*[a * math.pi ** (order + 1) for a in coefficients[odd::2]])
    return c * even if odd else even


_FORMULAS: Final[dict[Primitive, Callable[..., Term | None]]] = {
    analytic.erfinv: _erfinv,
    analytic.lgamma: _lgamma,
    analytic.digamma: _digamma,
    analytic.polygamma: _polygamma,
    analytic.logaddexp: _logaddexp,
}

WRITTEN_OUT: Final = frozenset(_FORMULAS)
"""Primitives that `expansion` writes out for real numbers; `polygamma` up to an order."""
