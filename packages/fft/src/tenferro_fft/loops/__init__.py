"""Fourier transforms in whole programs: loop nests for lengths that are products of 4, 2, 3 and 5.

`_roots` computes the roots of unity, once per run; `_butterflies` has the transforms of 2 to 5 points; `_lines` builds
one transform from passes of these (Stockham's algorithm, which keeps the coefficients in order); `_transforms` has the
rules. Kernels handle all other lengths, and very long ones.
"""

from tenferro_fft.loops._transforms import complex_to_complex, half_to_real, real_to_half

__all__ = ["complex_to_complex", "half_to_real", "real_to_half"]


def __dir__() -> list[str]:
    return __all__.copy()
