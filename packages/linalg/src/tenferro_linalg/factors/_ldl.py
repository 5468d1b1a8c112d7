"""LDL decomposition of Hermitian (or symmetric) indefinite matrices, with blocks of size 1 and 2 (Bunch and Kaufman).

At fixed pivots, with ``A[p][:, p] = L D L*`` and ``S = L^-1 dA[p][:, p] L^-*``::

    dD = blocks(S)        dL = L X,  X = (S below the blocks) D^-1
"""

from typing import Any, NamedTuple

import numpy as np

from tenferro_linalg._algebra import adjoint, identity_like_, mm, part, swap
from tenferro_linalg._errors import RankError
from tenferro_linalg._fallible import register_formula
from tenferro_linalg._operands import matrices, require_inexact, require_square
from tenferro_linalg._solve import solve_, solve_triangular_
from tenferro_linalg.factors._lu import taken
from tenferro_runtime.extension import Array, General, Registry, Spec, primitive
from tenferro_tensor.catalog import argsort, bitwise_or, ne, select, stop_gradient
from tenferro_tensor_core import int64
from tenferro_tensor_core.tracebacks import boundary


class LDLResult(NamedTuple):
    """LDL factors.

    Attributes:
        lu: a unit triangular factor with its rows permuted.
        d: the block diagonal factor.
        perm: the order of rows that makes the first factor triangular.
    """

    lu: Array
    d: Array
    perm: Array


@boundary
def ldl(x: Any, /, lower: bool = True, hermitian: bool = True) -> LDLResult:
    """LDL decomposition ``A = lu @ d @ lu*`` of Hermitian indefinite matrices (Bunch and Kaufman 1977).

    Derivatives are taken at fixed pivots.

    Args:
        x: Hermitian matrices (..., n, n); of other matrices, the Hermitian part.
        lower: whether ``lu[perm]`` is lower or upper triangular.
        hermitian: ``False`` for complex symmetric matrices, with transposes in place of adjoints.

    Returns:
        ``lu`` (..., n, n), of which ``lu[perm]`` is unit triangular; Hermitian ``d`` (..., n, n) with diagonal blocks
        of size 1 or 2; ``perm`` (..., n), int64.

    Raises:
        NumericalError: an entry is not finite.
        RankError: (derivative) a matrix is singular.
        UnsupportedError: the data are on an accelerator.

    >>> ldl([[4.0, 2.0], [2.0, 5.0]]).d
    Tensor([[4., 0.],
            [0., 4.]])
    """
    x = matrices("ldl", x, square=True)
    turn = adjoint if hermitian or not x.spec.cplx else swap
    l, d, perm = ldl_((x + turn(x)) * 0.5, lower=bool(lower), hermitian=bool(hermitian))
    return LDLResult(taken(l, argsort(perm, axis=perm.ndim - 1, descending=False)), d, perm)


@primitive(family="tenferro-linalg.ldl.v1", extension="linalg")
def ldl_(x: Spec, *, lower: bool, hermitian: bool) -> tuple[Spec, Spec, Spec]:
    """The triangular factor, the block diagonal one, and the order of the rows."""
    require_inexact("ldl", x)
    require_square("ldl", x)
    return x, x, x.with_(shape=x.shape[:-1], dtype=int64)


@primitive(family="tenferro-linalg.ldl_regular.v1", extension="linalg")
def ldl_regular_(d: Spec) -> Spec:
    """Return `d` after testing that no diagonal block vanishes."""
    return d


def _kernel(la: Any, ins: Any, outs: Any, *, lower: bool, hermitian: bool) -> Any:
    return lambda x: la.ldl(la.finite("ldl", x), lower, hermitian)


def _vanishing(xp: Any, d: Any) -> tuple[Any, Any]:
    return d, (d == 0).all(axis=-1)


def _regular_kernel(la: Any, ins: Any, outs: Any) -> Any:
    def run(d: Any) -> Any:
        empty = la.local(_vanishing(la.xp, d)[1])
        if empty.any():
            *batch, i = (int(j) for j in np.argwhere(empty)[0])
            of = f" of matrix {tuple(batch)} of the stack" if batch else ""
            raise RankError(
                f"ldl: pivot {i}{of} is exactly zero, and the factors have no derivative there; use a function of the "
                "matrix that needs no factors, or regularise the matrix",
                pivot=i,
                batch=tuple(batch),
            )
        return d

    return run


def _jvp(primals: Any, tangents: Any, outs: Any, *, lower: bool, hermitian: bool) -> tuple[Any, Any, None]:
    (da,), (l, d, perm) = tangents, outs
    turn = adjoint if hermitian or not da.spec.cplx else swap
    order = stop_gradient(perm)
    dp = swap(taken(swap(taken(da, order)), order))

    def over(x: Any) -> Any:  # L^-1 x
        return solve_triangular_(l, x, lower=lower, unit=True, adjoint=False)

    s = over(turn(over(turn(dp))))
    blocks = stop_gradient(bitwise_or(ne(d, 0), ne(identity_like_(d), 0)))
    dd = select(blocks, s, 0)
    outside = s - dd
    x = part(outside, "strict_lower") if lower else outside - part(outside, "lower")
    x = swap(solve_(swap(ldl_regular_(d)), swap(x)))
    return mm(l, x), dd, None


def register(registry: Registry) -> None:
    """Kernels and rules of the primitives of this module."""
    from tenferro_linalg._providers import kernels

    kernels(registry, ldl_, _kernel)
    kernels(registry, ldl_regular_, _regular_kernel, blas=False)
    register_formula(registry, ldl_regular_, _vanishing)
    registry.rule(ldl_, General(jvp=_jvp))
    registry.rule(
        ldl_regular_,
        General(
            jvp=lambda primals, tangents, outs: tangents,
            vjp=lambda primals, outs, cotangents: cotangents,
        ),
    )
