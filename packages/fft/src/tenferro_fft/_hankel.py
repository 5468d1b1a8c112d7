"""Fast Hankel transforms of functions sampled at logarithmic spacing (FFTLog: Hamilton, MNRAS 312, 257 (2000))."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tenferro_fft._transforms import floating, irfft, rfft
from tenferro_tensor import Array, catalog, tensor
from tenferro_tensor_core import ArgumentError, AxisError, Dim, DTypeError, TenferroError, UnsupportedError, complex_of
from tenferro_tensor_core.tracebacks import boundary


@boundary
def fht(x: Any, /, dln: float, mu: float, offset: float = 0.0, bias: float = 0.0) -> Array:
    """Hankel transform ``A(k) = integral a(r) J_mu(k r) k dr`` along the last axis, of samples spaced evenly in log r.

    The FFTLog algorithm (Hamilton, MNRAS 312, 257, 2000).

    Args:
        x: real array of samples ``a[j]`` at ``r[j] = r_c exp((j - (n - 1) / 2) dln)`` along the last axis.
        dln: spacing of the samples in log r.
        mu: order of the Bessel function.
        offset: logarithm of ``k_c r_c``, the product of the centers; `fhtoffset` finds one without ringing.
        bias: exponent of a power law that is divided out first, to make the samples closer to periodic.

    Returns:
        Samples at ``k[j] = k_c exp((j - (n - 1) / 2) dln)``; a real array with the shape and dtype of `x`.

    Raises:
        ArgumentError: the transform is singular for this order and bias, or an argument is not a finite number.
        AxisError: `x` is a number.
        DTypeError: `x` is complex.
        UnsupportedError: the extent is symbolic; the coefficients are computed for a known number of samples.

    See also:
        ifht: the inverse.

    >>> fht([1.0, 2.0, 1.0], dln=0.5, mu=1.0)
    Tensor([1.75452301, 0.67520886, 1.57026813])
    """
    x, dln, mu, offset, bias = _arguments("fht", x, dln, mu, offset, bias)
    n = x.spec.shape[-1]
    if bias:
        x = x * _powers(-bias * _centred(n) * dln, x)
    out = _turned(rfft(x), _coefficients("fht", n, dln, mu, offset, bias), n)
    return out * _powers(-bias * (_centred(n) * dln + offset), out) if bias else out


@boundary
def ifht(x: Any, /, dln: float, mu: float, offset: float = 0.0, bias: float = 0.0) -> Array:
    """Inverse of `fht`.

    Args:
        x: real array of samples ``A[j]`` at ``k[j] = k_c exp((j - (n - 1) / 2) dln)`` along the last axis.
        dln: spacing of the samples in log k.
        mu: order of the Bessel function.
        offset: logarithm of ``k_c r_c``, the product of the centers; `fhtoffset` finds one without ringing.
        bias: exponent of a power law that is divided out first, to make the samples closer to periodic.

    Returns:
        Samples at ``r[j] = r_c exp((j - (n - 1) / 2) dln)``; a real array with the shape and dtype of `x`.

    Raises:
        ArgumentError: the transform is singular for this order and bias, or an argument is not a finite number.
        AxisError: `x` is a number.
        DTypeError: `x` is complex.
        UnsupportedError: the extent is symbolic; the coefficients are computed for a known number of samples.

    >>> ifht(fht([1.0, 2.0, 1.0], dln=0.5, mu=1.0), dln=0.5, mu=1.0)
    Tensor([1., 2., 1.])
    """
    x, dln, mu, offset, bias = _arguments("ifht", x, dln, mu, offset, bias)
    n = x.spec.shape[-1]
    if bias:
        x = x * _powers(bias * (_centred(n) * dln + offset), x)
    inverse = 1.0 / _coefficients("ifht", n, dln, mu, offset, bias).conj()
    out = _turned(rfft(x), inverse, n)
    return out / _powers(-bias * _centred(n) * dln, out) if bias else out


@boundary
def fhtoffset(dln: float, mu: float, initial: float = 0.0, bias: float = 0.0) -> float:
    """The offset nearest to `initial` for which the periodic kernel of `fht` is smooth, which avoids ringing.

    The low-ringing condition of Hamilton, MNRAS 312, 257 (2000).

    Args:
        dln: spacing of the samples in log r.
        mu: order of the Bessel function.
        initial: desired offset.
        bias: exponent of the power law, as in `fht`.

    Returns:
        The offset, a Python float.

    Raises:
        ArgumentError: an argument is not a finite number, or `dln` is 0.

    >>> round(fhtoffset(0.1, 1.0), 6)
    -0.003023
    """
    from scipy.special import loggamma

    dln, mu, initial, bias = _numbers("fhtoffset", dln, mu, initial, bias)
    y = 1j * math.pi / (2.0 * dln)
    above, below = (complex(loggamma((mu + 1.0 + sign * bias) / 2.0 + y)) for sign in (1, -1))
    turns = (math.log(2.0) - initial) / dln + (above.imag + below.imag) / math.pi
    return float(initial + (turns - round(turns)) * dln)


def _arguments(what: str, x: Any, *numbers: Any) -> tuple[Any, float, float, float, float]:
    x = floating(x)
    if x.spec.cplx:
        raise DTypeError(f"{what} takes real samples, got complex numbers", dtype=str(x.dtype))
    if x.ndim == 0:
        raise AxisError(f"{what} takes samples along the last axis, got a number")
    if isinstance(x.spec.shape[-1], Dim):
        raise UnsupportedError(
            f"{what} computes coefficients for a known number of samples, but the shape is {x.spec.shape}; trace the "
            "function for a fixed extent"
        )
    if x.spec.shape[-1] < 1:
        raise ArgumentError(f"{what} needs at least one sample, got shape {x.spec.shape}")
    dln, mu, offset, bias = _numbers(what, *numbers)
    return x, dln, mu, offset, bias


def _numbers(what: str, *numbers: Any) -> list[float]:
    try:
        found = [float(v) for v in numbers]
    except (TypeError, ValueError) as cause:
        if isinstance(cause, TenferroError):
            raise
        raise ArgumentError(f"{what} takes numbers as dln, mu, offset and bias, got {numbers!r:.80}") from None
    if not found[0] or not all(map(math.isfinite, found)):
        raise ArgumentError(f"{what} needs finite numbers and a nonzero dln, got {tuple(found)}")
    return found


def _centred(n: int) -> Any:
    return np.arange(n) - (n - 1) / 2.0


def _powers(exponents: Any, like: Any) -> Any:
    return catalog.broadcast_in_dim(
        _constant(np.exp(exponents).astype(like.dtype), like), shape=like.spec.shape, dims=(like.ndim - 1,)
    )


def _constant(array: Any, like: Any) -> Any:
    return tensor(array, device=like.spec.place.device)


def _turned(y: Any, by: Any, n: int) -> Any:
    by = _constant(by.astype(complex_of(y.dtype)), y)
    z = irfft(y * catalog.broadcast_in_dim(by, shape=y.spec.shape, dims=(y.ndim - 1,)), n=n)
    return catalog.reverse(z, axes=(z.ndim - 1,))


def _coefficients(what: str, n: int, dln: float, mu: float, offset: float, bias: float) -> Any:
    """``U_m = exp(-i y offset) 2^(bias + i y) gamma((mu + 1 + bias + i y) / 2) / gamma((mu + 1 - bias - i y) / 2)``."""
    from scipy.special import loggamma, poch

    above, below = (mu + 1.0 + bias) / 2.0, (mu + 1.0 - bias) / 2.0
    y = np.linspace(0.0, math.pi * (n // 2) / (n * dln), n // 2 + 1)
    with np.errstate(all="ignore"):
        up, down = loggamma(above + 1j * y), loggamma(below + 1j * y)
        real = up.real - down.real + math.log(2.0) * bias
        u = np.exp(real + 1j * (up.imag + down.imag + 2.0 * y * (math.log(2.0) - offset)))
        if n % 2 == 0:
            u[-1] = u[-1].real
        if not np.isfinite(u[0]):
            u[0] = 2.0**bias * poch(below, above - below)
    singular = np.isinf(u[0]) if what == "fht" else u[0] == 0
    if singular or np.isnan(u[0]):
        raise ArgumentError(
            f"{what} is singular for mu={mu} and bias={bias}: the coefficient of the constant part is {u[0].real}; "
            "change the bias",
            mu=mu, bias=bias,
        )  # fmt: skip
    return u
