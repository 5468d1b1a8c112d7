"""LU factorizations of stacks of square matrices by the batched routines of cuBLAS, one call for a whole stack."""

from __future__ import annotations

from math import prod
from typing import Any, Final

import numpy as np

_LETTERS: Final = {"float32": "s", "float64": "d", "complex64": "c", "complex128": "z"}

LARGE: Final = 1 << 16
"""Entries of a matrix per matrix of the stack above which one call for each is faster, as CuPy has found."""


class CublasStacks:
    """Factors and solves stacks; the routines take Fortran order, which a transposed copy has.

    Methods take:
        x: matrices (..., n, n).
        lu, pivots: results of `factor`.
        b: right-hand sides (..., n, k), with the batch axes of the matrices.
        adjoint: whether to solve with the adjoint.

    Args:
        xp: CuPy.
    """

    def __init__(self, xp: Any) -> None:
        self._xp = xp

    def serves(self, x: Any) -> bool:
        """Whether this is the way for a stack."""
        m, n = x.shape[-2:]
        count = prod(x.shape[:-2])
        return x.ndim > 2 and m == n and count * LARGE >= n * n

    def factor(self, x: Any) -> tuple[Any, Any]:
        """Packed factors, and the row exchanges from 0."""
        xp, (*batch, n, _), count = self._xp, x.shape, prod(x.shape[:-2])
        columns = xp.array(x.swapaxes(-1, -2), order="C")
        pivots, info = xp.empty((*batch, n), np.int32), xp.empty((count,), np.int32)
        if columns.size:
            matrices = self._pointers(columns, count)
            self._routine("getrfBatched", x)(
                xp.cuda.get_cublas_handle(), n, matrices.data.ptr, n, pivots.data.ptr, info.data.ptr, count
            )
        return columns.swapaxes(-1, -2), pivots.astype(np.int64) - 1

    def solve(self, lu: Any, pivots: Any, b: Any, adjoint: bool) -> Any:
        """Solutions."""
        xp, n, k, count = self._xp, lu.shape[-1], b.shape[-1], prod(lu.shape[:-2])
        columns, solved = xp.ascontiguousarray(lu.swapaxes(-1, -2)), xp.array(b.swapaxes(-1, -2), order="C")
        if solved.size:
            exchanges, code = (pivots + 1).astype(np.int32, order="C"), np.zeros(1, np.int32)
            matrices, sides = self._pointers(columns, count), self._pointers(solved, count)
            self._routine("getrsBatched", lu)(
                xp.cuda.get_cublas_handle(), xp.cuda.cublas.CUBLAS_OP_C if adjoint else xp.cuda.cublas.CUBLAS_OP_N,
                n, k, matrices.data.ptr, n, exchanges.data.ptr, sides.data.ptr, n, code.ctypes.data, count,
            )  # fmt: skip
        return solved.swapaxes(-1, -2)

    def _pointers(self, stack: Any, count: int) -> Any:
        """Addresses of the matrices of a contiguous stack, on the device."""
        return self._xp.arange(count, dtype=np.uint64) * np.uint64(stack.nbytes // count) + np.uint64(stack.data.ptr)

    def _routine(self, name: str, x: Any) -> Any:
        return getattr(self._xp.cuda.cublas, _LETTERS[x.dtype.name] + name)
