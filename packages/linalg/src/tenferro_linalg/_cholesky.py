"""Cholesky factor of Hermitian positive definite matrices.

For ``A = L L*``, ``S = L^-1 dA L^-*`` and ``Phi(S) = strict lower(S) + Re diag(S) / 2``::

    dL = L Phi(S)        A' = L^-* (Phi(L* L') + h.c.) L^-1 / 2

(primes are cotangents; Murray, arXiv 1602.07527). Only the Hermitian part of the operand counts.
"""

from typing import Any

from tenferro_linalg._algebra import adjoint, hermitian_from_lower, mm, part, re, sym, to
from tenferro_linalg._bases import hermitian
from tenferro_linalg._operands import matrices, require_inexact, require_square
from tenferro_linalg._small import small_first
from tenferro_linalg._solve import solve_triangular_
from tenferro_runtime.extension import General, Registry, Spec, primitive
from tenferro_tensor import Array
from tenferro_tensor_core.tracebacks import boundary


@boundary
def cholesky(x: Any, /, *, upper: bool = False) -> Array:
    """Cholesky factor of Hermitian positive definite matrices: lower triangular L with ``A = L @ L*``.

    Args:
        x: Hermitian positive definite matrices (..., n, n); of other matrices, the Hermitian part is factored.
        upper: return ``L*``, which is upper triangular.

    Returns:
        Triangular matrices (..., n, n) of the dtype of `x`, with a positive diagonal.

    Raises:
        NumericalError: an entry is not finite, or a matrix is not positive definite.
        ShapeError: the matrices are not square.

    See also: `cho_factor`, `cholesky_solve`.

    >>> cholesky([[4.0, 2.0], [2.0, 5.0]])
    Tensor([[2., 0.],
            [1., 2.]])
    """
    factor = cholesky_(matrices("cholesky", x, square=True))
    return adjoint(factor) if upper else factor


@primitive(family="tenferro-linalg.cholesky.v1", extension="linalg")
def cholesky_(x: Spec) -> Spec:
    """Lower Cholesky factor of the Hermitian part."""
    require_inexact("cholesky", x)
    require_square("cholesky", x)
    return x


def _half(s: Any) -> Any:
    return part(s, "strict_lower") + to(part(re(s), "diagonal"), s.dtype) * 0.5


def _solved(factor: Any, b: Any, adjoint: bool = False) -> Any:
    return solve_triangular_(factor, b, lower=True, unit=False, adjoint=adjoint)


def _jvp(primals: Any, tangents: Any, outs: Any) -> tuple[Any]:
    (factor,), (dx,) = outs, tangents
    half = _solved(factor, sym(dx))
    return (mm(factor, _half(_solved(factor, adjoint(half)))),)


def _vjp(primals: Any, outs: Any, cotangents: Any) -> tuple[Any]:
    (factor,), (g,) = outs, cotangents
    inner = hermitian_from_lower(mm(adjoint(factor), g))
    half = _solved(factor, inner, adjoint=True)
    return (_solved(factor, adjoint(half), adjoint=True) * 0.5,)


def register(registry: Registry) -> None:
    """Kernel and rule of the primitive of this module."""
    from tenferro_linalg._providers import kernels

    kernels(
        registry,
        cholesky_,
        lambda la, ins, outs: small_first(
            la, "cholesky", ins, lambda x: la.cholesky(hermitian(la.finite("cholesky", x)))
        ),
    )
    registry.rule(cholesky_, General(jvp=_jvp, vjp=_vjp))
