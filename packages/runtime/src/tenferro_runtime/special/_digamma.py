"""The digamma function, its derivatives, and their differences."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from tenferro_runtime.special._declared import from_host, from_scipy
from tenferro_runtime.special._increments import increment
from tenferro_runtime.special._operands import is_complex, real_floating
from tenferro_runtime.special._recurrences import BERNOULLI
from tenferro_runtime.special._scipy import host_special
from tenferro_runtime.special._zeta import zeta
from tenferro_tensor import Array, catalog

__all__ = ["digamma", "polygamma", "psi"]


def digamma(x: Any, /) -> Array:
    """Logarithmic derivative of the gamma function, of real or complex numbers.

    Definition: DLMF 5.2.

    Args:
        x: real or complex array.

    Returns:
        Values of the shape of `x`, in its floating-point dtype (float64 for integers).

    >>> tr.special.digamma(tr.asarray([1.0, 0.5]))
    Tensor([-0.57721566, -1.96351003])
    """
    return complex_digamma_(x) if is_complex(x) else catalog.digamma(x)  # type: ignore[no-any-return]


psi = digamma


def polygamma(n: Any, x: Any, /) -> Array:
    """Derivative of order `n` of `digamma`.

    Definition: DLMF 5.15.

    Args:
        n: order, at least 0, an integer or an array; not differentiable.
        x: real array; may be complex if `n` is an integer.

    Returns:
        Values of the broadcast shape, in the promoted floating-point dtype (float64 for integers).

    >>> tr.special.polygamma(1, tr.asarray([1.0, 0.5]))
    Tensor([1.64493407, 4.9348022 ])
    """
    if isinstance(n, (int, np.integer)):
        return complex_polygamma_(x, order=int(n)) if is_complex(x) else catalog.polygamma(x, order=int(n))  # type: ignore[no-any-return]
    n = catalog.stop_gradient(real_floating("polygamma", n))
    x = real_floating("polygamma", x)
    first = catalog.eq(n, 0)
    order = catalog.select(first, 1.0, n)
    odd = catalog.eq(catalog.remainder(order, 2.0), 1.0)
    factor = catalog.exp(catalog.lgamma(order + 1.0)) * catalog.select(odd, 1.0, -1.0)
    return catalog.select(first, catalog.digamma(x), factor * zeta(order + 1.0, x))  # type: ignore[no-any-return]


def psi_increment(a: Any, step: Any, order: int = 0) -> Any:
    """``polygamma(order, a + step) - polygamma(order, a)``, which does not cancel for small steps."""
    return polygamma_increment_(a, step, order=order)


FAR: Final = 15.0
"""Least real parts for which the asymptotic series is exact."""


def _complex_polygamma(z: Any, order: int) -> Any:
    """Reflection to the right half plane, recurrence to large real parts, and the asymptotic series (DLMF 5.15)."""
    if order == 0:
        return host_special().psi(z)
    left = z.real < 0.5
    w = np.where(left, 1 - z, z)
    total = np.zeros_like(w)
    for _ in range(max(0, math.ceil(FAR + order - 0.5))):
        near = w.real < FAR + order
        total = np.where(near, total + w ** -(order + 1.0), total)
        w = np.where(near, w + 1, w)
    factorial = float(math.factorial(order))
    series = w ** -float(order) / order + w ** -(order + 1.0) / 2
    rising = (order + 1) / 2.0  # (order + 2 j - 1)! / (order! (2 j)!)
    for j, number in enumerate(BERNOULLI[:9], 1):
        series = series + number * rising * w ** -(order + 2.0 * j)
        rising *= (order + 2 * j) * (order + 2 * j + 1) / ((2 * j + 1) * (2 * j + 2))
    sign = (-1) ** (order + 1)
    found = sign * factorial * (total + series)
    if left.any():
        reflected = (-1) ** order * found - np.pi * _cotangent(order, np.where(left, z, 0.25))
        found = np.where(left, reflected, found)
    return found


def _cotangent(order: int, z: Any) -> Any:
    """The derivative of ``cot(pi z)``: its own first one, ``-pi / sin(pi z)**2``, times a polynomial in it."""
    cot, square = 1 / np.tan(np.pi * z), 1 / np.sin(np.pi * z) ** 2
    polynomial = np.polynomial.Polynomial([-np.pi])
    for _ in range(order - 1):
        polynomial = polynomial * np.polynomial.Polynomial([0.0, -2 * np.pi]) + polynomial.deriv() * (
            np.polynomial.Polynomial([-np.pi, 0.0, -np.pi])
        )
    return square * polynomial(cot)


complex_polygamma_ = from_host(
    "complex_polygamma",
    "x",
    "Derivative of the digamma function, of complex numbers.",
    _complex_polygamma,
    {"x": "order"},
    domain="inexact",
    refusal="polygamma needs an order of at least 0",
)
complex_digamma_ = from_scipy(
    "complex_digamma",
    "x",
    "Logarithmic derivative of the gamma function, of complex numbers.",
    "psi",
    domain="inexact",
    x=lambda x: complex_polygamma_(x, order=1),
)
polygamma_increment_ = from_host(
    "polygamma_increment",
    "a step",
    "``polygamma(order, a + step) - polygamma(order, a)``.",
    lambda a, step, order: increment(host_special(), order, a, step),
    {"a": "order"},
    expansion=lambda a, step, order: catalog.polygamma(a + step, order=order) - catalog.polygamma(a, order=order),
    step=lambda a, step, order: catalog.polygamma(a + step, order=order + 1),
)
