"""Differentiable Fourier transforms under the names of the Array API standard."""

from tenferro_fft._frequencies import fftfreq, fftshift, ifftshift, rfftfreq
from tenferro_fft._transforms import fft, fftn, hfft, ifft, ifftn, ihfft, irfft, irfftn, rfft, rfftn

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
