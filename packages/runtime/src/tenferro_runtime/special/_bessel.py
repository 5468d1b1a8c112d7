"""Bessel functions of real order and argument, differentiable with respect to both.

Derivatives with respect to the argument are binomial combinations of functions of neighbouring orders. The functions
are entire in the order, so derivatives with respect to it follow from values at nearby orders. Scaled functions vary
slowly for large arguments, where the terms of the combination cancel; there, values on a circle are used.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import comb
from typing import Any

import numpy as np

from tenferro_runtime.extension import Primitive
from tenferro_runtime.special._declared import partials
from tenferro_runtime.special._sampling import circled, sampled
from tenferro_runtime.special._scipy import host_special
from tenferro_tensor import Array, catalog

__all__ = ["hankel1", "hankel2", "iv", "ive", "jn", "jv", "kv", "kve", "yv"]


SIGNS = {"j": (1, -1), "y": (1, -1), "i": (1, 1), "k": (-1, -1)}
"""The derivative by x is half the sum of the functions of the orders below and above, with these signs."""

_ASYMPTOTIC = 1e6
"""Above this argument, and far above the square of the order, the asymptotic series is fully accurate."""

_LARGE = 2.0
"""Above this argument, and above three times the order, scaled functions are differentiated on a circle."""


def jv(v: Any, x: Any, /) -> Array:
    """Bessel function of the first kind, of order `v`.

    Real for negative `x` where `v` is an integer, and NaN elsewhere; there, the derivative by the order is NaN.

    Definition: DLMF 10.2.

    Args:
        v: order, real.
        x: real array.

    Returns:
        Values of the broadcast shape, in the promoted floating-point dtype (float64 for integers).

    >>> tr.special.jv(0.5, tr.asarray([0.0, 2.0]))
    Tensor([0.        , 0.51301614])
    """
    return jv_(v, x)  # type: ignore[no-any-return]


jn = jv


def yv(v: Any, x: Any, /) -> Array:
    """Bessel function of the second kind, of order `v`; minus infinity at 0.

    Definition: DLMF 10.2.

    Args:
        v: order, real.
        x: real array.

    Returns:
        Values of the broadcast shape, in the promoted floating-point dtype (float64 for integers).

    >>> tr.special.yv(0.5, tr.asarray(2.0))
    Tensor(0.23478571)
    """
    return yv_(v, x)  # type: ignore[no-any-return]


def iv(v: Any, x: Any, /) -> Array:
    """Modified Bessel function of the first kind, of order `v`.

    Definition: DLMF 10.25.

    Args:
        v: order, real.
        x: real array.

    Returns:
        Values of the broadcast shape, in the promoted floating-point dtype (float64 for integers).

    >>> tr.special.iv(0.5, tr.asarray([0.0, 2.0]))
    Tensor([0.        , 2.04623686])
    """
    return iv_(v, x)  # type: ignore[no-any-return]


def kv(v: Any, x: Any, /) -> Array:
    """Modified Bessel function of the second kind, of order `v`; infinite at 0.

    Definition: DLMF 10.25.

    Args:
        v: order, real.
        x: real array.

    Returns:
        Values of the broadcast shape, in the promoted floating-point dtype (float64 for integers).

    >>> tr.special.kv(0.5, tr.asarray(2.0))
    Tensor(0.11993777)
    """
    return kv_(v, x)  # type: ignore[no-any-return]


def ive(v: Any, x: Any, /) -> Array:
    """`iv` times ``exp(-abs(x))``, which does not overflow; its derivative at 0 is the mean of the one-sided ones.

    Args:
        v: order, real.
        x: real array.

    Returns:
        Values of the broadcast shape, in the promoted floating-point dtype (float64 for integers).

    >>> tr.special.ive(0.5, tr.asarray(1e4))
    Tensor(0.00398942)
    """
    return ive_(v, x)  # type: ignore[no-any-return]


def kve(v: Any, x: Any, /) -> Array:
    """`kv` times ``exp(x)``, which does not underflow.

    Args:
        v: order, real.
        x: real array.

    Returns:
        Values of the broadcast shape, in the promoted floating-point dtype (float64 for integers).

    >>> tr.special.kve(0.5, tr.asarray(1e4))
    Tensor(0.01253314)
    """
    return kve_(v, x)  # type: ignore[no-any-return]


def hankel1(v: Any, x: Any, /) -> Array:
    """Hankel function of the first kind, ``jv(v, x) + 1j * yv(v, x)``, of a real argument.

    Definition: DLMF 10.2.

    Args:
        v: order, real.
        x: real array.

    Returns:
        Complex values of the broadcast shape.

    >>> tr.special.hankel1(0.5, tr.asarray(2.0))
    Tensor(0.51301614+0.23478571j)
    """
    return catalog.complex(jv_(v, x), yv_(v, x))  # type: ignore[no-any-return]


def hankel2(v: Any, x: Any, /) -> Array:
    """Hankel function of the second kind, ``jv(v, x) - 1j * yv(v, x)``, of a real argument.

    Definition: DLMF 10.2.

    Args:
        v: order, real.
        x: real array.

    Returns:
        Complex values of the broadcast shape.

    >>> tr.special.hankel2(0.5, tr.asarray(2.0))
    Tensor(0.51301614-0.23478571j)
    """
    return catalog.complex(jv_(v, x), -yv_(v, x))  # type: ignore[no-any-return]


def neighbours(base: Callable[[Any, Any], Any], kind: str, v: Any, x: Any, order: int) -> Any:
    """The derivative by `x` of the given order of ``base(v, x)``, a function of the given kind."""
    below, above = SIGNS[kind]
    terms = [
        below ** (order - i) * above**i * comb(order, i) * base(v - order + 2 * i, x) / 2**order
        for i in range(order + 1)
    ]
    total = sum(terms)
    undone = np.isnan(total)
    if order and undone.any():  # infinities of both signs: the farthest order from 0 dominates
        total = np.where(undone, np.where(np.asarray(v) < 0, terms[0], terms[-1]), total)
    return total


def scaled_slope(scaled: Callable[[Any, Any], Any], kind: str, v: Any, x: Any, order: int, parity: Any = np.nan) -> Any:
    """The derivative by `x` of the given order of a scaled function of kind ``"i"`` or ``"k"``.

    `parity` is its sign at negative `x`, the function being even or odd there.
    """
    if order == 0:
        return scaled(v, x)
    at, size = np.abs(x), np.abs(v)
    middle = at > _LARGE + 3.0 * size
    far = at > _ASYMPTOTIC + 50.0 * size**2
    value = _near_slope(scaled, kind, v, np.where(far, 1.0, x), order)
    if not middle.any():
        return value
    at = np.where(middle, at, 1.0 + 3.0 * size)
    inside = np.where(far, 1.0 + 3.0 * size, at)
    turned = (lambda z: scaled(v, z) * np.exp(-1j * z.imag)) if kind == "i" else (lambda z: scaled(v, z))
    beyond = circled(turned, inside, 0.25 * inside / (1.0 + size / inside), order)
    beyond = np.where(far, _asymptotic(kind, v, at, order), beyond)
    return np.where(middle, np.where(x < 0, parity * (-1) ** order * beyond, beyond), value)


def _near_slope(scaled: Callable[[Any, Any], Any], kind: str, v: Any, x: Any, order: int) -> Any:
    """The product rule, whose terms cancel for large `x`."""
    side = np.sign(x) if kind == "i" else -np.ones_like(x)
    last = neighbours(scaled, kind, v, x, order)
    total = last
    for j in range(order):
        factor = comb(order, j) * (-side) ** (order - j)
        total = total + np.where(factor == 0, 0.0, factor * neighbours(scaled, kind, v, x, j))
    return np.where(np.isnan(total), last, total)


def _asymptotic(kind: str, v: Any, x: Any, order: int) -> Any:
    """The series in ``1 / x``, differentiated term by term."""
    total: Any = 0.0
    term = np.sqrt(0.5 / np.pi) if kind == "i" else np.sqrt(0.5 * np.pi)
    for j in range(8):
        falling = 1.0
        for i in range(order):
            falling *= -0.5 - j - i
        total = total + falling * term * x ** (-0.5 - j - order)
        term = term * (4.0 * v**2 - (2 * j + 1) ** 2) / (8 * (j + 1)) * (-1 if kind == "i" else 1)
    return total


def _order_radius(kind: str, v: Any, x: Any) -> Any:
    """Change of the order over which a function changes by a few e-foldings."""
    special = host_special()
    at = np.maximum(np.abs(x), 1e-300)
    steep = np.maximum(special.digamma(np.abs(v) + 1.0) - np.log(0.5 * at), 0.0)
    if kind in "jy":
        return 1.5 / (1.0 + steep)
    # Sines of pi v weigh exp(-2 x) in the functions of the first kind.
    return (2.0 if kind == "k" else 1.5) * np.sqrt(1.0 + np.maximum(at - 16.0, 0.0) / 8.0) / (1.0 + steep)


def _compute(name: str, orders: tuple[int, int], v: Any, x: Any) -> Any:
    base, kind = getattr(host_special(), name), name[0]
    by_order, by_argument = orders
    parity = np.where(v == np.round(v), np.cos(np.pi * (v % 2)), np.nan)

    def f(v: Any) -> Any:
        if name.endswith("e"):
            return scaled_slope(base, kind, v, x, by_argument, parity)
        return neighbours(base, kind, v, x, by_argument)

    if by_order == 0:
        value = f(v)
        if kind in "ji" and by_argument:  # x**v / gamma(v + 1) at 0; infinite neighbours do not tell which dominates
            power = v - by_argument
            limit = np.where(power > 0, 0.0, np.copysign(np.inf, host_special().rgamma(power + 1.0)))
            value = np.where((x == 0) & (v != np.round(v)), limit, value)
        return value
    result = sampled(f, v, _order_radius(kind, v, x), by_order)
    if kind in "ji":  # x**v * log(x)**k at 0
        limit = np.where(v > by_argument, 0.0, np.where(v == by_argument, (-np.inf) ** by_order, np.nan))
        result = np.where(x == 0, limit, result)
    return result


def _bessel(name: str, doc: str) -> Primitive:
    return partials(name, "v x", doc, partial(_compute, name))


jv_ = _bessel("jv", "Bessel function of the first kind.")
yv_ = _bessel("yv", "Bessel function of the second kind.")
iv_ = _bessel("iv", "Modified Bessel function of the first kind.")
kv_ = _bessel("kv", "Modified Bessel function of the second kind.")
ive_ = _bessel("ive", "Modified Bessel function of the first kind times ``exp(-abs(x))``.")
kve_ = _bessel("kve", "Modified Bessel function of the second kind times ``exp(x)``.")
