"""Sample frequencies, and shifts of the zero frequency."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from tenferro_fft._transforms import integers
from tenferro_tensor import Array, ComputeDevice, catalog, tensor
from tenferro_tensor.catalog import dim_value, select
from tenferro_tensor.functions import arange, astype
from tenferro_tensor_core import ArgumentError, AxisError, Dim, DimLike, TenferroError, as_size, ask
from tenferro_tensor_core.tracebacks import boundary


@boundary
def fftfreq(n: int, /, d: float = 1.0, *, dtype: Any = None, device: str | ComputeDevice | None = None) -> Array:
    """Frequencies of `fft`: ``[0, 1, ..., -2, -1] / (d n)``, in cycles per unit of the sample spacing.

    Args:
        n: number of points.
        d: sample spacing; frequencies have its inverse unit.
        dtype: floating dtype; float64 by default.
        device: device of the result.

    Returns:
        Array of shape (n,).

    Raises:
        ArgumentError: `n` is not a positive integer, or `d` is not a nonzero number.

    See also:
        fftshift: sorts them.

    >>> fftfreq(4, d=0.5)
    Tensor([ 0. ,  0.5, -1. , -0.5])
    """
    points = _points(n)
    if isinstance(points, int):
        return tensor(np.fft.fftfreq(points, _spacing(d)), dtype=dtype, device=device)
    at = arange(points, device=device)
    half, whole = (dim_value(size=n, place=at.spec.place) for n in ((points - 1) // 2 + 1, points))
    return _open(at - select(at < half, 0, whole), points, d, dtype)


@boundary
def rfftfreq(n: int, /, d: float = 1.0, *, dtype: Any = None, device: str | ComputeDevice | None = None) -> Array:
    """Frequencies of `rfft`: ``[0, 1, ..., n // 2] / (d n)``, in cycles per unit of the sample spacing.

    Args:
        n: number of points.
        d: sample spacing; frequencies have its inverse unit.
        dtype: floating dtype; float64 by default.
        device: device of the result.

    Returns:
        Array of shape (n // 2 + 1,).

    Raises:
        ArgumentError: `n` is not a positive integer, or `d` is not a nonzero number.

    >>> rfftfreq(4, d=0.5)
    Tensor([0. , 0.5, 1. ])
    """
    points = _points(n)
    if isinstance(points, int):
        return tensor(np.fft.rfftfreq(points, _spacing(d)), dtype=dtype, device=device)
    return _open(arange(points // 2 + 1, device=device), points, d, dtype)


def _open(at: Any, points: Dim, d: Any, dtype: Any) -> Any:
    """Frequencies for a symbolic number of points, from multiples of the lowest one."""
    out = at * (1.0 / (dim_value(size=points, place=at.spec.place) * _spacing(d)))
    return out if dtype is None else astype(out, dtype, copy=False)


@boundary
def fftshift(x: Any, /, axes: int | Sequence[int] | None = None) -> Array:
    """Move the zero frequency to the middle.

    Args:
        x: array of any dtype.
        axes: axes to shift; by default all.

    Returns:
        Array with the shape and dtype of `x`.

    Raises:
        AxisError: an axis does not exist.

    See also:
        ifftshift: the inverse.

    >>> fftshift(fftfreq(4))
    Tensor([-0.5 , -0.25,  0.  ,  0.25])
    """
    return _rolled(x, axes, lambda n: n - n // 2)


@boundary
def ifftshift(x: Any, /, axes: int | Sequence[int] | None = None) -> Array:
    """Inverse of `fftshift`: move the zero frequency from the middle to the front.

    Args:
        x: array of any dtype.
        axes: axes to shift; by default all.

    Returns:
        Array with the shape and dtype of `x`.

    Raises:
        AxisError: an axis does not exist.

    >>> ifftshift([-0.5, -0.25, 0.0, 0.25])
    Tensor([ 0.  ,  0.25, -0.5 , -0.25])
    """
    return _rolled(x, axes, lambda n: n // 2)


def _points(n: Any) -> DimLike:
    n = as_size(n)
    if isinstance(n, Dim) and ask(n, ">", 0):
        return n
    if not isinstance(n, (int, np.integer)) or not 0 < n <= sys.maxsize:
        raise ArgumentError(f"frequencies need a positive number of points, got {n!r}", n=n)
    return int(n)


def _spacing(d: Any) -> float:
    try:
        found = float(d)
    except (TypeError, ValueError) as cause:
        if isinstance(cause, TenferroError):
            raise
        raise ArgumentError(f"the sample spacing d must be a number, got {d!r}", d=repr(d)) from None
    if not found:
        raise ArgumentError("the sample spacing d must not be 0", d=found)
    return found


def _rolled(x: Any, axes: int | Sequence[int] | None, first: Any) -> Any:
    """Rotate each axis so that the element at ``first(extent)`` comes first."""
    x = x if isinstance(x, Array) else tensor(x)
    chosen = range(x.ndim) if axes is None else integers("fftshift", "axes", [axes] if isinstance(axes, int) else axes)
    for a in chosen:
        if not -x.ndim <= a < x.ndim:
            raise AxisError(f"fftshift: axis {a} does not exist in shape {x.spec.shape}", axis=a)
        x = _rotated(x, a % x.ndim, first(x.spec.shape[a]))
    return x


def _rotated(x: Any, axis: int, start: Any) -> Any:
    if start == 0 or x.spec.shape[axis] == 0:
        return x

    def part(lo: Any, hi: Any) -> Any:
        return catalog.slice_(
            x,
            start=tuple(lo if a == axis else 0 for a in range(x.ndim)),
            limit=tuple(hi if a == axis else d for a, d in enumerate(x.spec.shape)),
            stride=(1,) * x.ndim,
        )

    return catalog.concatenate(part(start, x.spec.shape[axis]), part(0, start), axis=axis)
