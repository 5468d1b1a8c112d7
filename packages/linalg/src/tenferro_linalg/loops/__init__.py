"""Linear algebra in programs that run as one native function: subroutines of LAPACK between loops.

Every rule computes on the way that needs no second attempt. Where LAPACK reports something, an entry is not finite, or
values are equal that a derivative tells apart, the ordinary kernel runs in its place: it raises the typed error, or
knows what to do.

`_lapack` has what the rules share; `_factors`, `_pivots`, `_determinants`, `_orthogonal` and `_spectra` are
decompositions, `_pseudo` is an inverse by one, `_gaps` and `_ranks` are the tests of their derivatives; `_points` are
for functions of eigenvalues, `_norms` norms of vectors.
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
from tenferro_linalg.loops._pivots import exchanged, pivoted, taken
from tenferro_linalg.loops._pseudo import pseudo_inverse, ranked
from tenferro_linalg.loops._ranks import beyond, frame, full_rank, kept, prefix, rows
from tenferro_linalg.loops._spectra import eigenpairs, eigenvalues, singular_triplets, singular_values

__all__ = [
    "adjugate",
    "beyond",
    "certified",
    "checked",
    "cholesky",
    "cotangent_scale",
    "determinant",
    "eigenpairs",
    "eigenvalues",
    "exchanged",
    "factors",
    "frame",
    "full_rank",
    "inverse",
    "kept",
    "orthogonal",
    "pivoted",
    "power_norm",
    "prefix",
    "pseudo_inverse",
    "quotient",
    "ranked",
    "rows",
    "sign_and_logarithm",
    "singular_triplets",
    "singular_values",
    "solve",
    "solve_by_factors",
    "solve_triangular",
    "taken",
    "triangle",
    "unsigned",
]
