"""The error function and related functions of real and complex numbers."""

from __future__ import annotations

import math
from typing import Any, Final, NamedTuple

import numpy as np

from tenferro_runtime.special._declared import from_host, from_scipy
from tenferro_runtime.special._operands import is_complex, real_floating
from tenferro_runtime.special._quadrature import DECAY, in_blocks, legendre
from tenferro_runtime.special._scipy import host_special
from tenferro_tensor import Array, catalog

__all__ = ["FresnelResult", "dawsn", "erf", "erfc", "erfcinv", "erfcx", "erfi", "erfinv", "fresnel", "wofz"]

_ROOT: Final = math.sqrt(math.pi)


def erf(x: Any, /) -> Array:
    """Error function, ``2 / sqrt(pi)`` times the integral of ``exp(-t**2)`` from 0 to `x`.

    Definition: DLMF 7.2.

    Args:
        x: real or complex array.

    Returns:
        Values of the shape of `x`, in its floating-point dtype (float64 for integers).

    >>> tr.special.erf(tr.asarray([0.0, 1.0]))
    Tensor([0.        , 0.84270079])
    """
    return complex_erf_(x) if is_complex(x) else catalog.erf(x)  # type: ignore[no-any-return]


def erfc(x: Any, /) -> Array:
    """Complementary error function ``1 - erf(x)``, accurate in the tail.

    Definition: DLMF 7.2.

    Args:
        x: real or complex array.

    Returns:
        Values of the shape of `x`, in its floating-point dtype (float64 for integers).

    >>> tr.special.erfc(tr.asarray([0.0, 1.0]))
    Tensor([1.        , 0.15729921])
    """
    return complex_erfc_(x) if is_complex(x) else catalog.erfc(x)  # type: ignore[no-any-return]


def erfinv(y: Any, /) -> Array:
    """Inverse of the error function.

    Definition: DLMF 7.17.

    Args:
        y: real array from -1 to 1.

    Returns:
        Values of the shape of `y`, in its floating-point dtype (float64 for integers).

    >>> tr.special.erfinv(tr.asarray([0.0, 0.5]))
    Tensor([0.        , 0.47693628])
    """
    return catalog.erfinv(y)  # type: ignore[no-any-return]


def erfcinv(y: Any, /) -> Array:
    """Inverse of the complementary error function.

    Definition: DLMF 7.17.

    Args:
        y: real array from 0 to 2.

    Returns:
        Values of the shape of `y`, in its floating-point dtype (float64 for integers).

    >>> tr.special.erfcinv(tr.asarray([0.5, 1e-10]))
    Tensor([0.47693628, 4.57282497])
    """
    return erfcinv_(y)  # type: ignore[no-any-return]


def erfcx(x: Any, /) -> Array:
    """Scaled complementary error function, ``exp(x**2) * erfc(x)``.

    Derivatives keep their digits in the tail, where they are small differences of large numbers.

    Definition: DLMF 7.2.

    Args:
        x: real or complex array.

    Returns:
        Values of the shape of `x`, in its floating-point dtype (float64 for integers).

    >>> tr.special.erfcx(tr.asarray([0.0, 1e10]))
    Tensor([1.00000000e+00, 5.64189584e-11])
    """
    return erfcx_(x)  # type: ignore[no-any-return]


def erfi(x: Any, /) -> Array:
    """Imaginary error function, ``-1j * erf(1j * x)``.

    Args:
        x: real or complex array.

    Returns:
        Values of the shape of `x`, in its floating-point dtype (float64 for integers).

    >>> tr.special.erfi(tr.asarray([0.0, 1.0]))
    Tensor([0.        , 1.65042576])
    """
    return erfi_(x)  # type: ignore[no-any-return]


def dawsn(x: Any, /) -> Array:
    """Dawson's integral, ``exp(-x**2)`` times the integral of ``exp(t**2)`` from 0 to `x`.

    Definition: DLMF 7.2.

    Args:
        x: real or complex array.

    Returns:
        Values of the shape of `x`, in its floating-point dtype (float64 for integers).

    >>> tr.special.dawsn(tr.asarray([0.0, 1.0]))
    Tensor([0.        , 0.53807951])
    """
    return dawsn_(x)  # type: ignore[no-any-return]


def wofz(z: Any, /) -> Array:
    """Faddeeva function ``exp(-z**2) * erfc(-1j * z)``.

    Definition: DLMF 7.2.

    Args:
        z: real or complex array.

    Returns:
        Complex values of the shape of `z`.

    >>> tr.special.wofz(tr.asarray([0.0, 1.0]))
    Tensor([1.        +0.j        , 0.36787944+0.60715771j])
    """
    if is_complex(z):
        return wofz_(z)  # type: ignore[no-any-return]
    return wofz_(catalog.complex(real_floating("wofz", z), 0.0))  # type: ignore[no-any-return]


class FresnelResult(NamedTuple):
    """Fresnel's integrals.

    Attributes:
        sine: the sine integral S.
        cosine: the cosine integral C.
    """

    sine: Array
    cosine: Array


def fresnel(x: Any, /) -> FresnelResult:
    """Fresnel integrals: ``sin(pi t**2 / 2)`` and ``cos(pi t**2 / 2)`` integrated from 0 to `x`.

    Definition: DLMF 7.2.

    Args:
        x: real or complex array.

    Returns:
        `FresnelResult` of two arrays of the shape of `x`: the sine and the cosine integral.

    >>> tr.special.fresnel(tr.asarray([0.0, 1.0])).sine
    Tensor([0.        , 0.43825915])
    """
    return FresnelResult(fresnel_s_(x), fresnel_c_(x))


NODES: Final = 48


def _erfcx(x: Any, order: int) -> Any:
    if np.iscomplexobj(x):
        return _complex_erfcx(x, order)
    return in_blocks(lambda x: _repeated_integral(x, order), (x,)) * (2 / _ROOT * (-2.0) ** order)


def _repeated_integral(x: Any, order: int) -> Any:
    """The integral of ``t**order exp(-t**2 - 2 t x)`` from 0 on (DLMF 7.18.2), real or complex."""
    right, infinite = x.real >= 0, x == np.inf
    y = np.where(right & ~infinite, x, 0.0)
    # The exponent's real part exceeds DECAY, by what the power brings, at the end.
    most = DECAY + 2.0 * order
    end = most / (y.real + np.sqrt(y.real**2 + most))
    s, w = legendre(NODES)
    t = end[:, None] * s
    found = (t**order * np.exp(-t * (t + 2 * y[:, None]))) @ w * end
    if not right.all():
        z = np.where(right, 0.0, x)
        before, this = 0.5 * _ROOT * host_special().erfcx(z), 0.0
        this = 0.5 - z * before
        for n in range(1, order):
            before, this = this, 0.5 * n * before - z * this
        found = np.where(right, found, this)
    return np.where(infinite, 0.0, found)


def _complex_erfcx(x: Any, order: int) -> Any:
    """By the recurrence of the derivatives."""
    before, this = 0.0, host_special().erfcx(x)
    for n in range(order):
        before, this = this, 2 * x * this + (2 * n * before if n else -2 / _ROOT)
    return this


def _dawsn(x: Any, order: int) -> Any:
    """By the recurrence of the derivatives, and far away term by term of the asymptotic series (DLMF 7.12)."""
    before, this = 0.0, host_special().dawsn(x)
    for n in range(order):
        before, this = this, -2 * x * this - (2 * n * before if n else -1.0)
    far = np.abs(x) > 7
    y = np.where(far, x, 7.0)
    term = np.ones_like(y) * 0.5 * math.factorial(order) * (-1) ** order / y ** (order + 1.0)
    series = term
    for n in range(20):
        # From (2 n - 1)!! / 2**(n + 1) / x**(2 n + 1) to the next, order times differentiated.
        p = 2 * n + 1
        term = term * (p / 2) * (p + order) * (p + order + 1) / (p * (p + 1)) / (y * y)
        series = series + term
    return np.where(far, series, this)


def _gaussian(sign: float, factor: float) -> Any:
    return lambda x: (sign * factor) * catalog.exp(-(x * x))


def _fresnel_phase(x: Any) -> Any:
    """``pi x**2 / 2``, modulo ``2 pi`` for real `x`."""
    halves = 0.5 * (x * x)
    if not is_complex(x):
        halves = halves - 2.0 * catalog.round(0.5 * halves)
    return math.pi * halves


complex_erf_ = from_scipy(
    "complex_erf", "x", "Error function of complex numbers.", "erf", domain="inexact", x=_gaussian(1, 2 / _ROOT)
)
complex_erfc_ = from_scipy(
    "complex_erfc",
    "x",
    "Complementary error function of complex numbers.",
    "erfc",
    domain="inexact",
    x=_gaussian(-1, 2 / _ROOT),
)
wofz_ = from_scipy(
    "wofz", "z", "Faddeeva function.", domain="inexact", jax="wofz", z=lambda z, out: -2.0 * z * out + 2j / _ROOT
)
erfi_ = from_scipy(
    "erfi",
    "x",
    "Imaginary error function.",
    domain="inexact",
    expansion=lambda x: (2 / _ROOT) * catalog.exp(x * x) * dawsn(x),
    x=lambda x: (2 / _ROOT) * catalog.exp(x * x),
)
erfcinv_ = from_scipy(
    "erfcinv",
    "x",
    "Inverse of the complementary error function.",
    x=lambda out: (-0.5 * _ROOT) * catalog.exp(out * out),
)
erfcx_ = from_host(
    "erfcx",
    "x",
    "A derivative of the scaled complementary error function.",
    _erfcx,
    {"x": "order"},
    domain="inexact",
    refusal="erfcx has derivatives of order at least 0",
    value="erfcx",
    jax="erfcx",
    most=1,
)
dawsn_ = from_host(
    "dawsn",
    "x",
    "A derivative of Dawson's integral.",
    _dawsn,
    {"x": "order"},
    domain="inexact",
    refusal="dawsn has derivatives of order at least 0",
    value="dawsn",
    jax="dawsn",
    most=1,
)
fresnel_s_ = from_scipy(
    "fresnel_s",
    "x",
    "Fresnel's sine integral.",
    "fresnel",
    pick=0,
    domain="inexact",
    jax="fresnel",
    x=lambda x: catalog.sin(_fresnel_phase(x)),
)
fresnel_c_ = from_scipy(
    "fresnel_c",
    "x",
    "Fresnel's cosine integral.",
    "fresnel",
    pick=1,
    domain="inexact",
    jax="fresnel",
    x=lambda x: catalog.cos(_fresnel_phase(x)),
)
