"""The Fourier transforms of the Array API standard, in terms of three primitives."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from tenferro_fft._primitives import BACKWARD, FORWARD, c2c, c2r, half, r2c
from tenferro_tensor import SCALARS, Array, catalog, tensor
from tenferro_tensor.identity import apart
from tenferro_tensor_core import (
    ArgumentError,
    AxisError,
    Dim,
    DimLike,
    DTypeError,
    TenferroError,
    as_size,
    complex_of,
    inexact_of,
    real_of,
)
from tenferro_tensor_core.tracebacks import boundary

Norm = Literal["backward", "ortho", "forward"]


@boundary
def fft(x: Any, /, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Array:
    """Discrete Fourier transform ``X[k] = sum_j x[j] exp(-2 pi i j k / n)`` along one axis.

    Args:
        x: real or complex array. Real input is converted to complex.
        n: number of points; `x` is truncated or zero-padded at the end. By default the extent of `axis`.
        axis: axis to transform.
        norm: which transform has the factor ``1 / n``: ``"backward"``, ``"forward"``, or its square root on both,
            ``"ortho"``.

    Returns:
        Complex array of the precision of `x`, with extent `n` along `axis`.

    Raises:
        ArgumentError: `n` is not positive, or `norm` is unknown.
        AxisError: the axis does not exist.

    See also:
        rfft: half the work for real input.
        czt: any points of the z-plane.

    >>> fft([1.0, 0.0, 1j, 0.0])
    Tensor([1.+1.j, 1.-1.j, 1.+1.j, 1.-1.j])
    """
    return _complex("fft", x, None if n is None else (n,), (axis,), norm, FORWARD)


@boundary
def ifft(x: Any, /, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Array:
    """Inverse of `fft`: ``x[j] = sum_k X[k] exp(2 pi i j k / n) / n``.

    Args:
        x: real or complex array.
        n: number of points; `x` is truncated or zero-padded at the end. By default the extent of `axis`.
        axis: axis to transform.
        norm: which transform has the factor ``1 / n``: ``"backward"``, ``"forward"``, or its square root on both,
            ``"ortho"``.

    Returns:
        Complex array of the precision of `x`, with extent `n` along `axis`.

    Raises:
        ArgumentError: `n` is not positive, or `norm` is unknown.
        AxisError: the axis does not exist.

    >>> ifft([2.0, 0.0])
    Tensor([1.+0.j, 1.+0.j])
    """
    return _complex("ifft", x, None if n is None else (n,), (axis,), norm, BACKWARD)


@boundary
def fftn(
    x: Any, /, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: Norm = "backward"
) -> Array:
    """Discrete Fourier transform over several axes.

    Args:
        x: real or complex array.
        s: numbers of points along `axes`, as `n` in `fft`; by default the extents.
        axes: axes to transform; by default the last ``len(s)``, or all.
        norm: as in `fft`; the factor is that of the product of all numbers of points.

    Returns:
        Complex array of the precision of `x`, with extents `s` along `axes`.

    Raises:
        ArgumentError: a number of points is not positive, or `norm` is unknown.
        AxisError: an axis does not exist or appears twice.

    See also:
        rfftn: half the work for real input.

    >>> fftn([[1.0, 0.0], [0.0, 0.0]]) + 0
    Tensor([[1.+0.j, 1.+0.j],
            [1.+0.j, 1.+0.j]])
    """
    return _complex("fftn", x, s, axes, norm, FORWARD)


@boundary
def ifftn(
    x: Any, /, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: Norm = "backward"
) -> Array:
    """Inverse of `fftn`.

    Args:
        x: real or complex array.
        s: numbers of points along `axes`, as `n` in `fft`; by default the extents.
        axes: axes to transform; by default the last ``len(s)``, or all.
        norm: as in `fft`; the factor is that of the product of all numbers of points.

    Returns:
        Complex array of the precision of `x`, with extents `s` along `axes`.

    Raises:
        ArgumentError: a number of points is not positive, or `norm` is unknown.
        AxisError: an axis does not exist or appears twice.

    >>> ifftn(fftn([[1.0, 2.0]]))
    Tensor([[1.+0.j, 2.+0.j]])
    """
    return _complex("ifftn", x, s, axes, norm, BACKWARD)


@boundary
def rfft(x: Any, /, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Array:
    """First half, ``n // 2 + 1`` coefficients, of the Fourier transform of a real signal; symmetry determines the rest.

    Args:
        x: real array.
        n: number of points; `x` is truncated or zero-padded at the end. By default the extent of `axis`.
        axis: axis to transform.
        norm: which transform has the factor ``1 / n``: ``"backward"``, ``"forward"``, or its square root on both,
            ``"ortho"``.

    Returns:
        Complex array of the precision of `x`, with extent ``n // 2 + 1`` along `axis`.

    Raises:
        ArgumentError: `n` is not positive, or `norm` is unknown.
        AxisError: the axis does not exist.
        DTypeError: `x` is complex.

    See also:
        irfft: the inverse.
        hfft: the transform of a Hermitian-symmetric signal.

    >>> rfft([1.0, 0.0, -1.0, 0.0])
    Tensor([0.+0.j, 2.+0.j, 0.+0.j])
    """
    return rfftn(x, s=None if n is None else (n,), axes=(axis,), norm=norm)


@boundary
def irfft(x: Any, /, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Array:
    """Inverse of `rfft`: the real signal of a half spectrum.

    Args:
        x: half spectrum; the imaginary parts of the first and, for even `n`, of the last coefficient are ignored.
        n: number of points of the result; by default ``2 * (extent - 1)``.
        axis: axis to transform.
        norm: which transform has the factor ``1 / n``: ``"backward"``, ``"forward"``, or its square root on both,
            ``"ortho"``.

    Returns:
        Real array of the precision of `x`, with extent `n` along `axis`.

    Raises:
        ArgumentError: `n` is not positive, or `norm` is unknown.
        AxisError: the axis does not exist.

    >>> irfft(rfft([1.0, 2.0, 3.0]), n=3)
    Tensor([1., 2., 3.])
    """
    return irfftn(x, s=None if n is None else (n,), axes=(axis,), norm=norm)


@boundary
def rfftn(
    x: Any, /, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: Norm = "backward"
) -> Array:
    """Fourier transform of a real array over several axes; along the last of them only the first half is computed.

    Args:
        x: real array.
        s: numbers of points along `axes`, as `n` in `fft`; by default the extents.
        axes: axes to transform; by default the last ``len(s)``, or all.
        norm: as in `fft`; the factor is that of the product of all numbers of points.

    Returns:
        Complex array of the precision of `x`, with extents `s` along `axes`, the last one ``n // 2 + 1``.

    Raises:
        ArgumentError: a number of points is not positive, or `norm` is unknown.
        AxisError: an axis does not exist or appears twice.
        DTypeError: `x` is complex.

    See also:
        irfftn: the inverse.

    >>> rfftn([[1.0, 0.0], [0.0, 0.0]]).shape
    (2, 2)
    """
    x = floating(x)
    if x.spec.cplx:
        raise DTypeError("rfftn and rfft take real input, got complex numbers; use fftn or fft", dtype=str(x.dtype))
    axes, points = geometry("rfftn", x, s, axes)
    x = resized(x, axes, points)
    y = r2c(x, axis=axes[-1])
    if len(axes) > 1:
        y = c2c(y, axes=axes[:-1], sign=FORWARD)
    return _scaled(y, points, norm, FORWARD)


@boundary
def irfftn(
    x: Any, /, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: Norm = "backward"
) -> Array:
    """Inverse of `rfftn`: the real array of a half spectrum.

    Args:
        x: half spectrum.
        s: numbers of points of the result along `axes`; by default the extents, the last one ``2 * (extent - 1)``.
        axes: axes to transform; by default the last ``len(s)``, or all.
        norm: as in `fft`; the factor is that of the product of all numbers of points.

    Returns:
        Real array of the precision of `x`, with extents `s` along `axes`.

    Raises:
        ArgumentError: a number of points is not positive, or `norm` is unknown.
        AxisError: an axis does not exist or appears twice.

    >>> irfftn(rfftn([[1.0, 2.0]]))
    Tensor([[1., 2.]])
    """
    x = as_complex(x)
    axes, points = geometry("irfftn", x, s, axes, halved=True)
    x = resized(x, axes, (*points[:-1], half(points[-1])))
    if len(axes) > 1:
        x = c2c(x, axes=axes[:-1], sign=BACKWARD)
    return _scaled(c2r(x, axis=axes[-1], n=points[-1]), points, norm, BACKWARD)


@boundary
def hfft(x: Any, /, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Array:
    """Real spectrum of a Hermitian-symmetric signal whose first half is `x`.

    Args:
        x: first half of the signal, real or complex.
        n: number of points of the result; by default ``2 * (extent - 1)``.
        axis: axis to transform.
        norm: which transform has the factor ``1 / n``: ``"backward"``, ``"forward"``, or its square root on both,
            ``"ortho"``.

    Returns:
        Real array of the precision of `x`, with extent `n` along `axis`.

    Raises:
        ArgumentError: `n` is not positive, or `norm` is unknown.
        AxisError: the axis does not exist.

    See also:
        irfft: the inverse transform of the same symmetry.

    >>> hfft([1.0, 2.0, 1.0])
    Tensor([ 6.,  0., -2.,  0.])
    """
    return irfft(catalog.conj(as_complex(x)), n=n, axis=axis, norm=swapped(norm))


@boundary
def ihfft(x: Any, /, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Array:
    """Inverse of `hfft`: the first half of the signal whose spectrum is the real array `x`.

    Args:
        x: real array.
        n: number of points; `x` is truncated or zero-padded at the end. By default the extent of `axis`.
        axis: axis to transform.
        norm: which transform has the factor ``1 / n``: ``"backward"``, ``"forward"``, or its square root on both,
            ``"ortho"``.

    Returns:
        Complex array of the precision of `x`, with extent ``n // 2 + 1`` along `axis`.

    Raises:
        ArgumentError: `n` is not positive, or `norm` is unknown.
        AxisError: the axis does not exist.
        DTypeError: `x` is complex.

    >>> ihfft(hfft([1.0, 2.0, 1.0])) + 0
    Tensor([1.+0.j, 2.+0.j, 1.+0.j])
    """
    return catalog.conj(rfft(x, n=n, axis=axis, norm=swapped(norm)))


def _complex(what: str, x: Any, s: Sequence[int] | None, axes: Sequence[int] | None, norm: Norm, sign: int) -> Any:
    given, x = x, floating(x)
    axes, points = geometry(what, x, s, axes)
    if not axes:
        return apart(given, as_complex(x))
    return _scaled(c2c(resized(x, axes, points), axes=axes, sign=sign), points, norm, sign)


def floating(x: Any) -> Any:
    """Convert to an array of real or complex floating-point numbers."""
    if not isinstance(x, Array):
        if not isinstance(x, (np.ndarray, np.generic, list, tuple)) and x.__class__ not in SCALARS:
            raise ArgumentError(f"a Fourier transform takes an array, got a {type(x).__name__}")
        x = tensor(x)
    if x.spec.narrow:
        raise DTypeError(
            f"a Fourier transform is not computed in {x.spec.dtype.name}; convert the array first, x.astype(float32)",
            dtype=x.spec.dtype.name,
        )
    return x if x.spec.inexact else catalog.convert(x, dtype=inexact_of(x.dtype))


def as_complex(x: Any) -> Any:
    """Convert to a complex array."""
    x = floating(x)
    return x if x.spec.cplx else catalog.convert(x, dtype=complex_of(x.dtype))


def geometry(
    what: str, x: Any, s: Sequence[int] | None, axes: Sequence[int] | None, halved: bool = False
) -> tuple[tuple[int, ...], tuple[Any, ...]]:
    """Non-negative axes, and the number of points along each."""
    if s is None and not halved and axes.__class__ is tuple and len(axes) == 1 and axes[0].__class__ is int:
        shape = x.spec.shape  # fast path for one axis
        if -len(shape) <= axes[0] < len(shape) and shape[axes[0]] != 0:
            return (axes[0] % len(shape),), (shape[axes[0]],)
    axes = None if axes is None else integers(what, "axes", axes)
    s = None if s is None else integers(what, "s", s)
    if axes is None:
        axes = range(x.ndim) if s is None else range(-len(s), 0)
    if s is not None and len(s) != len(axes):
        raise ArgumentError(f"{what}: s has {len(s)} entries for {len(axes)} axes; give one per axis", s=tuple(s))
    if any(not -x.ndim <= a < x.ndim for a in axes) or len({a % x.ndim for a in axes}) < len(axes):
        raise AxisError(
            f"{what}: axes must be distinct and exist in shape {x.spec.shape}, got {tuple(axes)}", axes=tuple(axes)
        )
    if not axes and what.endswith("rfftn"):
        raise AxisError(f"{what} needs at least one axis, got an array of shape {x.spec.shape} and axes {tuple(axes)}")
    found = tuple(a % x.ndim for a in axes)
    extents = [x.spec.shape[a] for a in found]
    if halved:
        extents[-1] = 2 * (extents[-1] - 1)
    points = (
        tuple(extents)
        if s is None
        else tuple(e if n is None or n == -1 else n for n, e in zip(s, extents, strict=True))
    )
    for a, n in zip(found, points, strict=True):
        if isinstance(n, int) and n < 1:
            raise ArgumentError(
                f"{what} needs at least 1 point along axis {a}, got {n} (shape {x.spec.shape})", axis=a, n=n
            )
    return found, points


def integers(what: str, name: str, given: Any) -> tuple[Any, ...]:
    """A sequence of integers; sizes of traced arrays and ``None`` pass."""
    try:
        found = map(as_size, given)
        return tuple([n if (n is None and name == "s") or isinstance(n, Dim) else operator.index(n) for n in found])
    except TypeError as cause:
        if isinstance(cause, TenferroError):  # a traced integer raises its own error
            raise
        raise ArgumentError(f"{what} takes integers as {name}, got {given!r}", function=what) from None


def resized(x: Any, axes: tuple[int, ...], points: tuple[Any, ...]) -> Any:
    """`x` truncated or zero-padded at the end to the given numbers of points along `axes`."""
    if all(x.spec.shape[a] is n or x.spec.shape[a] == n for a, n in zip(axes, points, strict=True)):
        return x
    grow = [0] * x.ndim
    for a, n in zip(axes, points, strict=True):
        grow[a] = n - x.spec.shape[a]
    none = (0,) * x.ndim
    return catalog.pad(x, 0.0, low=none, high=tuple(grow), interior=none)


def _scaled(y: Any, points: tuple[Any, ...], norm: Norm, sign: int) -> Any:
    require_norm(norm)
    if norm == "ortho":
        return y * _power(math.prod(points), -0.5, y)
    return y if (norm == "backward") == (sign == FORWARD) else y * _power(math.prod(points), -1, y)


def require_norm(norm: Any) -> None:
    """Raise unless `norm` is valid."""
    if not isinstance(norm, str) or norm not in ("backward", "ortho", "forward"):
        raise ArgumentError(f"norm must be 'backward', 'ortho' or 'forward', got {norm!r}", norm=norm)


def _power(n: DimLike, exponent: float, y: Any) -> Any:
    """``1 / n`` or ``1 / sqrt(n)``: a number, or a value for a symbolic size; both round to the dtype of `y` last."""
    if isinstance(n, int):
        return 1.0 / (n if exponent == -1 else math.sqrt(n))
    at = catalog.convert(catalog.dim_value(size=n, place=y.spec.place), dtype=np.dtype("float64"))
    return catalog.convert(1.0 / (at if exponent == -1 else catalog.sqrt(at)), dtype=real_of(y.dtype))


def swapped(norm: Norm) -> Norm:
    """The norm with forward and backward exchanged."""
    if norm == "ortho":
        return norm
    return "forward" if norm == "backward" else "backward"
