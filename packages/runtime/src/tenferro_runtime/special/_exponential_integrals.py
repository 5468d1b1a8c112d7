"""Exponential, sine and cosine integrals, and the dilogarithm."""

from __future__ import annotations

from typing import Any, NamedTuple

from tenferro_runtime.extension import Registry, Slopes, Spec, primitive
from tenferro_runtime.special._operands import is_complex
from tenferro_runtime.special._removable import log1p_quotient, sin_quotient, sinh_quotient
from tenferro_runtime.special._scipy import family, register_jax, register_scipy
from tenferro_tensor import Array, catalog

__all__ = ["ShichiResult", "SiciResult", "exp1", "expi", "expn", "shichi", "sici", "spence"]


@primitive(elementwise=True, domain="inexact", family=family("expi"), extension="special")
def expi_(x: Spec) -> Spec:
    """Exponential integral Ei."""
    return x


@primitive(elementwise=True, domain="inexact", family=family("exp1"), extension="special")
def exp1_(x: Spec) -> Spec:
    """Exponential integral E1."""
    return x


@primitive(elementwise=True, domain="floating", family=family("expn"), extension="special")
def expn_(n: Spec, x: Spec) -> Spec:
    """Exponential integral of integer order at least 1."""
    return n


@primitive(elementwise=True, domain="inexact", family=family("sine_integral"), extension="special")
def sine_integral_(x: Spec) -> Spec:
    """Sine integral Si."""
    return x


@primitive(elementwise=True, domain="inexact", family=family("cosine_integral"), extension="special")
def cosine_integral_(x: Spec) -> Spec:
    """Cosine integral Ci."""
    return x


@primitive(elementwise=True, domain="inexact", family=family("hyperbolic_sine_integral"), extension="special")
def hyperbolic_sine_integral_(x: Spec) -> Spec:
    """Hyperbolic sine integral Shi."""
    return x


@primitive(elementwise=True, domain="inexact", family=family("hyperbolic_cosine_integral"), extension="special")
def hyperbolic_cosine_integral_(x: Spec) -> Spec:
    """Hyperbolic cosine integral Chi."""
    return x


@primitive(elementwise=True, domain="inexact", family=family("spence"), extension="special")
def spence_(x: Spec) -> Spec:
    """Spence's function."""
    return x


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


def _expn_slope(n: Any, x: Any) -> Any:
    return -expn(n - 1.0, x)


def register(registry: Registry) -> None:
    """Register the kernels and rules of this module."""
    register_scipy(registry, expi_, Slopes(singular=True, x=lambda x: catalog.exp(x) / x))
    register_scipy(registry, exp1_, Slopes(singular=True, x=lambda x: -catalog.exp(-x) / x))
    register_scipy(registry, expn_, Slopes(singular=True, n=0, x=_expn_slope))
    register_scipy(registry, sine_integral_, Slopes(singular=True, x=sin_quotient), "sici", pick=0)
    cosine = Slopes(singular=True, x=lambda x: catalog.cos(x) / x)
    register_scipy(registry, cosine_integral_, cosine, "sici", pick=1)
    register_scipy(registry, hyperbolic_sine_integral_, Slopes(singular=True, x=sinh_quotient), "shichi", pick=0)
    hyperbolic = Slopes(singular=True, x=lambda x: catalog.cosh(x) / x)
    register_scipy(registry, hyperbolic_cosine_integral_, hyperbolic, "shichi", pick=1)
    register_scipy(registry, spence_, Slopes(singular=True, x=_spence_slope))
    for known in (expi_, exp1_, expn_, spence_):
        register_jax(registry, known)
    register_jax(registry, sine_integral_, "sici", pick=0)
    register_jax(registry, cosine_integral_, "sici", pick=1)


def _spence_slope(x: Any) -> Any:
    return catalog.log(x) / (1.0 - x) if is_complex(x) else -log1p_quotient(x - 1.0)
