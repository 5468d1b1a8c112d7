"""Index arrays that depend only on shapes: diagonals, triangles and grids."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np

from tenferro_tensor import catalog
from tenferro_tensor.backends import place_of
from tenferro_tensor.functions._listed import listed
from tenferro_tensor.functions.creation import arange, full
from tenferro_tensor.functions.joining import stack
from tenferro_tensor.functions.searching import nonzero
from tenferro_tensor.operands import own, shape_of, size_of, whole
from tenferro_tensor.origins import noted
from tenferro_tensor_core import ArgumentError, Dim, ShapeError, ask, int64, specialise
from tenferro_tensor_core import dtype as known_dtype

if TYPE_CHECKING:
    from tenferro_tensor._array import Array

__all__ = [
    "diag_indices",
    "diag_indices_from",
    "indices",
    "ix_",
    "mask_indices",
    "tril_indices",
    "tril_indices_from",
    "triu_indices",
    "triu_indices_from",
]


def __dir__() -> list[str]:
    return __all__.copy()


def diag_indices(n: Any, ndim: int = 2) -> tuple[Array, ...]:
    """Indices of the main diagonal of an array with equal extents.

    Args:
        n: extent of each axis.
        ndim: number of axes.

    Returns:
        A tuple of int64 vectors, one for each axis.

    >>> tr.diag_indices(2)
    (Tensor([0, 1]), Tensor([0, 1]))
    """
    n, ndim = size_of("diag_indices", "n", n), whole("diag_indices", "ndim", ndim)
    if isinstance(n, Dim):
        return tuple([arange(n) for _ in range(ndim)])
    place = place_of(None)
    return tuple([noted(own(np.arange(n), place)) for _ in range(ndim)])


def diag_indices_from(x: Any, /) -> tuple[Array, ...]:
    """Indices of the main diagonal of `x`, whose axes have equal extents.

    Args:
        x: array with at least two axes.

    Returns:
        A tuple of int64 vectors, one for each axis.

    Raises:
        ShapeError: `x` has fewer than two axes, or their extents differ.

    >>> tr.diag_indices_from(tr.zeros((2, 2)))
    (Tensor([0, 1]), Tensor([0, 1]))
    """
    x = listed(x)
    shape = x.spec.shape
    if len(shape) < 2 or not all(ask(d, "==", shape[0]) for d in shape):
        raise ShapeError(f"diag_indices_from needs two or more axes of one extent, got {x.spec!r}", shape=shape)
    return diag_indices(shape[0], len(shape))


def tril_indices(n: Any, k: int = 0, m: Any = None) -> tuple[Array, Array]:
    """Row and column indices of the lower triangle of a matrix: on and below diagonal `k`.

    Their number depends on the extents, so that symbolic extents are specialised.

    Args:
        n: number of rows.
        k: index of the diagonal; 0 is the main one, positive indices are above it.
        m: number of columns; by default `n`.

    Returns:
        A tuple of two int64 vectors.

    >>> tr.tril_indices(2)
    (Tensor([0, 1, 1]), Tensor([0, 0, 1]))
    """
    return _triangle("tril_indices", np.tril_indices, n, k, m)


def triu_indices(n: Any, k: int = 0, m: Any = None) -> tuple[Array, Array]:
    """Row and column indices of the upper triangle of a matrix: on and above diagonal `k`.

    Their number depends on the extents, so that symbolic extents are specialised.

    Args:
        n: number of rows.
        k: index of the diagonal; 0 is the main one, positive indices are above it.
        m: number of columns; by default `n`.

    Returns:
        A tuple of two int64 vectors.

    >>> tr.triu_indices(2)
    (Tensor([0, 0, 1]), Tensor([0, 1, 1]))
    """
    return _triangle("triu_indices", np.triu_indices, n, k, m)


def _triangle(name: str, make: Callable[..., Any], n: Any, k: int, m: Any) -> tuple[Any, Any]:
    rows = specialise(size_of(name, "n", n), f"{name}(n)")
    cols = rows if m is None else specialise(size_of(name, "m", m), f"{name}(m)")
    place = place_of(None)
    down, across = make(rows, whole(name, "k", k), cols)
    return noted(own(down, place)), noted(own(across, place))


def tril_indices_from(x: Any, /, k: int = 0) -> tuple[Array, Array]:
    """Row and column indices of the lower triangle of `x`; see `tril_indices`.

    Args:
        x: a matrix.
        k: index of the diagonal; 0 is the main one, positive indices are above it.

    Returns:
        A tuple of two int64 vectors.

    Raises:
        ShapeError: `x` is not a matrix.

    >>> tr.tril_indices_from(tr.zeros((2, 2)))
    (Tensor([0, 1, 1]), Tensor([0, 0, 1]))
    """
    rows, cols = _matrix_shape("tril_indices_from", x)
    return tril_indices(rows, k, cols)


def triu_indices_from(x: Any, /, k: int = 0) -> tuple[Array, Array]:
    """Row and column indices of the upper triangle of `x`; see `triu_indices`.

    Args:
        x: a matrix.
        k: index of the diagonal; 0 is the main one, positive indices are above it.

    Returns:
        A tuple of two int64 vectors.

    Raises:
        ShapeError: `x` is not a matrix.

    >>> tr.triu_indices_from(tr.zeros((2, 2)))
    (Tensor([0, 0, 1]), Tensor([0, 1, 1]))
    """
    rows, cols = _matrix_shape("triu_indices_from", x)
    return triu_indices(rows, k, cols)


def _matrix_shape(name: str, x: Any) -> tuple[Any, Any]:
    x = listed(x)
    if x.spec.ndim != 2:
        raise ShapeError(f"{name} takes a matrix, got {x.spec!r}; reshape it", shape=x.spec.shape)
    rows, cols = x.spec.shape
    return rows, cols


def mask_indices(n: Any, mask_func: Callable[[Any, Any], Any], k: Any = 0) -> tuple[Array, ...]:
    """Indices of the elements of an n by n matrix that a function such as `triu` keeps.

    Args:
        n: number of rows and columns.
        mask_func: called with a matrix of ones and `k`; nonzero elements of its result are kept.
        k: passed on, usually the index of a diagonal.

    Returns:
        A tuple of two int64 vectors.

    >>> tr.mask_indices(2, lambda x, k: tr.triu(x, k=k))
    (Tensor([0, 0, 1]), Tensor([0, 1, 1]))
    """
    n = specialise(size_of("mask_indices", "n", n), "mask_indices(n)")
    return nonzero(mask_func(full((n, n), 1, dtype=int64), k))


@overload
def indices(dimensions: Any, /, *, dtype: Any = ..., sparse: Literal[False] = ..., device: Any = ...) -> Array: ...
@overload
def indices(dimensions: Any, /, *, dtype: Any = ..., sparse: Literal[True], device: Any = ...) -> tuple[Array, ...]: ...
def indices(
    dimensions: Any, /, *, dtype: Any = None, sparse: bool = False, device: Any = None
) -> Array | tuple[Array, ...]:
    """Index of every element along each axis of a shape.

    Args:
        dimensions: extents of the shape.
        dtype: dtype of the result; int64 by default.
        sparse: return a tuple of arrays that broadcast to the shape.
        device: device or its name; by default that of the enclosing scope, else the CPU.

    Returns:
        Array of shape (axes, *dimensions), or a tuple with one array for each axis.

    See also:
        `meshgrid`, for coordinates.

    >>> tr.indices((2, 2))
    Tensor([[[0, 0],
             [1, 1]],
    <BLANKLINE>
            [[0, 1],
             [0, 1]]])
    """
    shape = shape_of(dimensions)
    dtype = int64 if dtype is None else known_dtype(dtype)
    place = place_of(device)
    if not any(isinstance(d, Dim) for d in shape):
        found: Any = np.indices(shape, dtype, sparse=sparse)  # type: ignore[call-overload]
        return tuple([noted(own(f, place)) for f in found]) if sparse else noted(own(found, place))
    n = len(shape)
    shapes = [tuple([d if not sparse or a == axis else 1 for a, d in enumerate(shape)]) for axis in range(n)]
    grids = [catalog.iota(shape=s, dtype=dtype, axis=axis, place=place) for axis, s in enumerate(shapes)]
    return tuple(grids) if sparse else stack(grids)


def ix_(*vectors: Any) -> tuple[Array, ...]:
    """Open grid of index vectors, such that ``x[tr.ix_(rows, columns)]`` contains every pair.

    Args:
        vectors: one integer vector for each axis; a mask selects the indices of its true elements.

    Returns:
        A tuple of integer arrays that broadcast to the grid.

    Raises:
        ShapeError: an argument is not a vector.
        TracingError: a mask is unknown while tracing.
        ArgumentError: an argument is neither an integer vector nor a mask.

    >>> tr.arange(9).reshape(3, 3)[tr.ix_(tr.asarray([0, 2]), tr.asarray([1, 2]))]
    Tensor([[1, 2],
            [7, 8]])
    """
    grid = []
    for axis, given in enumerate(vectors):
        x = listed(given)
        if x.spec.ndim != 1:
            raise ShapeError(f"ix_ takes vectors, but argument {axis} is {x.spec!r}; ravel it", shape=x.spec.shape)
        if x.spec.dtype.kind == "b":
            (x,) = nonzero(x)
        elif x.spec.shape == (0,) and isinstance(given, (list, tuple)):
            x = catalog.convert(x, dtype=int64)
        elif x.spec.dtype.kind not in "iu":
            raise ArgumentError(f"ix_ takes integers and masks, but argument {axis} is {x.spec!r}; convert with astype")
        shape = tuple([x.spec.shape[0] if a == axis else 1 for a in range(len(vectors))])
        grid.append(catalog.reshape(x, shape=shape))
    return tuple(grid)
