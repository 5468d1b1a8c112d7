"""Transforms over two axes, and transforms of Hermitian-symmetric arrays over several axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from tenferro_fft._transforms import Norm, as_complex, fftn, ifftn, irfftn, rfftn, swapped
from tenferro_tensor import Array, catalog
from tenferro_tensor_core.tracebacks import boundary

LAST_TWO: Final = (-2, -1)


@boundary
def fft2(x: Any, /, s: Sequence[int] | None = None, axes: Sequence[int] = LAST_TWO, norm: Norm = "backward") -> Array:
    """Discrete Fourier transform over two axes, by default the last two.

    Args:
        x: real or complex array.
        s: numbers of points along `axes`, as `n` in `fft`; by default the extents.
        axes: axes to transform; by default the last two.
        norm: as in `fft`; the factor is that of the product of all numbers of points.

    Returns:
        Complex array of the precision of `x`, with extents `s` along `axes`.

    Raises:
        ArgumentError: a number of points is not positive, or `norm` is unknown.
        AxisError: an axis does not exist or appears twice.

    See also:
        fftn: any number of axes.

    >>> fft2([[1.0, 1j], [0.0, 0.0]])
    Tensor([[1.+1.j, 1.-1.j],
            [1.+1.j, 1.-1.j]])
    """
    return fftn(x, s=s, axes=axes, norm=norm)


@boundary
def ifft2(x: Any, /, s: Sequence[int] | None = None, axes: Sequence[int] = LAST_TWO, norm: Norm = "backward") -> Array:
    """Inverse of `fft2`.

    Args:
        x: real or complex array.
        s: numbers of points along `axes`, as `n` in `fft`; by default the extents.
        axes: axes to transform; by default the last two.
        norm: as in `fft`; the factor is that of the product of all numbers of points.

    Returns:
        Complex array of the precision of `x`, with extents `s` along `axes`.

    Raises:
        ArgumentError: a number of points is not positive, or `norm` is unknown.
        AxisError: an axis does not exist or appears twice.

    >>> ifft2(fft2([[1.0, 2.0]]))
    Tensor([[1.+0.j, 2.+0.j]])
    """
    return ifftn(x, s=s, axes=axes, norm=norm)


@boundary
def rfft2(x: Any, /, s: Sequence[int] | None = None, axes: Sequence[int] = LAST_TWO, norm: Norm = "backward") -> Array:
    """Fourier transform of a real array over two axes; along the second one only the first half is computed.

    Args:
        x: real array.
        s: numbers of points along `axes`, as `n` in `fft`; by default the extents.
        axes: axes to transform; by default the last two.
        norm: as in `fft`; the factor is that of the product of all numbers of points.

    Returns:
        Complex array of the precision of `x`, with extents `s` along `axes`, the last one ``n // 2 + 1``.

    Raises:
        ArgumentError: a number of points is not positive, or `norm` is unknown.
        AxisError: an axis does not exist or appears twice.
        DTypeError: `x` is complex.

    See also:
        rfftn: any number of axes.

    >>> rfft2([[1.0, 0.0, 0.0, 0.0]]).shape
    (1, 3)
    """
    return rfftn(x, s=s, axes=axes, norm=norm)


@boundary
def irfft2(x: Any, /, s: Sequence[int] | None = None, axes: Sequence[int] = LAST_TWO, norm: Norm = "backward") -> Array:
    """Inverse of `rfft2`: the real array of a half spectrum.

    Args:
        x: half spectrum.
        s: numbers of points of the result along `axes`; by default the extents, the last one ``2 * (extent - 1)``.
        axes: axes to transform; by default the last two.
        norm: as in `fft`; the factor is that of the product of all numbers of points.

    Returns:
        Real array of the precision of `x`, with extents `s` along `axes`.

    Raises:
        ArgumentError: a number of points is not positive, or `norm` is unknown.
        AxisError: an axis does not exist or appears twice.

    >>> irfft2(rfft2([[1.0, 2.0]]))
    Tensor([[1., 2.]])
    """
    return irfftn(x, s=s, axes=axes, norm=norm)


@boundary
def hfftn(
    x: Any, /, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: Norm = "backward"
) -> Array:
    """Real spectrum of a Hermitian-symmetric array whose first half along the last of the axes is `x`.

    Args:
        x: first half of the array, real or complex.
        s: numbers of points of the result along `axes`; by default the extents, the last one ``2 * (extent - 1)``.
        axes: axes to transform; by default the last ``len(s)``, or all.
        norm: as in `fft`; the factor is that of the product of all numbers of points.

    Returns:
        Real array of the precision of `x`, with extents `s` along `axes`.

    Raises:
        ArgumentError: a number of points is not positive, or `norm` is unknown.
        AxisError: an axis does not exist or appears twice.

    See also:
        hfft: one axis.

    >>> hfftn([[1.0, 2.0, 1.0]])
    Tensor([[ 6.,  0., -2.,  0.]])
    """
    return irfftn(catalog.conj(as_complex(x)), s=s, axes=axes, norm=swapped(norm))


@boundary
def ihfftn(
    x: Any, /, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: Norm = "backward"
) -> Array:
    """Inverse of `hfftn`: the first half of the array whose spectrum is the real array `x`.

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

    >>> ihfftn(hfftn([[1.0, 2.0, 1.0]])) + 0
    Tensor([[1.+0.j, 2.+0.j, 1.+0.j]])
    """
    return catalog.conj(rfftn(x, s=s, axes=axes, norm=swapped(norm)))


@boundary
def hfft2(x: Any, /, s: Sequence[int] | None = None, axes: Sequence[int] = LAST_TWO, norm: Norm = "backward") -> Array:
    """`hfftn` over two axes, by default the last two.

    Args:
        x: first half of the array, real or complex.
        s: numbers of points of the result along `axes`; by default the extents, the last one ``2 * (extent - 1)``.
        axes: axes to transform; by default the last two.
        norm: as in `fft`; the factor is that of the product of all numbers of points.

    Returns:
        Real array of the precision of `x`, with extents `s` along `axes`.

    Raises:
        ArgumentError: a number of points is not positive, or `norm` is unknown.
        AxisError: an axis does not exist or appears twice.

    >>> hfft2([[1.0, 2.0, 1.0]])
    Tensor([[ 6.,  0., -2.,  0.]])
    """
    return hfftn(x, s=s, axes=axes, norm=norm)


@boundary
def ihfft2(x: Any, /, s: Sequence[int] | None = None, axes: Sequence[int] = LAST_TWO, norm: Norm = "backward") -> Array:
    """`ihfftn` over two axes, by default the last two.

    Args:
        x: real array.
        s: numbers of points along `axes`, as `n` in `fft`; by default the extents.
        axes: axes to transform; by default the last two.
        norm: as in `fft`; the factor is that of the product of all numbers of points.

    Returns:
        Complex array of the precision of `x`, with extents `s` along `axes`, the last one ``n // 2 + 1``.

    Raises:
        ArgumentError: a number of points is not positive, or `norm` is unknown.
        AxisError: an axis does not exist or appears twice.
        DTypeError: `x` is complex.

    >>> ihfft2(hfft2([[1.0, 2.0, 1.0]])) + 0
    Tensor([[1.+0.j, 2.+0.j, 1.+0.j]])
    """
    return ihfftn(x, s=s, axes=axes, norm=norm)
