"""Solutions of positive definite equations from Cholesky factors."""

from typing import Any, NamedTuple

from tenferro_linalg._algebra import adjoint, mm, part
from tenferro_linalg._cholesky import cholesky
from tenferro_linalg._operands import matrices
from tenferro_linalg._solve import inv_, solve_triangular
from tenferro_tensor import Array
from tenferro_tensor_core.tracebacks import boundary


class CholeskyFactor(NamedTuple):
    """Cholesky factor for `cho_solve`.

    Attributes:
        c: a triangular factor, with zeros in the opposite triangle.
        lower: whether it is the lower one.
    """

    c: Array
    lower: bool


@boundary
def cho_factor(x: Any, /, lower: bool = False) -> CholeskyFactor:
    """Cholesky factor for `cho_solve`.

    Args:
        x: Hermitian positive definite matrices (..., n, n); of other matrices, the Hermitian part.
        lower: return L with ``A = L @ L*``; otherwise its adjoint.

    Returns:
        ``c`` (..., n, n), triangular, and the flag ``lower``.

    Raises:
        NumericalError: an entry is not finite, or a matrix is not positive definite.

    >>> cho_factor([[4.0, 2.0], [2.0, 5.0]]).c
    Tensor([[2., 1.],
            [0., 2.]])
    """
    return CholeskyFactor(cholesky(x, upper=not lower), bool(lower))


@boundary
def cho_solve(c_and_lower: tuple[Any, bool], b: Any, /) -> Array:
    """Solve ``A @ X = B`` from a Cholesky factor of A.

    Args:
        c_and_lower: the result of `cho_factor` for matrices (..., n, n); the opposite triangle is not read.
        b: right-hand sides: one vector (n,), or matrices (..., n, k).

    Returns:
        X (..., n) for a vector, otherwise (..., n, k), batch axes broadcast together.

    Raises:
        NumericalError: a diagonal entry is exactly zero.
        ShapeError: the extents do not match.

    >>> cho_solve(cho_factor([[4.0, 0.0], [0.0, 2.0]]), [2.0, 2.0]).round(12)
    Tensor([0.5, 1. ])
    """
    c, lower = c_and_lower
    first, second = ("N", "C") if lower else ("C", "N")
    return solve_triangular(c, solve_triangular(c, b, lower=lower, trans=first), lower=lower, trans=second)


@boundary
def cholesky_solve(x: Any, b: Any, /, *, upper: bool = False) -> Array:
    """Solve ``L @ L* @ X = B``, or with `upper` ``U* @ U @ X = B``.

    Args:
        x: triangular factors (..., n, n), as `cholesky` returns them.
        b: right-hand sides: one vector (n,), or matrices (..., n, k).
        upper: whether the factors are upper triangular.

    Returns:
        X (..., n) for a vector, otherwise (..., n, k), batch axes broadcast together.

    Raises:
        NumericalError: a diagonal entry is exactly zero.
        ShapeError: the extents do not match.

    >>> cholesky_solve([[2.0, 0.0], [0.0, 1.0]], [2.0, 2.0])
    Tensor([0.5, 2. ])
    """
    return cho_solve((x, not upper), b)


@boundary
def cholesky_inverse(x: Any, /, *, upper: bool = False) -> Array:
    """Inverse of ``L @ L*``, or with `upper` of ``U* @ U``.

    Args:
        x: triangular factors (..., n, n), as `cholesky` returns them.
        upper: whether the factors are upper triangular.

    Returns:
        Matrices (..., n, n) of the dtype of `x`.

    Raises:
        NumericalError: a diagonal entry is exactly zero.

    >>> cholesky_inverse([[2.0, 0.0], [0.0, 1.0]])
    Tensor([[0.25, 0.  ],
            [0.  , 1.  ]])
    """
    y = inv_(part(matrices("cholesky_inverse", x, square=True), "upper" if upper else "lower"), what="cholesky_inverse")
    return mm(y, adjoint(y)) if upper else mm(adjoint(y), y)
