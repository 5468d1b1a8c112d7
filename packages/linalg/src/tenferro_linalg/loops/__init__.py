"""Linear algebra in programs that run as one native function: subroutines of LAPACK between loops.

Every rule computes on the way that needs no second attempt. Where LAPACK reports something, an entry is not finite, or
values are equal that a derivative tells apart, the ordinary kernel runs in its place: it raises the typed error, or
knows what to do.

`_lapack` has what the rules share; `_factors`, `_determinants`, `_orthogonal` and `_spectra` are decompositions,
`_gaps` and `_ranks` the tests of their derivatives; `_norms` are norms of vectors.
"""

from tenferro_linalg.loops._determinants import adjugate, determinant, sign_and_logarithm
from tenferro_linalg.loops._factors import (
    cholesky,
    factors,
    inverse,
    solve,
    solve_by_factors,
    solve_triangular,
)
from tenferro_linalg.loops._gaps import certified, checked, cotangent_scale, quotient, unsigned
from tenferro_linalg.loops._norms import power_norm
from tenferro_linalg.loops._orthogonal import orthogonal, triangle
from tenferro_linalg.loops._ranks import frame, full_rank, prefix, rows
from tenferro_linalg.loops._spectra import eigenpairs, eigenvalues, singular_triplets, singular_values

__all__ = [
    "adjugate",
    "certified",
    "checked",
    "cholesky",
    "cotangent_scale",
    "determinant",
    "eigenpairs",
    "eigenvalues",
    "factors",
    "frame",
    "full_rank",
    "inverse",
    "orthogonal",
    "power_norm",
    "prefix",
    "quotient",
    "rows",
    "sign_and_logarithm",
    "singular_triplets",
    "singular_values",
    "solve",
    "solve_by_factors",
    "solve_triangular",
    "triangle",
    "unsigned",
]
