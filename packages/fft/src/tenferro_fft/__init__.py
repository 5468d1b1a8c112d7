"""Differentiable Fourier, cosine, sine and Hankel transforms, and convolution by spectra."""

import tenferro_runtime.extension  # noqa: F401 - the code of programs, before anything imports a part of it

# isort: split
from typing import TYPE_CHECKING

from tenferro_fft._analytic import czt, hilbert, zoom_fft
from tenferro_fft._convolution import fftconvolve, oaconvolve
from tenferro_fft._cosines import dct, dctn, dst, dstn, idct, idctn, idst, idstn
from tenferro_fft._frequencies import fftfreq, fftshift, ifftshift, rfftfreq
from tenferro_fft._hankel import fht, fhtoffset, ifht
from tenferro_fft._lengths import next_fast_len, prev_fast_len
from tenferro_fft._planes import fft2, hfft2, hfftn, ifft2, ihfft2, ihfftn, irfft2, rfft2
from tenferro_fft._transforms import fft, fftn, hfft, ifft, ifftn, ihfft, irfft, irfftn, rfft, rfftn
from tenferro_fft._workers import get_workers, set_workers
from tenferro_tensor_core.absent import absent_from

__all__ = [
    "czt",
    "dct",
    "dctn",
    "dst",
    "dstn",
    "fft",
    "fft2",
    "fftconvolve",
    "fftfreq",
    "fftn",
    "fftshift",
    "fht",
    "fhtoffset",
    "get_workers",
    "hfft",
    "hfft2",
    "hfftn",
    "hilbert",
    "idct",
    "idctn",
    "idst",
    "idstn",
    "ifft",
    "ifft2",
    "ifftn",
    "ifftshift",
    "ifht",
    "ihfft",
    "ihfft2",
    "ihfftn",
    "irfft",
    "irfft2",
    "irfftn",
    "next_fast_len",
    "oaconvolve",
    "prev_fast_len",
    "rfft",
    "rfft2",
    "rfftfreq",
    "rfftn",
    "set_workers",
    "zoom_fft",
]


def __dir__() -> list[str]:
    return __all__.copy()


if not TYPE_CHECKING:
    __getattr__ = absent_from(__name__)
