"""StableHLO lowerings: decompositions by the platform's libraries, called through JAX, and tests of their results.

Every function here takes ``library``, which maps names to modules of JAX, and their arrays; `tenferro_xla` traces them.
A last boolean result, if any, is the failure flag of the step; a failed run then raises the error of the CPU
backend. Up to rounding, and up to the freedom of decompositions, values equal those of the kernels.

`_factors` has factors, equations and determinants, `_spectra` decompositions with vectors, `_turns` the bases of equal
values, `_regular` decompositions where all values differ, `_groups` the groups of eigenvalues of functions of
matrices, `_further` LU and polar factors and exponentials, `_similarity` Schur and Hessenberg forms, `_equations`
those of Sylvester, Stein and Riccati, `_roots` logarithms, square roots and signs, `_structured` banded, Toeplitz,
circulant and sparse matrices, `_truncated` ranks, column orders and sketches. Formulas of kernels that may fail are
lowered by `tenferro_linalg._fallible`.
"""

from tenferro_linalg.stablehlo._register import register

__all__ = ["register"]


def __dir__() -> list[str]:
    return __all__.copy()
