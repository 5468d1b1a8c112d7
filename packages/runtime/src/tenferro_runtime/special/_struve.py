"""Struve functions, differentiable by order and argument, and the Kelvin functions."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from tenferro_runtime.special._bessel import neighbours
from tenferro_runtime.special._declared import partials
from tenferro_runtime.special._sampling import sampled
from tenferro_runtime.special._scipy import host_special
from tenferro_tensor import Array

__all__ = ["bei", "beip", "ber", "berp", "kei", "keip", "ker", "kerp", "modstruve", "struve"]


def struve(v: Any, x: Any, /) -> Array:
    """Struve function of order `v`.

    Definition: DLMF 11.2.

    Args:
        v: order, real.
        x: real array.

    Returns:
        Values of the broadcast shape, in the promoted floating-point dtype (float64 for integers).

    >>> tr.special.struve(0.5, tr.asarray([0.0, 2.0]))
    Tensor([0.        , 0.79897529])
    """
    return struve_(v, x)  # type: ignore[no-any-return]


def modstruve(v: Any, x: Any, /) -> Array:
    """Modified Struve function of order `v`.

    Definition: DLMF 11.2.

    Args:
        v: order, real.
        x: real array.

    Returns:
        Values of the broadcast shape, in the promoted floating-point dtype (float64 for integers).

    >>> tr.special.modstruve(0.5, tr.asarray([0.0, 2.0]))
    Tensor([0.        , 1.55840204])
    """
    return modstruve_(v, x)  # type: ignore[no-any-return]


def ber(x: Any, /) -> Array:
    """Kelvin function, the real part of ``jv(0, x exp(3j pi / 4))``.

    Definition: DLMF 10.61.

    Args:
        x: real array.

    Returns:
        Values of the shape of `x`, in its floating-point dtype (float64 for integers).

    >>> tr.special.ber(tr.asarray([0.0, 2.0]))
    Tensor([1.        , 0.75173418])
    """
    return ber_(x)  # type: ignore[no-any-return]


def bei(x: Any, /) -> Array:
    """Kelvin function, the imaginary part of ``jv(0, x exp(3j pi / 4))``.

    Definition: DLMF 10.61.

    Args:
        x: real array.

    Returns:
        Values of the shape of `x`, in its floating-point dtype (float64 for integers).

    >>> tr.special.bei(tr.asarray([0.0, 2.0]))
    Tensor([0.        , 0.97229163])
    """
    return bei_(x)  # type: ignore[no-any-return]


def ker(x: Any, /) -> Array:
    """Kelvin function, the real part of ``kv(0, x exp(1j pi / 4))``; NaN for negative `x`.

    Definition: DLMF 10.61.

    Args:
        x: real array.

    Returns:
        Values of the shape of `x`, in its floating-point dtype (float64 for integers).

    >>> tr.special.ker(tr.asarray(2.0))
    Tensor(-0.04166451)
    """
    return ker_(x)  # type: ignore[no-any-return]


def kei(x: Any, /) -> Array:
    """Kelvin function, the imaginary part of ``kv(0, x exp(1j pi / 4))``; NaN for negative `x`.

    Definition: DLMF 10.61.

    Args:
        x: real array.

    Returns:
        Values of the shape of `x`, in its floating-point dtype (float64 for integers).

    >>> tr.special.kei(tr.asarray(2.0))
    Tensor(-0.20240007)
    """
    return kei_(x)  # type: ignore[no-any-return]


def berp(x: Any, /) -> Array:
    """Derivative of `ber`.

    Args:
        x: real array.

    Returns:
        Values of the shape of `x`, in its floating-point dtype (float64 for integers).

    >>> tr.special.berp(tr.asarray(2.0))
    Tensor(-0.49306712)
    """
    return ber_(x, orders=(1,))  # type: ignore[no-any-return]


def beip(x: Any, /) -> Array:
    """Derivative of `bei`.

    Args:
        x: real array.

    Returns:
        Values of the shape of `x`, in its floating-point dtype (float64 for integers).

    >>> tr.special.beip(tr.asarray(2.0))
    Tensor(0.91701361)
    """
    return bei_(x, orders=(1,))  # type: ignore[no-any-return]


def kerp(x: Any, /) -> Array:
    """Derivative of `ker`.

    Args:
        x: real array.

    Returns:
        Values of the shape of `x`, in its floating-point dtype (float64 for integers).

    >>> tr.special.kerp(tr.asarray(2.0))
    Tensor(-0.10660097)
    """
    return ker_(x, orders=(1,))  # type: ignore[no-any-return]


def keip(x: Any, /) -> Array:
    """Derivative of `kei`.

    Args:
        x: real array.

    Returns:
        Values of the shape of `x`, in its floating-point dtype (float64 for integers).

    >>> tr.special.keip(tr.asarray(2.0))
    Tensor(0.21980791)
    """
    return kei_(x, orders=(1,))  # type: ignore[no-any-return]


def _slope(base: Any, above: int, v: Any, x: Any, order: int) -> Any:
    """Half the functions of the orders below and above and a power, ``(x / 2)**v / (sqrt(pi) gamma(v + 3/2))``."""
    if order == 0:
        return base(v, x)
    k = order - 1
    below, beyond = _slope(base, above, v - 1, x, k), _slope(base, above, v + 1, x, k)
    power = _power(v, 0.5 * x, k, v + 1.5) * 0.5**k / np.sqrt(np.pi)
    return 0.5 * (below + above * beyond + power)


def _power(exponent: Any, x: Any, order: int, a: Any) -> Any:
    """The derivative of ``x**exponent / gamma(a)``, which is 0 where the derivative of the power is."""
    special = host_special()
    falling = special.rgamma(a)
    for i in range(order):
        falling = falling * (exponent - i)
    value = falling * x ** (exponent - order)
    huge = np.isnan(value) | (np.abs(exponent) > 100)
    if huge.any():  # the factors over- and underflow, the product need not
        sign = np.sign(special.gammasgn(a))
        rest = 1.0
        for i in range(order):
            rest = rest * (exponent - i)
        value = np.where(huge, sign * rest * np.exp((exponent - order) * np.log(x) - special.gammaln(a)), value)
    zero = np.ones_like(exponent) if order == 0 else (exponent >= 0) & (exponent < order) & (exponent % 1 == 0)
    pole = (a <= 0) & (a % 1 == 0)
    return np.where((zero.astype(bool) & (order > 0)) | pole, 0.0, value)


def _series(above: int, v: Any, x: Any, order: int) -> Any:
    """The power series, differentiated term by term, which has no cancelling infinities at 0."""
    total: Any = 0.0
    for m in range(12):
        scale = (above**m) * host_special().rgamma(m + 1.5) * 0.5**order
        total = total + scale * _power(2 * m + v + 1, 0.5 * x, order, m + v + 1.5)
    return total


def _compute_struve(name: str, above: int, orders: tuple[int, int], v: Any, x: Any) -> Any:
    special = host_special()
    by_order, by_argument = orders
    base = getattr(special, name)

    def f(at: Any) -> Any:
        value = _slope(base, above, at, np.where(x < 1, 1.0, x), by_argument)
        return np.where(x < 1, _series(above, at, np.where(x < 1, x, 1.0), by_argument), value)

    steep = np.abs(np.log(0.5 * np.maximum(x, 1e-300))) + np.log1p(np.abs(v))
    result = sampled(f if by_argument else lambda at: base(at, x), v, 2.0 / (1.0 + steep), by_order)
    return np.where((x == 0) & (v > by_argument - 1), 0.0, result) if by_order else result


def _compute_kelvin(kind: str, imaginary: bool, orders: tuple[int], x: Any) -> Any:
    function = getattr(host_special(), kind + "v")
    turn = np.exp(0.75j * np.pi) if kind == "j" else np.exp(0.25j * np.pi)
    value = turn ** orders[0] * neighbours(function, kind, 0.0, x * turn, orders[0])
    if kind == "k":
        value = np.where(x < 0, np.nan, value)
    return value.imag if imaginary else value.real


struve_ = partials("struve", "v x", "Struve function.", partial(_compute_struve, "struve", -1))
modstruve_ = partials("modstruve", "v x", "Modified Struve function.", partial(_compute_struve, "modstruve", 1))
ber_ = partials("ber", "x", "Real part of ``jv(0, x exp(3j pi / 4))``.", partial(_compute_kelvin, "j", False), own=True)
bei_ = partials(
    "bei", "x", "Imaginary part of ``jv(0, x exp(3j pi / 4))``.", partial(_compute_kelvin, "j", True), own=True
)
ker_ = partials("ker", "x", "Real part of ``kv(0, x exp(1j pi / 4))``.", partial(_compute_kelvin, "k", False), own=True)
kei_ = partials(
    "kei", "x", "Imaginary part of ``kv(0, x exp(1j pi / 4))``.", partial(_compute_kelvin, "k", True), own=True
)
