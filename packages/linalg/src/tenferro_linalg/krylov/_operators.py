"""Operators as functions of vectors: matrices, functions, and SciPy's sparse matrices and linear operators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import tenferro_runtime as tr
from tenferro_linalg._operands import inexact, show
from tenferro_linalg.krylov._spaces import FlatSpace
from tenferro_linalg.sparse import SparseArray, sparse_array
from tenferro_linalg.sparse._array import is_scipy
from tenferro_runtime.equations import Closed, adjoint, closed
from tenferro_runtime.extension import REGISTRY, ArgumentError, ShapeError, UnsupportedError
from tenferro_runtime.ir import applied, here
from tenferro_tensor import Array
from tenferro_tensor_core import DType

Function = Callable[[Any], Any]


class LinearOperator(NamedTuple):
    """A linear function and its adjoint.

    Attributes:
        matvec: a linear function of arrays in any containers.
        rmatvec: its adjoint A^H; if absent, ``tenferro_ad`` derives it from `matvec` when needed.

    >>> import tenferro_runtime as tr
    >>> scale = LinearOperator(lambda x: 2.0 * x, lambda y: 2.0 * y)
    >>> tr.linalg.lsqr(scale, tr.asarray([2.0, 4.0])).x
    Tensor([1., 2.])
    """

    matvec: Function
    rmatvec: Function | None = None


def known(A: Any) -> Any:
    """An operator, with SciPy's sparse matrices converted."""
    return sparse_array(A) if is_scipy(A) else A


def is_matrix(A: Any) -> bool:
    """Whether an operator is given by its entries."""
    return isinstance(A, (Array, np.ndarray, SparseArray))


def as_operator(A: Any, what: str) -> tuple[LinearOperator, DType | None]:
    """An operator as functions, and the dtype of its entries if it has any.

    Raises:
        ArgumentError: it is neither a matrix nor a function.
        ShapeError: a matrix has more than two axes.
    """
    A = known(A)
    if isinstance(A, SparseArray):
        return LinearOperator(lambda x: A @ x, lambda y: A.mH @ y), A.dtype
    if is_matrix(A):
        a = inexact(A)
        if a.ndim != 2:
            raise ShapeError(
                f"{what} takes one matrix{here()}, got shape {show(a.spec.shape)}; use vmap for a batch",
                shape=a.spec.shape,
            )
        return LinearOperator(lambda x: a @ x, lambda y: tr.conj(tr.matrix_transpose(a)) @ y), a.spec.dtype
    if isinstance(A, LinearOperator):
        return A, None
    if callable(A):
        return LinearOperator(A), None
    raise ArgumentError(
        f"{what} takes a matrix, a function or a LinearOperator{here()}, got {A!r:.80}", operator=repr(A)[:80]
    )


class RecordedOperator:
    """An operator between spaces of flat vectors, recorded once.

    Attributes:
        program: the operator, and the outer values that it captures.

    Args:
        operator: the operator to record.
        domain: the space that it acts on.
        image: the space of its results.
        what: its name in messages.
        two_sided: whether the adjoint will be needed.
    """

    def __init__(
        self, operator: LinearOperator, domain: FlatSpace, image: FlatSpace, what: str, *, two_sided: bool
    ) -> None:
        self.domain, self.image, self.what = domain, image, what
        matvec = operator.matvec

        def forward(xs: list[Any]) -> list[Any]:
            return [image.flat(matvec(domain.tree_of(xs[0])), f"the result of the operator of {what}")]

        self.program = closed(f"the operator of {what}", forward, [domain.spec])
        # Recorded here, because an inner trace must not create values of the current one.
        self._fixed = [tr.stop_gradient(v) if v.spec.inexact else v for v in self.program.captured]
        self._adjoint: Closed | None = None
        rmatvec = operator.rmatvec
        self._known = rmatvec is not None
        if rmatvec is not None and two_sided:

            def backward(ys: list[Any]) -> list[Any]:
                found = rmatvec(image.tree_of(ys[0]))
                return [domain.flat(found, f"the result of the adjoint of the operator of {what}")]

            self._adjoint = closed(f"the adjoint of the operator of {what}", backward, [image.spec])
            self._fixed_adjoint = [tr.stop_gradient(v) if v.spec.inexact else v for v in self._adjoint.captured]

    @property
    def constant(self) -> bool:
        """Whether neither a derivative nor a trace passes through the operator."""
        return not any(v.level for v in self.program.captured)

    def __call__(self, x: Any) -> Any:
        """Apply the operator to a vector."""
        return applied(self.program.program, [*self.program.captured, x])[0]

    def fixed(self, x: Any) -> Any:
        """Apply the operator to a vector, without a derivative with respect to the operator."""
        return applied(self.program.program, [*self._fixed, x])[0]

    def require_adjoint(self) -> None:
        """Raise if the adjoint is not known.

        Raises:
            UnsupportedError: the adjoint was not given, and `tenferro_ad` is not imported to derive it.
        """
        if not self._known and REGISTRY.find("expansion", adjoint) is None:
            raise UnsupportedError(
                f"{self.what} needs the adjoint of the operator{here()}; import tenferro_ad, which derives it, or pass "
                "LinearOperator(matvec, rmatvec)"
            )

    def adjoint(self, y: Any) -> Any:
        """Apply the adjoint operator to a vector; that of a function is derived by `tenferro_ad`."""
        if self._adjoint is None:
            captured = self.program.captured
            return adjoint(*captured, y, program=self.program.program, consts=len(captured))[0]
        return applied(self._adjoint.program, [*self._adjoint.captured, y])[0]

    def fixed_adjoint(self, y: Any) -> Any:
        """Apply the adjoint operator to a vector, without a derivative with respect to the operator."""
        if self._adjoint is None:
            return adjoint(*self._fixed, y, program=self.program.program, consts=len(self._fixed))[0]
        return applied(self._adjoint.program, [*self._fixed_adjoint, y])[0]
