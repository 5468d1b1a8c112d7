"""Transforms built from Fourier transforms: chirp z-transforms, zoom transforms and analytic signals."""

from __future__ import annotations

import cmath
import math
from typing import Any

import numpy as np

from tenferro_fft._convolution import fftconvolve
from tenferro_fft._transforms import as_complex, fft, floating, geometry, ifft
from tenferro_tensor import Array, catalog, tensor
from tenferro_tensor_core import ArgumentError, Dim, DTypeError, TenferroError, UnsupportedError, real_of
from tenferro_tensor_core.tracebacks import boundary


@boundary
def czt(x: Any, /, *, m: int | None = None, w: complex | None = None, a: complex = 1.0 + 0.0j, axis: int = -1) -> Array:
    """Chirp z-transform ``X[k] = sum_j x[j] z[k]^(-j)`` at the points ``z[k] = a w^(-k)`` of a spiral.

    Computed as one convolution (Bluestein, 1970; Rabiner, Schafer and Rader, 1969).

    Args:
        x: real or complex array.
        m: number of points; by default the extent.
        w: ratio of consecutive points; by default ``exp(-2 pi i / m)``, for points around the unit circle.
        a: the first point.
        axis: axis to transform.

    Returns:
        Complex array of the precision of `x`, with extent `m` along `axis`.

    Raises:
        ArgumentError: `m` is not positive, or `w` or `a` is not a finite nonzero number.
        AxisError: the axis does not exist.
        UnsupportedError: the extent is symbolic.

    See also:
        zoom_fft: points on an arc of the unit circle.

    >>> czt([1.0, 2.0], m=2).numpy().round(12) + 0
    array([ 3.+0.j, -1.+0.j])
    """
    x = as_complex(x)
    (axis,), (count,) = _geometry("czt", x, m, axis)
    start = _number("a", a)
    if w is None:
        k = np.arange(max(count, x.spec.shape[axis]), dtype=object)
        turns = (k * k % (2 * count)).astype(np.float64) / (-2.0 * count)
        return _chirped(x, axis, count, start, 0.0, turns)
    ratio = _number("w", w)
    k = np.arange(max(count, x.spec.shape[axis]))
    return _chirped(x, axis, count, start, math.log(abs(ratio)), k * (k * cmath.phase(ratio)) / (4.0 * math.pi))


@boundary
def zoom_fft(
    x: Any, fn: float | tuple[float, float], /, *, m: int | None = None, fs: float = 2.0, endpoint: bool = False,
    axis: int = -1,
) -> Array:  # fmt: skip
    """Fourier transform at `m` evenly spaced frequencies from ``fn[0]`` to ``fn[1]``, by a chirp z-transform.

    Args:
        x: real or complex array.
        fn: the band, or its upper end if it starts at 0, in the unit of `fs`.
        m: number of frequencies; by default the extent.
        fs: sampling frequency; by default 2, so that 1 is the Nyquist frequency.
        endpoint: whether ``fn[1]`` is the last frequency.
        axis: axis to transform.

    Returns:
        Complex array of the precision of `x`, with extent `m` along `axis`.

    Raises:
        ArgumentError: `m` is not positive, or `fn` or `fs` is not a finite number.
        AxisError: the axis does not exist.
        UnsupportedError: the extent is symbolic.

    See also:
        czt: other points of the z-plane.

    >>> zoom_fft([1.0, 1.0], 1.0, m=2).numpy().round(12) + 0
    array([2.+0.j, 1.-1.j])
    """
    x = as_complex(x)
    (axis,), (count,) = _geometry("zoom_fft", x, m, axis)
    low, high = (0.0, fn) if np.ndim(fn) == 0 else fn  # type: ignore[misc]
    rate, low, high = (_number(name, v).real for name, v in (("fs", fs), ("fn", low), ("fn", high)))
    if endpoint and count < 2:
        raise ArgumentError(f"zoom_fft with its end needs at least 2 frequencies, got {count}", m=count)
    k = np.arange(max(count, x.spec.shape[axis]))
    turns = k * (k * -((high - low) / (rate * (count - 1 if endpoint else count)))) / 2.0
    return _chirped(x, axis, count, cmath.exp(2j * math.pi * low / rate), 0.0, turns)


@boundary
def hilbert(x: Any, /, *, n: int | None = None, axis: int = -1) -> Array:
    """Analytic signal of a real signal: its imaginary part is the Hilbert transform.

    By the discrete Fourier transform (Marple, IEEE Trans. Signal Processing 47, 2600, 1999).

    Args:
        x: real array.
        n: number of points; `x` is truncated or zero-padded at the end. By default the extent of `axis`.
        axis: axis to transform.

    Returns:
        Complex array of the precision of `x`, with extent `n` along `axis`.

    Raises:
        ArgumentError: `n` is not positive.
        AxisError: the axis does not exist.
        DTypeError: `x` is complex.

    >>> hilbert([1.0, 0.0, -1.0, 0.0])
    Tensor([ 1.+0.j,  0.+1.j, -1.+0.j,  0.-1.j])
    """
    x = floating(x)
    if x.spec.cplx:
        raise DTypeError("hilbert takes a real signal, got complex numbers", dtype=str(x.dtype))
    spectrum = fft(x, n=n, axis=axis)
    axis = axis % x.ndim
    points = spectrum.spec.shape[axis]
    dtype = real_of(spectrum.dtype)
    place = spectrum.spec.place
    k = catalog.iota(shape=(points,), dtype=np.dtype(np.int64), axis=0, place=place) * 2
    last = catalog.dim_value(size=points, place=place)
    alone = catalog.eq(k, 0) | catalog.eq(k, last)
    weights = catalog.convert(catalog.select(alone, 1.0, catalog.select(k < last, 2.0, 0.0)), dtype=dtype)
    return ifft(spectrum * catalog.broadcast_in_dim(weights, shape=spectrum.spec.shape, dims=(axis,)), axis=axis)


def _number(name: str, value: Any) -> complex:
    try:
        found = complex(value)
    except (TypeError, ValueError) as cause:
        if isinstance(cause, TenferroError):
            raise
        raise ArgumentError(f"a chirp transform takes a number as {name}, got {value!r:.60}") from None
    if not cmath.isfinite(found) or (found == 0 and name != "fn"):
        raise ArgumentError(f"a chirp transform takes a finite number other than 0 as {name}, got {found}")
    return found


def _geometry(what: str, x: Any, m: Any, axis: int) -> tuple[tuple[int], tuple[int]]:
    """The axis and the number of points of the result."""
    axes, points = geometry(what, x, None if m is None else (m,), (axis,))
    if any(isinstance(n, Dim) for n in (*points, x.spec.shape[axes[0]])):
        raise UnsupportedError(
            f"{what} computes factors for a known number of points, but the shape is {x.spec.shape}; trace the "
            "function for a fixed extent"
        )
    if x.spec.shape[axes[0]] < 1:
        raise ArgumentError(f"{what} needs at least one point along axis {axes[0]}, got shape {x.spec.shape}")
    return (axes[0],), (points[0],)


def _chirped(x: Any, axis: int, m: int, start: complex, growth: float, turns: Any) -> Any:
    """The sums ``sum_j x[j] start^(-j) w^(j k)``, where ``j k`` is ``(j^2 + k^2 - (k - j)^2) / 2``.

    Args:
        x: complex array.
        axis: the axis.
        m: number of results.
        start: the first point.
        growth: logarithm of the modulus of w.
        turns: phases of ``w^(k^2 / 2)``, in turns (multiples of 2 pi).
    """
    n, k = x.spec.shape[axis], np.arange(len(turns))
    half = np.exp(growth * k * (k / 2.0) + 2j * math.pi * np.remainder(turns, 1.0))
    powers = np.exp(-np.arange(n) * (math.log(abs(start)) + 1j * cmath.phase(start)))
    kernel = 1.0 / np.concatenate([half[n - 1 : 0 : -1], half[:m]])
    found = fftconvolve(x * _factors(powers * half[:n], x, axis), _factors(kernel, x, axis), axes=(axis,))
    low = tuple(n - 1 if a == axis else 0 for a in range(x.ndim))
    high = tuple(n + m - 1 if a == axis else d for a, d in enumerate(found.spec.shape))
    part = catalog.slice_(found, start=low, limit=high, stride=(1,) * x.ndim)
    return part * _factors(half[:m], x, axis)


def _factors(numbers: Any, x: Any, axis: int) -> Any:
    """Numbers along one axis, with the dtype and device of `x`."""
    v = tensor(numbers.astype(x.dtype), device=x.spec.place.device)
    return catalog.reshape(v, shape=tuple(len(numbers) if a == axis else 1 for a in range(x.ndim)))
