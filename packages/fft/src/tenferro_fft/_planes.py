"""Transforms over two axes, and those of Hermitian-symmetric arrays over several."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tenferro_fft._transforms import Norm, as_complex, fftn, ifftn, irfftn, rfftn, swapped
from tenferro_tensor import Array, catalog

LAST_TWO = (-2, -1)


def fft2(
    x: Any, /, *, s: Sequence[int] | None = None, axes: Sequence[int] = LAST_TWO, norm: Norm = "backward"
) -> Array:
    """Discrete Fourier transform over two axes, by default the last ones; arguments are those of `fftn`.

    >>> fft2([[1.0, 1j], [0.0, 0.0]])
    Tensor([[1.+1.j, 1.-1.j],
            [1.+1.j, 1.-1.j]])
    """
    return fftn(x, s=s, axes=axes, norm=norm)


def ifft2(
    x: Any, /, *, s: Sequence[int] | None = None, axes: Sequence[int] = LAST_TWO, norm: Norm = "backward"
) -> Array:
    """Inverse of `fft2`; arguments as there."""
    return ifftn(x, s=s, axes=axes, norm=norm)


def rfft2(
    x: Any, /, *, s: Sequence[int] | None = None, axes: Sequence[int] = LAST_TWO, norm: Norm = "backward"
) -> Array:
    """Transform of a real array over two axes, by default the last ones; see `rfftn`."""
    return rfftn(x, s=s, axes=axes, norm=norm)


def irfft2(
    x: Any, /, *, s: Sequence[int] | None = None, axes: Sequence[int] = LAST_TWO, norm: Norm = "backward"
) -> Array:
    """Inverse of `rfft2`; the last entry of `s` defaults to ``2 * (extent - 1)``."""
    return irfftn(x, s=s, axes=axes, norm=norm)


def hfftn(
    x: Any, /, *, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: Norm = "backward"
) -> Array:
    """Real spectrum of an array with Hermitian symmetry whose first half along the last of the axes is `x`.

    Args:
        x: real or complex array.
        s: numbers of points of the result along `axes`; the last one defaults to ``2 * (extent - 1)``.
        axes: the axes; by default the last ``len(s)``, or all.
        norm: as for `fft`.
    """
    return irfftn(catalog.conj(as_complex(x)), s=s, axes=axes, norm=swapped(norm))


def ihfftn(
    x: Any, /, *, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: Norm = "backward"
) -> Array:
    """Inverse of `hfftn`: first half of the array whose spectrum is the real array `x`."""
    return catalog.conj(rfftn(x, s=s, axes=axes, norm=swapped(norm)))


def hfft2(
    x: Any, /, *, s: Sequence[int] | None = None, axes: Sequence[int] = LAST_TWO, norm: Norm = "backward"
) -> Array:
    """`hfftn` over two axes, by default the last ones."""
    return hfftn(x, s=s, axes=axes, norm=norm)


def ihfft2(
    x: Any, /, *, s: Sequence[int] | None = None, axes: Sequence[int] = LAST_TWO, norm: Norm = "backward"
) -> Array:
    """`ihfftn` over two axes, by default the last ones."""
    return ihfftn(x, s=s, axes=axes, norm=norm)
