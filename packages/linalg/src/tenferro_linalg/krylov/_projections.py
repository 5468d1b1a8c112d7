"""`lanczos` and `arnoldi`: the projection of an operator onto its Krylov space, differentiated through the steps."""

from __future__ import annotations

from typing import Any, NamedTuple

import tenferro_runtime as tr
from tenferro_linalg._operands import inexact
from tenferro_linalg.krylov._conjugate_gradients import length
from tenferro_linalg.krylov._operators import as_operator, known
from tenferro_linalg.krylov._spaces import space_of
from tenferro_runtime.extension import ArgumentError, Array
from tenferro_runtime.ir import here
from tenferro_tensor_core import finfo
from tenferro_tensor_core.tracebacks import boundary


class ArnoldiResult(NamedTuple):
    """An orthonormal basis of a Krylov space, and the operator on it.

    Attributes:
        basis: m + 1 vectors, as rows.
        matrix: the Hessenberg matrix H (m + 1, m), with ``A Q = Q' H`` for the first m vectors Q and all vectors Q',
            both as columns.
    """

    basis: Array
    matrix: Array


class LanczosResult(NamedTuple):
    """An orthonormal basis of the Krylov space of a Hermitian operator, and the operator on it.

    Attributes:
        basis: m + 1 vectors, as rows.
        diagonal: m real numbers.
        beside: m real off-diagonal numbers; the last couples the space to the last vector.
    """

    basis: Array
    diagonal: Array
    beside: Array


@boundary
def arnoldi(A: Any, v0: Any, m: int) -> ArnoldiResult:
    """Project an operator onto the Krylov space of a vector, by m steps of Arnoldi (1951).

    Every vector is orthogonalised twice. The derivative is that of the steps; it does not exist if a step ends in an
    invariant subspace, where lengths are zero.

    Args:
        A: a matrix (n, n), dense or sparse, or a linear function of arrays in the containers of `v0`.
        v0: initial vector, arrays in any containers; the basis is that of the flat vector.
        m: number of steps.

    Returns:
        Orthonormal basis (m + 1, n) as rows, and the Hessenberg matrix (m + 1, m).

    Raises:
        ArgumentError: `m` is not an integer of at least 1.

    See also: `lanczos`, `eigs`.

    >>> Q, H = tr.linalg.arnoldi(tr.asarray([[1.0, 2.0], [0.0, 3.0]]), [0.0, 2.0], 1)
    >>> Q, H
    (Tensor([[0., 1.],
            [1., 0.]]), Tensor([[3.],
            [2.]]))
    """
    basis, matrix = _steps(A, v0, m, "arnoldi")
    return ArnoldiResult(basis, matrix)


@boundary
def lanczos(A: Any, v0: Any, m: int) -> LanczosResult:
    """Project a Hermitian operator onto the Krylov space of a vector, by m steps of Lanczos (1950).

    Every vector is orthogonalised against all others, as in `arnoldi`.

    Args:
        A: a Hermitian matrix (n, n), dense or sparse, or such a function of arrays in the containers of `v0`.
        v0: initial vector, arrays in any containers; the basis is that of the flat vector.
        m: number of steps.

    Returns:
        Orthonormal basis (m + 1, n) as rows, and the real diagonal (m,) and off-diagonal (m,) of the tridiagonal
        matrix.

    Raises:
        ArgumentError: `m` is not an integer of at least 1.

    See also: `eigsh`.

    >>> tr.linalg.lanczos(tr.asarray([[1.0, 2.0], [2.0, 3.0]]), [0.0, 2.0], 1)[1:]
    (Tensor([3.]), Tensor([2.]))
    """
    basis, matrix = _steps(A, v0, m, "lanczos")
    real = tr.real(matrix) if matrix.spec.cplx else matrix
    return LanczosResult(basis, tr.linalg.diagonal(real), tr.linalg.diagonal(real[1:]))


def _steps(A: Any, v0: Any, m: int, what: str) -> tuple[Any, Any]:
    if m.__class__ is not int or m < 1:
        raise ArgumentError(f"{what} takes an integer of at least 1 as m{here()}, got {m!r}")
    operator, dtype = as_operator(known(A), what)
    space, start = space_of(inexact(v0) if isinstance(v0, list) else v0, f"the vector v0 of {what}", dtype)
    rows, columns = [start / tr.astype(length(start), space.dtype)], []
    for j in range(m):
        w = space.flat(operator.matvec(space.tree_of(rows[-1])), f"the result of the operator of {what}")
        basis = tr.stack(rows)
        h = tr.conj(basis) @ w
        w = w - h @ basis
        again = tr.conj(basis) @ w
        w = w - again @ basis
        left = length(w)
        there = left > finfo(left.dtype).eps * tr.max(tr.abs(h))  # otherwise it is rounding error
        size = tr.astype(tr.where(there, left, 0.0), space.dtype)
        rows.append(tr.where(there, w / tr.where(there, size, 1.0), 0.0))
        columns.append(tr.concat([h + again, size[None], tr.zeros((m - 1 - j,), dtype=space.dtype)]))
    return tr.stack(rows), tr.stack(columns, axis=1)
