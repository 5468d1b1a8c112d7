"""The derivative of an invariant subspace, valid for multiplets within it.

Let the orthonormal rows Q span an invariant subspace of A, and P project onto it. The perturbed subspace is spanned by
X = Q + Y, where Y = Y (1 - P) is the root of

    F(Y) = (A X - (A X Q^H) X) (1 - P) + Y P

whose derivative at Y = 0 is Z -> (A Z - T Z) (1 - P) + Z P for Z = Z (1 - P), with T = A Q^H in the basis. It is
regular where no eigenvalue of T equals one outside: equal ones within the subspace do no harm, and the basis computed
from X by a small decomposition inherits the derivative of that decomposition.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tenferro_runtime as tr
from tenferro_linalg.krylov._linear import implicit
from tenferro_runtime.equations import closed

Rows = Callable[[Any], Any]
"""An operator on each row."""


def inner_products(x: Any, y: Any) -> Any:
    """The matrix of inner products of the rows of x with those of y."""
    return tr.conj(x) @ tr.matrix_transpose(y)


def outside(basis: Any, x: Any) -> Any:
    """Remove the components of rows along the orthonormal rows of a basis."""
    return x - tr.matrix_transpose(inner_products(basis, x)) @ basis


def moved(apply: Rows, basis: Any, pushed: Callable[[Any], Any], pulled: Callable[[Any], Any]) -> Any:
    """Rows that span the invariant subspace: the basis, with the derivative of the subspace.

    Args:
        apply: the operator on rows, of any level.
        basis: orthonormal rows that span the subspace, without a derivative.
        pushed: solves ``(A Z - T Z)(1 - P) = R (1 - P)`` for rows Z = Z (1 - P).
        pulled: solves the adjoint equation.
    """

    def equation(ys: list[Any]) -> list[Any]:
        y = outside(basis, ys[0])
        x = basis + y
        image = apply(x)
        inside = tr.matrix_transpose(inner_products(basis, image))
        return [outside(basis, image - inside @ x) + (ys[0] - y)]

    def solver(solve: Callable[[Any], Any]) -> Callable[[list[Any]], list[Any]]:
        def solved(xs: list[Any]) -> list[Any]:
            rhs = xs[1]
            beside = outside(basis, rhs)
            return [outside(basis, solve(beside)) + (rhs - beside)]

        return solved

    spec = basis.spec
    (y,) = implicit(
        closed("an invariant subspace", equation, [spec]),
        closed("an invariant subspace", lambda ys: [ys[0]], [spec]),
        closed("an invariant subspace", solver(pushed), [spec, spec]),
        closed("an invariant subspace", solver(pulled), [spec, spec]),
        tr.zeros(spec.shape, dtype=spec.dtype),
    )
    return basis + outside(basis, y)
