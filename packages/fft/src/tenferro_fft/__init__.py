"""Differentiable Fourier transforms under the names of the Array API standard."""

from typing import TYPE_CHECKING

from tenferro_fft._frequencies import fftfreq, fftshift, ifftshift, rfftfreq
from tenferro_fft._planes import fft2, hfft2, hfftn, ifft2, ihfft2, ihfftn, irfft2, rfft2
from tenferro_fft._transforms import fft, fftn, hfft, ifft, ifftn, ihfft, irfft, irfftn, rfft, rfftn
from tenferro_tensor_core.absent import absent_from

__all__ = [
    "fft",
    "fft2",
    "fftfreq",
    "fftn",
    "fftshift",
    "hfft",
    "hfft2",
    "hfftn",
    "ifft",
    "ifft2",
    "ifftn",
    "ifftshift",
    "ihfft",
    "ihfft2",
    "ihfftn",
    "irfft",
    "irfft2",
    "irfftn",
    "rfft",
    "rfft2",
    "rfftfreq",
    "rfftn",
]

if not TYPE_CHECKING:
    __getattr__ = absent_from(__name__)
