"""Diagonals as vectors and as matrices, and triangles of ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tenferro_tensor import catalog
from tenferro_tensor.backends import place_of
from tenferro_tensor.direct import direct
from tenferro_tensor.functions import _numpy_forms
from tenferro_tensor.functions._listed import listed
from tenferro_tensor.functions.linear_algebra import diagonal
from tenferro_tensor.functions.manipulation import ravel
from tenferro_tensor.operands import own, positions, size_of, whole
from tenferro_tensor.origins import noted
from tenferro_tensor_core import Dim, ShapeError, bool_, dim_max, float64, int64
from tenferro_tensor_core import dtype as known_dtype

if TYPE_CHECKING:
    from tenferro_tensor._array import Array

__all__ = ["diag", "diagflat", "tri"]


def __dir__() -> list[str]:
    return __all__.copy()


@direct(_numpy_forms.diag)
def diag(x: Any, /, k: int = 0) -> Array:
    """Matrix with a vector on a diagonal, or the diagonal of a matrix.

    Args:
        x: a vector or a matrix.
        k: index of the diagonal; 0 is the main one, positive indices are above it.

    Returns:
        A matrix for a vector, a vector for a matrix, in the dtype of `x`.

    Raises:
        ShapeError: `x` is neither a vector nor a matrix.

    See also:
        `diagonal`, for stacks of matrices.

    >>> tr.diag(tr.asarray([1, 2]))
    Tensor([[1, 0],
            [0, 2]])
    >>> tr.diag(tr.asarray([[1, 2], [3, 4]]), 1)
    Tensor([2])
    """
    x = listed(x)
    k = whole("diag", "k", k)
    if x.spec.ndim == 2:
        return diagonal(x, offset=k)
    if x.spec.ndim != 1:
        raise ShapeError(f"diag takes a vector or a matrix, got {x.spec!r}; use diagonal or ravel", shape=x.spec.shape)
    n = x.spec.shape[0] + abs(k)
    column = catalog.pad(x, False if x.spec.dtype is bool_ else 0, low=(0,), high=(abs(k),), interior=(0,))
    # An element keeps its row on an upper diagonal, and its column on a lower one.
    wide = catalog.broadcast_in_dim(column, shape=(n, n), dims=(0 if k >= 0 else 1,))
    inside = catalog.eq(catalog.add(positions(wide, 0), k), positions(wide, 1))
    return catalog.select(inside, wide, False if x.spec.dtype is bool_ else 0)


@direct(_numpy_forms.diagflat)
def diagflat(x: Any, /, k: int = 0) -> Array:
    """Matrix with the flattened elements of `x` on a diagonal.

    Args:
        x: array of any shape and dtype.
        k: index of the diagonal; 0 is the main one, positive indices are above it.

    Returns:
        A square matrix of the dtype of `x`.

    >>> tr.diagflat(tr.asarray([[1, 2]]))
    Tensor([[1, 0],
            [0, 2]])
    """
    return diag(ravel(listed(x)), k)


def tri(n_rows: Any, n_cols: Any = None, k: int = 0, *, dtype: Any = None, device: Any = None) -> Array:
    """Matrix with ones on and below a diagonal, and zeros above it.

    Args:
        n_rows: number of rows.
        n_cols: number of columns; by default `n_rows`.
        k: index of the diagonal; 0 is the main one, positive indices are above it.
        dtype: dtype of the result; float64 by default.
        device: device or its name; by default that of the enclosing scope, else the CPU.

    Returns:
        Array of shape (n_rows, n_cols).

    >>> tr.tri(2, 3)
    Tensor([[1., 0., 0.],
            [1., 1., 0.]])
    """
    dtype = float64 if dtype is None else known_dtype(dtype)
    rows = size_of("tri", "n_rows", n_rows)
    cols = rows if n_cols is None else size_of("tri", "n_cols", n_cols)
    k = whole("tri", "k", k)
    if not isinstance(rows, Dim) and not isinstance(cols, Dim):
        return noted(own(np.tri(rows, cols, k, dtype), place_of(device)))
    shape, place = (dim_max(rows, 0), dim_max(cols, 0)), place_of(device)
    down, across = (catalog.iota(shape=shape, dtype=int64, axis=axis, place=place) for axis in (0, 1))
    return catalog.convert(catalog.ge(catalog.add(down, k), across), dtype=dtype)
