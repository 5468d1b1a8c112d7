"""Fourier transforms in programs that run as one native function: loops for lengths that are products of 4, 2, 3 and 5.

`_roots` has the roots of unity, computed once for a run, `_butterflies` the transforms of 2 to 5 points, `_lines` one
transform as passes of these (Stockham's, which leaves the coefficients in order), `_transforms` the rules. All other
lengths, and very long ones, are left to the kernels.
"""

from tenferro_fft.loops._transforms import complex_to_complex, half_to_real, real_to_half

__all__ = ["complex_to_complex", "half_to_real", "real_to_half"]
