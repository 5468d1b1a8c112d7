"""Triangular factors, linear equations and determinants."""

from __future__ import annotations

from typing import Any

from tenferro_linalg._bases import hermitian


def not_finite(xp: Any, *arrays: Any) -> Any:
    """Whether any element of any array is not finite."""
    found = xp.asarray(False)
    for x in arrays:
        found = found | ~xp.isfinite(x).all()
    return found


def cholesky(library: Any, x: Any) -> Any:
    """The lower factor; device libraries fill that of an indefinite matrix with NaN."""
    xp = library("numpy")
    factor = xp.tril(library("lax.linalg").cholesky(hermitian(x), symmetrize_input=False))
    return factor, not_finite(xp, x, factor)


def lu(library: Any, x: Any) -> tuple[Any, Any, Any]:
    """Packed factors, the order of the rows, and whether the permutation is odd."""
    xp = library("numpy")
    n = x.shape[-1]
    if not n:
        return x, xp.zeros(x.shape[:-1], "int64"), xp.zeros(x.shape[:-2], bool)
    factors, pivots, order = library("lax.linalg").lu(x)
    odd = (pivots != xp.arange(n)).sum(axis=-1) % 2 == 1
    return factors, order.astype("int64"), odd


def _singular(xp: Any, factors: Any) -> Any:
    return (xp.diagonal(factors, axis1=-2, axis2=-1) == 0).any()


def lu_factor(library: Any, a: Any) -> Any:
    """Packed factors, and the order of the rows in place of pivots; opaque except to `lu_solve`."""
    xp = library("numpy")
    factors, order, _ = lu(library, a)
    return factors, order, not_finite(xp, a) | _singular(xp, factors)


def lu_solve(library: Any, a: Any, factors: Any, order: Any, b: Any, *, adjoint: bool) -> Any:
    """The solution from the factors."""
    if 0 in b.shape:
        return b
    xp = library("numpy")
    if not adjoint:
        b = xp.take_along_axis(b, order[..., None], axis=-2)
        return _triangular(library, factors, _triangular(library, factors, b, True, True, False), False, False, False)
    y = _triangular(library, factors, _triangular(library, factors, b, False, False, True), True, True, True)
    return xp.take_along_axis(y, xp.argsort(order, axis=-1)[..., None], axis=-2)


def _triangular(library: Any, a: Any, b: Any, lower: bool, unit: bool, adjoint: bool) -> Any:
    return library("lax.linalg").triangular_solve(
        a, b, left_side=True, lower=lower, unit_diagonal=unit, transpose_a=adjoint, conjugate_a=adjoint
    )


def solve(library: Any, a: Any, b: Any) -> Any:
    """Solution by LU factors."""
    factors, order, failed = lu_factor(library, a)
    return lu_solve(library, a, factors, order, b, adjoint=False), failed


def solve_triangular(library: Any, a: Any, b: Any, *, lower: bool, unit: bool, adjoint: bool) -> Any:
    """Solution by substitution."""
    xp = library("numpy")
    failed = xp.asarray(False) if unit else _singular(xp, a)
    return (b if 0 in b.shape else _triangular(library, a, b, lower, unit, adjoint)), failed


def inv(library: Any, x: Any, *, what: str) -> Any:
    """Inverse by LU factors."""
    xp = library("numpy")
    return solve(library, x, xp.broadcast_to(xp.eye(x.shape[-1], dtype=x.dtype), x.shape))


def det(library: Any, x: Any) -> Any:
    """Determinant by LU factors."""
    xp = library("numpy")
    factors, _, odd = lu(library, x)
    product = xp.diagonal(factors, axis1=-2, axis2=-1).prod(axis=-1)
    return xp.where(odd, -product, product)


def slogdet(library: Any, x: Any) -> Any:
    """Sign and logarithm by LU factors."""
    xp = library("numpy")
    factors, _, odd = lu(library, x)
    pivots = xp.diagonal(factors, axis1=-2, axis2=-1)
    sign = xp.sign(pivots).prod(axis=-1)
    return xp.where(odd, -sign, sign), xp.log(xp.abs(pivots)).sum(axis=-1)
