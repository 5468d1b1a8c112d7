"""Schur factors of coefficients, computed once for a solution and all its derivatives."""

from __future__ import annotations

from typing import Any

import numpy as np

from tenferro_linalg._operands import require_inexact, require_square
from tenferro_runtime.extension import Inactive, NumericalError, Registry, Spec, primitive
from tenferro_tensor_core import complex_of


@primitive(family="tenferro-linalg.schur_factors.v1", extension="linalg")
def schur_factors_(a: Spec, *, what: str, triangular: bool) -> tuple[Spec, Spec]:
    """Opaque factors Q and T with ``a = Q T Q*`` for the solvers; complex if T must be `triangular`."""
    require_inexact(what, a)
    require_square(what, a)
    dtype = complex_of(a.dtype) if triangular else a.dtype
    return a.with_(dtype=dtype), a.with_(dtype=dtype)


def _kernel(la: Any, ins: Any, outs: Any, *, what: str, triangular: bool) -> Any:
    dtype = outs[0].dtype

    def run(a: Any) -> Any:
        t, q = la.schur(la.finite(what, a).astype(dtype, copy=False), what)
        return q, t

    return run


def common_eigenvalues(what: str, index: tuple[int, ...], relation: str) -> NumericalError:
    """The error for an equation whose solution is not unique."""
    where = f"matrix {index} of the stack" if index else "the matrix"
    return NumericalError(
        f"{what}: the equation of {where} is singular: two eigenvalues {relation}, up to rounding; "
        "shift a coefficient by a multiple of the identity",
        index=index,
    )


def without_overflow(what: str, x: Any) -> Any:
    """Return a solution after checking that it is finite."""
    good = np.isfinite(x)
    if not good.all():
        index = tuple(int(k) for k in np.argwhere(~good)[0][: x.ndim - 2])
        where = f"matrix {index} of the stack" if index else "the matrix"
        raise NumericalError(f"{what}: the solution for {where} overflows; rescale the coefficients", index=index)
    return x


def indices(x: Any) -> Any:
    """Indices of the matrices of a stack."""
    return np.ndindex(x.shape[:-2])


def register(registry: Registry) -> None:
    """Kernel and rule of the primitive of this module."""
    from tenferro_linalg._providers import kernels

    kernels(registry, schur_factors_, _kernel, devices=False)
    # The solution also takes the matrix itself; derivatives go there rather than through the factors.
    registry.rule(schur_factors_, Inactive())
