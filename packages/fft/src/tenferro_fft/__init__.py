"""Differentiable Fourier transforms under the names of the Array API standard."""

from typing import TYPE_CHECKING

from tenferro_fft._frequencies import fftfreq, fftshift, ifftshift, rfftfreq
from tenferro_fft._transforms import fft, fftn, hfft, ifft, ifftn, ihfft, irfft, irfftn, rfft, rfftn
from tenferro_tensor_core.absent import absent_from

__all__ = [
    "fft",
    "fftfreq",
    "fftn",
    "fftshift",
    "hfft",
    "ifft",
    "ifftn",
    "ifftshift",
    "ihfft",
    "irfft",
    "irfftn",
    "rfft",
    "rfftfreq",
    "rfftn",
]

if not TYPE_CHECKING:
    __getattr__ = absent_from(__name__)
