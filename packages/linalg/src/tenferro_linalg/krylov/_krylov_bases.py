"""Orthonormal bases of Krylov spaces, and the matrix of an operator on them."""

from __future__ import annotations

from typing import Any

import tenferro_runtime as tr
from tenferro_linalg.krylov._conjugate_gradients import Apply, length, ratio
from tenferro_linalg.krylov._generalised_residuals import orthogonalised
from tenferro_tensor_core import DimLike, DType


def unit(x: Any) -> Any:
    """Normalise a vector; zero stays zero."""
    size = length(x)
    return tr.astype(ratio(tr.ones_like(size), size), x.dtype) * x


def noise(n: DimLike, dtype: DType, seed: Any) -> Any:
    """A pseudo-random vector of numbers between -1/2 and 1/2, determined by the seed."""
    waves = tr.sin((tr.arange(n, dtype="float64") + 1) * 12.9898 + seed * 78.233) * 43758.5453
    if not tr.isdtype(dtype, "complex floating"):
        return tr.astype(waves - tr.floor(waves) - 0.5, dtype)
    other = waves * 7.31
    return tr.astype(waves - tr.floor(waves) - 0.5 + 1j * (other - tr.floor(other) - 0.5), dtype)


def extended(apply: Apply, basis: Any, matrix: Any, start: Any, seed: Any) -> tuple[Any, Any]:
    """Complete a basis, and the matrix of the operator on it.

    Where the space is invariant, the basis continues with a vector outside it.

    Args:
        apply: the operator.
        basis: m + 1 vectors as rows, orthonormal up to the one at `start`, and zero after it.
        matrix: m + 1 rows and m columns, of which those before `start` are known.
        start: number of known columns.
        seed: seed of the vectors outside the space.
    """
    steps = matrix.shape[1]

    def step(state: Any) -> Any:
        basis, matrix, j = state
        h, vector, left = orthogonalised(basis, apply(basis[j]))
        vector = tr.cond(left > 0, lambda: vector, lambda: unconnected(basis, seed + j))
        column = h.at[j + 1].set(tr.astype(left, h.dtype))
        return basis.at[j + 1].set(vector), matrix.at[:, j].set(column), j + 1

    basis, matrix, _ = tr.while_loop(lambda state: state[2] < steps, step, (basis, matrix, start))
    return basis, matrix


def unconnected(basis: Any, seed: Any) -> Any:
    """A unit vector orthogonal to a basis; zero if the basis is complete."""
    return orthogonalised(basis, noise(basis.shape[1], basis.dtype, seed))[1]
