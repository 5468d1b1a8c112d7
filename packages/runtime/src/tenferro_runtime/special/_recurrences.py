"""Recurrences and coefficients that several functions share, for NumPy's arrays and for tensors."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from math import comb
from typing import Any, Final, TypeVar

import numpy as np

__all__ = ["BERNOULLI", "STIRLING", "bell_polynomials", "combined", "exponential", "horner", "rising"]

Key = TypeVar("Key", bound=Hashable)

BERNOULLI: Final = (
    1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798, -174611 / 330,
    854513 / 138, -236364091 / 2730,
)  # fmt: skip
"""Bernoulli numbers of order 2, 4, ..."""

STIRLING: Final = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156)
"""Coefficients of odd powers of ``1 / a`` in the logarithm of the gamma function."""


def horner(x: Any, coefficients: Sequence[Any]) -> Any:
    """The power series in `x` with these coefficients, of order 0 first."""
    series = coefficients[-1]
    for c in coefficients[-2::-1]:
        series = x * series + c
    return series


def rising(a: Any, order: int, slope: int = 0, step: int = 1) -> Any:
    """``a (a + step) ...`` of so many factors, or, for steps of 1, a derivative of it."""
    if slope:
        return np.polynomial.Polynomial.fromroots([-i for i in range(order)]).deriv(slope)(a)
    product: Any = 1.0
    for i in range(order):
        product = product * (a + i * step)
    return product


def bell_polynomials(logs: Mapping[tuple[int, int], Any], orders: tuple[int, int]) -> dict[tuple[int, int], Any]:
    """Derivatives of ``exp(f)`` over ``exp(f)``, complete Bell polynomials, for a function f of two variables.

    Args:
        logs: the derivatives of f, by their orders.
        orders: the highest orders.

    Returns:
        The derivatives up to these orders, by their orders.
    """
    values: dict[tuple[int, int], Any] = {(0, 0): 1.0}
    for m in range(orders[0] + 1):
        for n in range(orders[1] + 1):
            if m or n:
                (p, q), m1, n1 = ((1, 0), m - 1, n) if m else ((0, 1), m, n - 1)
                values[m, n] = sum(
                    comb(m1, i) * comb(n1, j) * logs[i + p, j + q] * values[m1 - i, n1 - j]
                    for i in range(m1 + 1)
                    for j in range(n1 + 1)
                )
    return values


def exponential(first: Any, slopes: Sequence[Any]) -> list[Any]:
    """Taylor coefficients of ``exp(f)``, by the first of them and those of the derivative of f."""
    series = [first]
    for k in range(1, len(slopes) + 1):
        series.append(sum(slopes[i] * series[k - 1 - i] for i in range(k)) / k)
    return series


def combined(
    terms: Mapping[Key, Any], steps: int, following: Callable[[Key, Any], Iterable[tuple[Key, Any]]]
) -> dict[Key, Any]:
    """The factors of a sum of terms after so many steps, each of which replaces every term by several.

    Args:
        terms: the factors at first, by what tells the terms apart.
        steps: how many.
        following: the terms that replace one, given its key and factor.
    """
    now = dict(terms)
    for _ in range(steps):
        after: dict[Key, Any] = {}
        for key, factor in now.items():
            for other, more in following(key, factor):
                after[other] = after.get(other, 0.0) + more
        now = after
    return now
