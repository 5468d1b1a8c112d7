"""Exponential, sine and cosine integrals, and the dilogarithm."""

from __future__ import annotations

from typing import Any, NamedTuple

from tenferro_runtime.special._declared import from_scipy
from tenferro_runtime.special._operands import is_complex
from tenferro_runtime.special._removable import log1p_quotient, sin_quotient, sinh_quotient
from tenferro_tensor import Array, catalog

__all__ = ["ShichiResult", "SiciResult", "exp1", "expi", "expn", "shichi", "sici", "spence"]


def expi(x: Any, /) -> Array:
    """Exponential integral Ei: the principal value of the integral of ``exp(t) / t`` from minus infinity to `x`.

    Definition: DLMF 6.2.

    Args:
        x: real or complex array.

    Returns:
        Values of the shape of `x`, in its floating-point dtype (float64 for integers).

    >>> tr.special.expi(tr.asarray([1.0, -1.0]))
    Tensor([ 1.89511782, -0.21938393])
    """
    return expi_(x)  # type: ignore[no-any-return]


def exp1(x: Any, /) -> Array:
    """Exponential integral E1: the integral of ``exp(-t) / t`` from `x` to infinity.

    Definition: DLMF 6.2.

    Args:
        x: real or complex array.

    Returns:
        Values of the shape of `x`, in its floating-point dtype (float64 for integers).

    >>> tr.special.exp1(tr.asarray([1.0, 2.0]))
    Tensor([0.21938393, 0.04890051])
    """
    return exp1_(x)  # type: ignore[no-any-return]


def expn(n: Any, x: Any, /) -> Array:
    """Exponential integral of order `n`: the integral of ``exp(-x t) / t**n`` from 1 to infinity.

    Definition: DLMF 8.19.

    Args:
        n: order, integers of at least 0; not differentiable.
        x: real array, at least 0.

    Returns:
        Values of the broadcast shape, in the promoted floating-point dtype (float64 for integers).

    >>> tr.special.expn(tr.asarray([1, 2]), 1.0)
    Tensor([0.21938393, 0.14849551])
    """
    if not hasattr(n, "dtype"):
        return catalog.exp(-x) / x if n == 0 else expn_(n, x)  # type: ignore[no-any-return]
    n = catalog.stop_gradient(n)
    zero = catalog.eq(n, 0)
    y = catalog.select(zero, x, 1.0)
    return catalog.select(zero, catalog.exp(-y) / y, expn_(catalog.select(zero, 1, n), x))  # type: ignore[no-any-return]


class SiciResult(NamedTuple):
    """Sine and cosine integrals.

    Attributes:
        sine: the sine integral, Si.
        cosine: the cosine integral, Ci.
    """

    sine: Array
    cosine: Array


class ShichiResult(NamedTuple):
    """Hyperbolic sine and cosine integrals.

    Attributes:
        sine: the hyperbolic sine integral, Shi.
        cosine: the hyperbolic cosine integral, Chi.
    """

    sine: Array
    cosine: Array


def sici(x: Any, /) -> SiciResult:
    """Sine and cosine integrals: ``sin(t) / t`` integrated from 0 to `x`, and ``-cos(t) / t`` from `x` to infinity.

    Definition: DLMF 6.2.

    Args:
        x: real or complex array.

    Returns:
        `SiciResult` of two arrays of the shape of `x`: the sine and the cosine integral.

    >>> tr.special.sici(tr.asarray([1.0, 2.0])).sine
    Tensor([0.94608307, 1.60541298])
    """
    return SiciResult(sine_integral_(x), cosine_integral_(x))


def shichi(x: Any, /) -> ShichiResult:
    """Hyperbolic sine and cosine integrals.

    Definition: DLMF 6.2.

    Args:
        x: real or complex array.

    Returns:
        `ShichiResult` of two arrays of the shape of `x`: the hyperbolic sine and cosine integral.

    >>> tr.special.shichi(tr.asarray([1.0, 2.0])).cosine
    Tensor([0.83786694, 2.45266692])
    """
    return ShichiResult(hyperbolic_sine_integral_(x), hyperbolic_cosine_integral_(x))


def spence(x: Any, /) -> Array:
    """Spence's function, the dilogarithm of ``1 - x``: the integral of ``log(t) / (1 - t)`` from 1 to `x`.

    Definition: DLMF 25.12.

    Args:
        x: real or complex array.

    Returns:
        Values of the shape of `x`, in its floating-point dtype (float64 for integers).

    >>> tr.special.spence(tr.asarray([0.0, 1.0, 2.0]))
    Tensor([ 1.64493407,  0.        , -0.82246703])
    """
    return spence_(x)  # type: ignore[no-any-return]


expi_ = from_scipy(
    "expi", "x", "Exponential integral Ei.", domain="inexact", jax="expi", x=lambda x: catalog.exp(x) / x
)
exp1_ = from_scipy(
    "exp1", "x", "Exponential integral E1.", domain="inexact", jax="exp1", x=lambda x: -catalog.exp(-x) / x
)
expn_ = from_scipy(
    "expn",
    "n x",
    "Exponential integral of integer order at least 1.",
    jax="expn",
    n=0,
    x=lambda n, x: -expn(n - 1.0, x),
)
sine_integral_ = from_scipy(
    "sine_integral", "x", "Sine integral Si.", "sici", domain="inexact", pick=0, jax="sici", x=sin_quotient
)
cosine_integral_ = from_scipy(
    "cosine_integral",
    "x",
    "Cosine integral Ci.",
    "sici",
    domain="inexact",
    pick=1,
    jax="sici",
    x=lambda x: catalog.cos(x) / x,
)
hyperbolic_sine_integral_ = from_scipy(
    "hyperbolic_sine_integral",
    "x",
    "Hyperbolic sine integral Shi.",
    "shichi",
    domain="inexact",
    pick=0,
    x=sinh_quotient,
)
hyperbolic_cosine_integral_ = from_scipy(
    "hyperbolic_cosine_integral",
    "x",
    "Hyperbolic cosine integral Chi.",
    "shichi",
    domain="inexact",
    pick=1,
    x=lambda x: catalog.cosh(x) / x,
)
spence_ = from_scipy(
    "spence",
    "x",
    "Spence's function.",
    domain="inexact",
    jax="spence",
    x=lambda x: catalog.log(x) / (1.0 - x) if is_complex(x) else -log1p_quotient(x - 1.0),
)
