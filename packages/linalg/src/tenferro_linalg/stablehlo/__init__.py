"""StableHLO lowerings: decompositions by the libraries of the platform, which JAX calls, and tests on their results.

Every function here takes ``library``, which gives modules of JAX, and arrays of these; `tenferro_xla` traces them.
A last boolean result, where there is one, says whether the step has failed; the run then ends in the error of the CPU
backend. Up to rounding, and up to the choices that decompositions leave open, values are those of the kernels.

`_factors` has factors, equations and determinants, `_spectra` decompositions into vectors, `_turns` the bases of equal
values, `_checks` the tests of derivatives, `_groups` the groups of eigenvalues of functions of matrices,
`_further` LU and polar factors and exponentials, `_similarity` Schur and Hessenberg forms, `_equations` those of
Sylvester, Stein and Riccati, `_roots` logarithms, square roots and signs, `_structured` banded, Toeplitz, circulant and
sparse matrices, `_truncated` ranks, orders of columns and sketches.
"""

from tenferro_linalg.stablehlo._register import register

__all__ = ["register"]
