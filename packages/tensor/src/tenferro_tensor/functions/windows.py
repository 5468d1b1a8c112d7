"""Reading and replacing blocks whose starts may be known only at run time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tenferro_tensor import catalog
from tenferro_tensor.functions._starts import starts_of
from tenferro_tensor.functions.updating import admitted
from tenferro_tensor.operands import known_integer, shape_of, size_of, value
from tenferro_tensor_core import ArgumentError, Dim, DimLike, ShapeError, as_size, dim_max, dim_min, expect

if TYPE_CHECKING:
    from tenferro_tensor._array import Array

__all__ = ["dynamic_slice", "dynamic_update_slice"]


def __dir__() -> list[str]:
    return __all__.copy()


def dynamic_slice(x: Any, starts: Any, sizes: Any) -> Array:
    """Block of given extents whose start may be traced: ``x[i : i + k]`` on every axis, for any ``i``.

    Negative starts count from the end. A block that would extend beyond the array is moved inside, for concrete and
    traced starts alike. The derivative is the update of one block.

    Args:
        x: array with at least one axis.
        starts: one integer for each axis: a number, a size or a 0-d array, which may be traced; or a vector of them.
        sizes: extents of the block: integers and sizes.

    Returns:
        Array of shape `sizes` and the dtype of `x`.

    Raises:
        ShapeError: there is not one start and one size for each axis, or the block is larger than the array.

    See also:
        `dynamic_update_slice`, which writes.

    >>> tr.dynamic_slice(tr.arange(5), [tr.asarray(2)], [2])
    Tensor([2, 3])
    """
    x = value(x)
    extents = shape_of(tuple(sizes) if isinstance(sizes, (list, tuple)) else sizes)
    return catalog.dynamic_slice(x, *_starts("dynamic_slice", x, starts, extents), sizes=extents)


def dynamic_update_slice(x: Any, update: Any, starts: Any) -> Array:
    """Replace a block whose start may be traced, and return the result.

    Negative starts count from the end. A block that would extend beyond the array is moved inside; ``x.at[i : i +
    k].set(...)`` leaves the array unchanged instead.

    Args:
        x: array with at least one axis.
        update: the block, with as many axes as `x`, of a dtype that converts to that of `x` without loss.
        starts: one integer for each axis, as for `dynamic_slice`.

    Returns:
        Array of the shape and dtype of `x`.

    Raises:
        ShapeError: there is not one start for each axis, or the block is larger than the array.
        DTypeError: the update does not convert to the dtype of the array without loss.

    See also:
        `dynamic_slice`, which reads.

    >>> tr.dynamic_update_slice(tr.zeros(5), tr.ones(2), [tr.asarray(2)])
    Tensor([0., 0., 1., 1., 0.])
    """
    x, update = value(x), value(update)
    shape = update.spec.shape
    return catalog.dynamic_update_slice(x, admitted(x, update), *_starts("dynamic_update_slice", x, starts, shape))


def _starts(name: str, x: Any, starts: Any, sizes: tuple[DimLike, ...]) -> list[Any]:
    """The starts of a block, counted from 0.

    Raises:
        ShapeError: there is not one start for each axis.
    """
    if hasattr(starts, "spec") or isinstance(starts, np.ndarray):
        vector = value(starts)
        starts = [vector] if not vector.spec.ndim else [vector[k] for k in range(int(vector.shape[0]))]
    elif not isinstance(starts, Sequence):
        starts = [starts]
    if len(starts) != x.spec.ndim or len(sizes) != x.spec.ndim:
        raise ShapeError(
            f"{name} needs a start and an extent for each of the {x.spec.ndim} axes of {x.spec!r}, got "
            f"{len(starts)} starts and the extents {sizes}; use 0 and the extent of the array for an axis that is kept"
        )
    shape = x.spec.shape
    for axis, (n, size) in enumerate(zip(shape, sizes, strict=True)):
        if not expect(size, "<=", n):
            raise ShapeError(
                f"{name}: a window of extent {size} does not fit axis {axis} of {x.spec!r}; make the window smaller",
                axis=axis,
                extent=n,
            )
    return starts_of(x, [_start(name, s, n, size) for s, n, size in zip(starts, shape, sizes, strict=True)])


def _start(name: str, start: Any, n: DimLike, size: DimLike) -> Any:
    """The start, clamped and counted from 0 if it is known; otherwise a value."""
    start = as_size(start)
    if hasattr(start, "spec") or isinstance(start, (np.ndarray, np.generic)):
        start = value(start)
        if start.spec.ndim or start.spec.dtype.kind not in "iu":
            raise ArgumentError(f"{name} takes integers as starts, got {start.spec!r}; convert with astype(int64)")
        start = known_integer(start)
        if hasattr(start, "spec"):
            return start
    start = start if isinstance(start, Dim) else size_of(name, "start", start)
    first = start + n if start.__class__ is int and start < 0 else start
    return first if isinstance(first, Dim) or isinstance(n, Dim) else dim_max(dim_min(first, n - size), 0)
