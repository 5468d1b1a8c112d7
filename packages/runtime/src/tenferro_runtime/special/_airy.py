"""Airy functions of a real argument."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from tenferro_runtime.special._declared import partials, several
from tenferro_runtime.special._operands import real_floating
from tenferro_runtime.special._recurrences import combined
from tenferro_runtime.special._sampling import circled
from tenferro_runtime.special._scipy import host_special
from tenferro_tensor import Array

__all__ = ["AiryResult", "airy", "airye"]


class AiryResult(NamedTuple):
    """Airy functions and their derivatives."""

    ai: Array
    aip: Array
    bi: Array
    bip: Array


def airy(x: Any, /) -> AiryResult:
    """Airy functions Ai and Bi and their derivatives.

    Definition: DLMF 9.2.

    Args:
        x: real array.

    Returns:
        `AiryResult` of four arrays of the shape of `x`: Ai, its derivative, Bi and its derivative.

    >>> tr.special.airy(tr.asarray(1.0)).ai
    Tensor(0.13529242)
    """
    return AiryResult(*airy_(real_floating("airy", x)))


def airye(x: Any, /) -> AiryResult:
    """Airy functions scaled by ``exp(2 / 3 x sqrt(x))`` (Ai and its derivative) and its inverse (Bi).

    For negative `x`, where that factor has magnitude 1, Bi is not scaled, and Ai is NaN.

    Definition: DLMF 9.2.

    Args:
        x: real array.

    Returns:
        `AiryResult` of four arrays of the shape of `x`: Ai, its derivative, Bi and its derivative.

    >>> tr.special.airye(tr.asarray(100.0)).ai
    Tensor(0.08919692)
    """
    return AiryResult(*[of(x) for of in _SCALED])


def _airy_jvp(primals: Any, tangents: Any, outs: Any) -> Any:
    (x,), (t,), (ai, aip, bi, bip) = primals, tangents, outs
    return t * aip, t * (x * ai), t * bip, t * (x * bi)


def _growing(prime: int, order: int, x: Any) -> Any:
    """Derivatives of Bi or Bi' at negative `x`: ``p * f + q * f'`` with polynomials, since ``f'' = x f``."""
    polynomial = np.polynomial.Polynomial
    p, q, x_ = polynomial([1.0]), polynomial([0.0]), polynomial([0.0, 1.0])
    for _ in range(order + prime):
        p, q = p.deriv() + x_ * q, q.deriv() + p
    values = host_special().airy(x)
    return p(x) * values[2] + q(x) * values[3]


def _compute_scaled(first: int, prime: int, orders: tuple[int], x: Any) -> Any:
    special, order = host_special(), orders[0]
    if order == 0:
        return special.airye(x)[first + prime]
    near = _near(first, prime, order, np.minimum(x, 1.0))
    if not (x > 1).any():
        return near
    at = np.maximum(x, 1.0)

    def scaled(z: Any) -> Any:
        value = special.airye(z)[first + prime]
        return value if first == 0 else value * np.exp(-2j / 3 * (z * np.sqrt(z)).imag)

    return np.where(x > 1, circled(scaled, at, 0.25 * at, order), near)


def _near(first: int, prime: int, order: int, x: Any) -> Any:
    """Sums of products of a power of the root of `x` and the function or its derivative, all of them scaled."""
    side = 1 if first == 0 else -1

    def slopes(key: tuple[int, int], factor: float) -> Any:
        power, primed = key
        if power:
            yield (power - 2, primed), factor * power / 2
        yield (power + 1, primed), side * factor
        yield ((power + 2, 0) if primed else (power, 1)), factor

    terms = combined({(0, prime): 1.0}, order, slopes)
    values = host_special().airye(np.maximum(x, 0.0))[first : first + 2]
    root = np.sqrt(np.maximum(x, 0.0))
    near: Any = sum(factor * root**power * values[primed] for (power, primed), factor in terms.items() if factor)
    below = np.nan if first == 0 else _growing(prime, order, np.minimum(x, 0.0))
    return np.where(x < 0, below, near)


_SCALED = [
    partials(
        f"airye_{name}",
        "x",
        f"Airy function {text} times ``exp({sign}2 / 3 x sqrt(x))``.",
        partial(_compute_scaled, first, prime),
        own=True,
    )
    for name, text, sign, first, prime in (
        ("ai", "Ai", "", 0, 0),
        ("aip", "Ai'", "", 0, 1),
        ("bi", "Bi", "-", 2, 0),
        ("bip", "Bi'", "-", 2, 1),
    )
]
airy_ = several("airy", "x", "Airy functions Ai and Bi, each followed by its derivative.", 4, _airy_jvp)
