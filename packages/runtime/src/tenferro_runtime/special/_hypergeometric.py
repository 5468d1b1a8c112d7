"""Hypergeometric functions, differentiable with respect to the argument and all parameters.

Derivatives by the argument are functions of shifted parameters. In the parameters the functions are analytic, and
derivatives come from values around them, at a third of the distance to the nearest pole at most.
"""

from __future__ import annotations

from math import comb
from typing import Any

import numpy as np

from tenferro_runtime.special._declared import partials
from tenferro_runtime.special._recurrences import rising
from tenferro_runtime.special._sampling import around
from tenferro_runtime.special._scipy import host_special
from tenferro_runtime.special._tricomi import tricomi
from tenferro_tensor import Array

__all__ = ["hyp0f1", "hyp1f1", "hyp2f1", "hyperu"]


def hyp0f1(v: Any, x: Any, /) -> Array:
    """Confluent hypergeometric limit function 0F1(; v; x).

    Definition: DLMF 16.2.

    Args:
        v: lower parameter, a real array.
        x: real array.

    Returns:
        Values of the broadcast shape, in the promoted floating-point dtype (float64 for integers).

    >>> tr.special.hyp0f1(0.5, tr.asarray([0.0, 1.0]))
    Tensor([1.        , 3.76219569])
    """
    return hyp0f1_(v, x)  # type: ignore[no-any-return]


def hyp1f1(a: Any, b: Any, x: Any, /) -> Array:
    """Kummer's confluent hypergeometric function 1F1(a; b; x).

    Definition: DLMF 13.2.

    Args:
        a: upper parameter, a real array.
        b: lower parameter, a real array.
        x: real array.

    Returns:
        Values of the broadcast shape, in the promoted floating-point dtype (float64 for integers).

    >>> tr.special.hyp1f1(0.5, 1.5, tr.asarray([0.0, 1.0]))
    Tensor([1.        , 1.46265175])
    """
    return hyp1f1_(a, b, x)  # type: ignore[no-any-return]


def hyp2f1(a: Any, b: Any, c: Any, x: Any, /) -> Array:
    """Gauss hypergeometric function 2F1(a, b; c; x).

    Definition: DLMF 15.2.

    Args:
        a: first upper parameter, a real array.
        b: second upper parameter, a real array.
        c: lower parameter, a real array.
        x: real array, at most 1.

    Returns:
        Values of the broadcast shape, in the promoted floating-point dtype (float64 for integers).

    >>> tr.special.hyp2f1(1.0, 1.0, 2.0, tr.asarray([0.0, 0.5]))
    Tensor([1.        , 1.38629436])
    """
    return hyp2f1_(a, b, c, x)  # type: ignore[no-any-return]


def hyperu(a: Any, b: Any, x: Any, /) -> Array:
    """Tricomi's confluent hypergeometric function U(a, b, x).

    Definition: DLMF 13.2.

    Args:
        a: first parameter, a real array.
        b: second parameter, a real array.
        x: positive real array.

    Returns:
        Values of the broadcast shape, in the promoted floating-point dtype (float64 for integers).

    >>> tr.special.hyperu(0.5, 1.5, tr.asarray(2.0))
    Tensor(0.70710678)
    """
    return hyperu_(a, b, x)  # type: ignore[no-any-return]


def _from_poles(b: Any) -> Any:
    """A third of the distance to the nearest of 0, -1, -2, ...; where that is none, some part of the gap."""
    distance = np.where(b > -0.5, np.abs(b), np.abs(b - np.round(b)))
    return np.where(distance == 0, 0.3, distance) / 3


def _hyp0f1(orders: tuple[int, int], v: Any, x: Any) -> Any:
    k, special = orders[1], host_special()

    def f(v: Any) -> Any:
        return special.hyp0f1(v + k, x) / rising(v, k)

    radius = np.minimum(2.0 / (1.0 + 0.5 * np.log1p(np.abs(x))), _from_poles(v))
    return around(f, (v,), (radius,), orders[:1])


def _hyp1f1(orders: tuple[int, int, int], a: Any, b: Any, x: Any) -> Any:
    k, special = orders[2], host_special()

    def f(a: Any, b: Any) -> Any:
        value = special.hyp1f1(a + k, b + k, x)
        return value * (rising(a, k) / rising(b, k)) if k else value

    radius = 2.0 / (1.0 + np.log1p(np.abs(x)))
    return around(f, (a, b), (radius, np.minimum(radius, _from_poles(b))), orders[:2])


def _hyp2f1(orders: tuple[int, int, int, int], a: Any, b: Any, c: Any, x: Any) -> Any:
    k, special = orders[3], host_special()

    def f(a: Any, b: Any, c: Any) -> Any:
        value = special.hyp2f1(a + k, b + k, c + k, x)
        if k == 0:
            return value
        factor = rising(a, k) * rising(b, k) / rising(c, k)
        return np.where(factor == 0, 0.0, factor * value)  # a polynomial, where the function is infinite at 1

    radius = 2.0 / (1.0 + np.abs(np.log(np.maximum(1.0 - x, 1e-16))))
    # At x == 1 the series converges while c - a - b stays positive.
    radius = np.where(x == 1, np.minimum(radius, np.abs(c - a - b) / 3), radius)
    return around(f, (a, b, c), (radius, radius, np.minimum(radius, _from_poles(c))), orders[:3])


def _hyperu(orders: tuple[int, int, int], a: Any, b: Any, x: Any) -> Any:
    """Values are SciPy's where it has any, which is not so at some large integers `b`."""
    by_a, by_b, k = orders
    if by_a == by_b == 0:
        factor = rising(a, k) * (-1) ** k
        value = host_special().hyperu(a + k, b + k, x)
        lost = np.isnan(value) & (x > 0)
        if lost.any():
            value[lost] = tricomi(a[lost] + k, b[lost] + k, x[lost], (0, 0))
        return factor * value if k else value
    total: Any = 0.0
    for i in range(min(by_a, k) + 1):  # the product rule
        rest = (by_a - i, by_b)
        total = total + comb(by_a, i) * (-1) ** k * rising(a, k, i) * tricomi(a + k, b + k, x, rest)
    return total


hyp0f1_ = partials("hyp0f1", "v x", "Confluent hypergeometric limit function.", _hyp0f1)
hyp1f1_ = partials("hyp1f1", "a b x", "Kummer's confluent hypergeometric function.", _hyp1f1)
hyp2f1_ = partials("hyp2f1", "a b c x", "Gauss's hypergeometric function.", _hyp2f1)
hyperu_ = partials("hyperu", "a b x", "Tricomi's confluent hypergeometric function.", _hyperu, own=True)
