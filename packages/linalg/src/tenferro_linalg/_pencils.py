"""Eigenvalues of matrix pencils: a Hermitian with a positive definite matrix, or two general matrices.

With the Cholesky factor ``B = L L*`` the three problem types of LAPACK become that of one Hermitian matrix C::

    A v = w B v:  C = L^-1 A L^-*,  v = L^-* y        A B v = w v:  C = L* A L,  v = L^-* y
    B A v = w v:  C = L* A L,  v = L y
"""

from __future__ import annotations

from typing import Any, NamedTuple

from tenferro_linalg._algebra import adjoint, mm, sym
from tenferro_linalg._cholesky import cholesky_
from tenferro_linalg._operands import common, flag, matrices, show, stacked
from tenferro_linalg._solve import solve_triangular_
from tenferro_runtime.extension import ShapeError
from tenferro_tensor import broadcast_shapes
from tenferro_tensor_core import ask


class Pencil(NamedTuple):
    """A generalised problem, reduced to one matrix.

    Attributes:
        matrix: the Hermitian matrix C.
        factor: the Cholesky factor L.
        kind: 1, 2 or 3.
    """

    matrix: Any
    factor: Any
    kind: int

    def vectors(self, y: Any) -> Any:
        """Eigenvectors of the problem from those of C."""
        return mm(self.factor, y) if self.kind == 3 else _solved(self.factor, y, adjoint=True)


def pair(what: str, a: Any, b: Any) -> tuple[Any, Any]:
    """Two stacks of square matrices, converted to one size, dtype and batch shape."""
    a, b = common(matrices(what, a, square=True), matrices(what, b, square=True))
    if not ask(a.spec.shape[-1], "==", b.spec.shape[-1]):
        raise ShapeError(
            f"{what} takes two matrices of one size, got shapes {show(a.spec.shape)} and {show(b.spec.shape)}",
            shapes=(a.spec.shape, b.spec.shape),
        )
    batch = broadcast_shapes(a.spec.shape[:-2], b.spec.shape[:-2])
    return stacked(a, batch), stacked(b, batch)


def hermitian_pencil(what: str, a: Any, b: Any, kind: int) -> Pencil:
    """The problem of a Hermitian matrix and a positive definite matrix."""
    flag(what, "type", kind, (1, 2, 3))
    a, b = pair(what, a, b)
    factor, a = cholesky_(b), sym(a)
    if kind == 1:
        half = _solved(factor, a)
        return Pencil(_solved(factor, adjoint(half)), factor, kind)
    return Pencil(mm(adjoint(factor), a, factor), factor, kind)


def _solved(factor: Any, b: Any, adjoint: bool = False) -> Any:
    return solve_triangular_(factor, b, lower=True, unit=False, adjoint=adjoint)
