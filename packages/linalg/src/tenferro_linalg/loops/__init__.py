"""Linear algebra in programs that run as one native function: LAPACK subroutines between loops.

Every rule implements the path that needs no second attempt. If LAPACK reports an error, an entry is not finite, or a
derivative does not exist, the ordinary kernel runs instead: it raises the typed error, or handles the case.

`_lapack` holds what the rules share; `_factors`, `_pivots`, `_determinants`, `_orthogonal`, `_spectra` and `_general`
are decompositions, `_multiplets` finds equal values and `_turns` turns their vectors, `_pseudo` is the inverse derived
from them, `_exponential` is the exponential of matrices. The tests of derivatives are formulas, see `_fallible`.
"""

from collections.abc import Callable
from typing import Any, Final

from tenferro_linalg.loops._determinants import determinant, sign_and_logarithm
from tenferro_linalg.loops._exponential import exponential
from tenferro_linalg.loops._factors import (
    cholesky,
    factors,
    inverse,
    solve,
    solve_by_factors,
    solve_triangular,
)
from tenferro_linalg.loops._general import general_eigenpairs, general_eigenvalues
from tenferro_linalg.loops._orthogonal import orthogonal, triangle
from tenferro_linalg.loops._pivots import exchanged, taken
from tenferro_linalg.loops._pseudo import least_squares, pseudo_inverse
from tenferro_linalg.loops._spectra import eigenpairs, eigenvalues, singular_triplets, singular_values
from tenferro_runtime.lowering import by_expansion

__all__ = ["RULES"]


def __dir__() -> list[str]:
    return __all__.copy()


RULES: Final[dict[str, Callable[[Any], Any]]] = {
    rule.__name__: rule
    for rule in (
        by_expansion,
        cholesky,
        determinant,
        eigenpairs,
        eigenvalues,
        exchanged,
        exponential,
        factors,
        general_eigenpairs,
        general_eigenvalues,
        inverse,
        least_squares,
        orthogonal,
        pseudo_inverse,
        sign_and_logarithm,
        singular_triplets,
        singular_values,
        solve,
        solve_by_factors,
        solve_triangular,
        taken,
        triangle,
    )
}
"""The rules by name: each takes the `Step` of one equation and returns the lowered results."""
