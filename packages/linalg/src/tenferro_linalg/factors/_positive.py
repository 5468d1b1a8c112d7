"""Solutions of positive definite equations from Cholesky factors."""

from typing import Any, NamedTuple

from tenferro_linalg._algebra import adjoint, mm, part
from tenferro_linalg._cholesky import cholesky
from tenferro_linalg._operands import matrices
from tenferro_linalg._solve import inv_, solve_triangular
from tenferro_tensor import Array


class CholeskyFactor(NamedTuple):
    """A triangular factor, with zeros in the other triangle, and whether it is the lower one."""

    c: Any
    lower: bool


def cho_factor(x: Any, /, lower: bool = False) -> CholeskyFactor:
    """The Cholesky factor that `cho_solve` takes.

    Args:
        x: Hermitian positive definite matrices (..., n, n); of other matrices the Hermitian part.
        lower: whether it is L with ``A = L @ L*``, or its adjoint.

    Raises:
        NumericalError: an entry is not finite, or a matrix is not positive definite.

    >>> cho_factor([[4.0, 2.0], [2.0, 5.0]]).c
    Tensor([[2., 1.],
            [0., 2.]])
    """
    return CholeskyFactor(cholesky(x, upper=not lower), bool(lower))


def cho_solve(c_and_lower: tuple[Any, bool], b: Any, /) -> Array:
    """Solution X of ``A @ X = B`` from a Cholesky factor of A.

    Args:
        c_and_lower: what `cho_factor` returned for matrices (..., n, n); the other triangle is not read.
        b: right sides: one vector (n,), or matrices (..., n, k).

    Raises:
        NumericalError: a diagonal entry is exactly zero.
        ShapeError: extents do not agree.

    >>> cho_solve(cho_factor([[4.0, 0.0], [0.0, 2.0]]), [2.0, 2.0]).round(12)
    Tensor([0.5, 1. ])
    """
    c, lower = c_and_lower
    first, second = ("N", "C") if lower else ("C", "N")
    return solve_triangular(c, solve_triangular(c, b, lower=lower, trans=first), lower=lower, trans=second)


def cholesky_solve(x: Any, b: Any, /, *, upper: bool = False) -> Array:
    """Solution of ``L @ L* @ X = B``, or of ``U* @ U @ X = B`` where `upper`.

    Args:
        x: triangular factors (..., n, n), as `cholesky` returns them.
        b: right sides: one vector (n,), or matrices (..., n, k).
        upper: whether the factors are upper triangular.

    Raises:
        NumericalError: a diagonal entry is exactly zero.
        ShapeError: extents do not agree.

    >>> cholesky_solve([[2.0, 0.0], [0.0, 1.0]], [2.0, 2.0])
    Tensor([0.5, 2. ])
    """
    return cho_solve((x, not upper), b)


def cholesky_inverse(x: Any, /, *, upper: bool = False) -> Array:
    """Inverse of ``L @ L*``, or of ``U* @ U`` where `upper`.

    Args:
        x: triangular factors (..., n, n), as `cholesky` returns them.
        upper: whether the factors are upper triangular.

    Raises:
        NumericalError: a diagonal entry is exactly zero.

    >>> cholesky_inverse([[2.0, 0.0], [0.0, 1.0]])
    Tensor([[0.25, 0.  ],
            [0.  , 1.  ]])
    """
    y = inv_(part(matrices("cholesky_inverse", x, square=True), "upper" if upper else "lower"), what="cholesky_inverse")
    return mm(y, adjoint(y)) if upper else mm(adjoint(y), y)
