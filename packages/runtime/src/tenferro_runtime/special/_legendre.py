"""Associated Legendre functions and spherical harmonics, differentiable with respect to the angles."""

from __future__ import annotations

from math import pi
from typing import Any

import numpy as np

from tenferro_runtime.special._declared import partials
from tenferro_runtime.special._operands import degree
from tenferro_runtime.special._recurrences import combined
from tenferro_runtime.special._scipy import host_special, in_library
from tenferro_tensor import Array, catalog

__all__ = ["lpmv", "sph_harm_y", "sph_legendre_p"]


def sph_legendre_p(n: Any, m: Any, theta: Any, /) -> Array:
    """Associated Legendre function of ``cos(theta)``, normalized as in spherical harmonics.

    Definition: DLMF 14.30.

    Args:
        n: degree, integers of at least 0.
        m: order, an integer array.
        theta: polar angle in radians, a real array.

    Returns:
        Values of the broadcast shape, in the promoted floating-point dtype (float64 for integers).

    Raises:
        DTypeError: `n` or `m` is not an integer.

    >>> tr.special.sph_legendre_p(1, 1, tr.asarray(0.5))
    Tensor(-0.16563872)
    """
    n, m = degree("sph_legendre_p", "n", n, theta), degree("sph_legendre_p", "m", m, theta)
    return spherical_(n, m, theta)  # type: ignore[no-any-return]


def sph_harm_y(n: Any, m: Any, theta: Any, phi: Any, /) -> Array:
    """Spherical harmonic of degree `n` and order `m`, with the Condon-Shortley phase.

    Definition: DLMF 14.30.

    Args:
        n: degree, integers of at least 0.
        m: order, an integer array.
        theta: polar angle in radians, a real array.
        phi: azimuthal angle in radians, a real array.

    Returns:
        Complex values of the broadcast shape.

    Raises:
        DTypeError: `n` or `m` is not an integer.

    >>> tr.special.sph_harm_y(1, 1, tr.asarray(0.5), 0.25)
    Tensor(-0.16048941-0.04097967j)
    """
    n, m = degree("sph_harm_y", "n", n, theta), degree("sph_harm_y", "m", m, theta)
    polar, azimuth = spherical_(n, m, theta), catalog.mul(m, phi)
    return catalog.complex(polar * catalog.cos(azimuth), polar * catalog.sin(azimuth))  # type: ignore[no-any-return]


def lpmv(m: Any, v: Any, x: Any, /) -> Array:
    """Associated Legendre function of order `m` and degree `v`.

    Definition: DLMF 14.3.

    Args:
        m: order, an integer array.
        v: degree, an integer array.
        x: real array from -1 to 1.

    Returns:
        Values of the broadcast shape, in the promoted floating-point dtype (float64 for integers).

    Raises:
        DTypeError: `m` or `v` is not an integer.

    >>> tr.special.lpmv(1, 2, tr.asarray([0.0, 0.5]))
    Tensor([ 0.        , -1.29903811])
    """
    return lpmv_(degree("lpmv", "m", m, x), degree("lpmv", "v", v, x), x)  # type: ignore[no-any-return]


def _spherical(orders: tuple[int, int, int], n: Any, m: Any, theta: Any) -> Any:
    """Each derivative leads to the orders above and below, with the factors of the ladder operators."""

    def neighbours(shift: int, factor: Any) -> Any:
        at = m + shift
        yield shift + 1, factor * (0.5 * np.sqrt(np.maximum((n - at) * (n + at + 1), 0.0)))
        yield shift - 1, factor * (-0.5 * np.sqrt(np.maximum((n + at) * (n - at + 1), 0.0)))

    total: Any = 0.0
    for shift, factor in combined({0: np.ones_like(theta)}, orders[2], neighbours).items():
        at = m + shift
        value = _normalised(n, np.where(np.abs(at) > n, 0, at), theta)
        total = total + np.where(np.abs(at) > n, 0.0, factor * value)
    return total


def _normalised(n: Any, m: Any, theta: Any) -> Any:
    special = host_special()
    n, m = n.astype(np.int64), m.astype(np.int64)
    if hasattr(special, "sph_harm_y"):  # SciPy 1.15 renamed it, with other places of the arguments
        return special.sph_harm_y(n, m, theta, 0.0).real
    return special.sph_harm(m, n, 0.0, theta).real


def _lpmv(orders: tuple[int, int, int], m: Any, v: Any, x: Any) -> Any:
    """The product of ``(1 - x**2)**(m / 2)`` and a Gegenbauer polynomial, whose derivatives have no quotient."""
    special, order = host_special(), orders[2]
    if order == 0:
        return special.lpmv(m, v, x)
    size = np.abs(m)
    scale = (-2.0) ** size * special.gamma(size + 0.5) / np.sqrt(pi)
    ratio = (-1.0) ** size * special.poch(v + size + 1, -2 * size)
    scale = np.where(m < 0, scale * ratio, scale)

    def slopes(key: tuple[int, int, int], factor: Any) -> Any:
        """The key tells how often the power fell, the power of x, and the derivative of the polynomial."""
        fallen, power, slope = key
        yield (fallen + 1, power + 1, slope), factor * -(size - 2 * fallen)
        if power:
            yield (fallen, power - 1, slope), factor * power
        yield (fallen, power, slope + 1), factor * 1.0

    terms = combined({(0, 0, 0): scale}, order, slopes)
    total: Any = 0.0
    base = (1.0 - x) * (1.0 + x)
    for (fallen, power, slope), factor in terms.items():
        exponent = 0.5 * size - fallen
        root = np.where(factor == 0, 0.0, factor * base ** np.where(factor == 0, 0.0, exponent))
        total = total + root * x**power * _gegenbauer(special, v - size, size + 0.5, slope, x)
    return total


def _gegenbauer(special: Any, n: Any, alpha: Any, order: int, x: Any) -> Any:
    m = (n - order).astype(np.int64)
    factor = 2.0**order * special.poch(alpha, order)
    return np.where(m < 0, 0.0, factor * special.eval_gegenbauer(np.maximum(m, 0), alpha + order, x))


spherical_ = partials(
    "sph_legendre_p", "n m theta", "Normalized associated Legendre function of a cosine.", _spherical, "n m"
)
lpmv_ = partials(
    "lpmv",
    "m v x",
    "Associated Legendre function of integer degree and order.",
    _lpmv,
    "m v",
    library=in_library("lpmv"),
)
