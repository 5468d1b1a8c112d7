"""Direct forms of views of arrays; ``None`` leaves the call to the function.

`_c/forms.c` is the same in C.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

COPY_MAX_BYTES: Final = 1 << 16
"""Largest non-contiguous array in bytes that NumPy reshapes by a copy."""
REPEATED_MAX_SIZE: Final = 2048
"""Most elements of a broadcast that are copied: a view costs more than so few.

One number for calls and kernels: the order in which NumPy adds up an array follows its strides.
"""


def _extents(shape: Any) -> bool:
    return shape.__class__ in (tuple, list) and all(d.__class__ is int for d in shape)


def reshaped(x: Any, /, *shape: Any) -> Any:
    """A view in another shape, or a copy of a small array.

    Args:
        x: array.
        shape: extents, as one tuple or list or as integers.

    Returns:
        The array, or None.
    """
    extents = shape[0] if len(shape) == 1 and shape[0].__class__ in (tuple, list) else shape
    if x.__class__ is not np.ndarray or not _extents(extents) or any(d < -1 for d in extents):
        return None
    return x.reshape(extents) if x.flags.c_contiguous or x.nbytes <= COPY_MAX_BYTES else None


def swapped(x: Any, /) -> Any:
    """A view with the last two axes swapped.

    Args:
        x: array.

    Returns:
        The view, or None.
    """
    return x.swapaxes(-1, -2) if x.__class__ is np.ndarray and x.ndim >= 2 else None


def transposed(x: Any, /) -> Any:
    """A view of a matrix with its axes swapped.

    Args:
        x: array.

    Returns:
        The view, or None.
    """
    return x.T if x.__class__ is np.ndarray and x.ndim == 2 else None


def broadcasted(x: Any, shape: Any, /) -> Any:
    """A read-only view that repeats the elements, or a small copy of it.

    Args:
        x: array.
        shape: extents.

    Returns:
        The view or the copy, or None.
    """
    if not _extents(shape) and shape.__class__ is not int:
        return None
    if x.__class__ is not np.ndarray:
        return None
    out = np.broadcast_to(x, shape)
    return out.copy() if out.size <= REPEATED_MAX_SIZE and out.size != x.size else out


def copied(x: Any, /) -> Any:
    """A copy in row-major order.

    Args:
        x: array.

    Returns:
        The copy, or None.
    """
    return x.copy() if x.__class__ is np.ndarray else None


def counted(x: Any, /) -> Any:
    """The number of nonzero elements.

    Args:
        x: array.

    Returns:
        An int64 scalar, or None.
    """
    return np.int64(np.count_nonzero(x)) if x.__class__ is np.ndarray else None


def joined(arrays: Any, /, axis: Any = 0) -> Any:
    """Arrays joined along an axis.

    Args:
        arrays: sequence of arrays.
        axis: the axis.

    Returns:
        The array, or None.
    """
    return np.concatenate(arrays, axis) if axis is None or axis.__class__ is int else None


def stacked_indices(arrays: tuple[Any, ...], extents: tuple[int, ...], /) -> Any:
    """Index vectors, counted from 0.

    Args:
        arrays: int64 arrays, one for each indexed axis.
        extents: extents of the indexed axes.

    Returns:
        The vectors along the last axis; None if an index is out of bounds, or the arrays must be broadcast first.
    """
    if len({a.shape for a in arrays}) != 1 or any(a.dtype != np.int64 for a in arrays):
        return None
    for a, n in zip(arrays, extents, strict=True):
        if a.size and not -n <= a.min() <= a.max() < n:
            return None
    return np.stack([np.where(a < 0, a + n, a) for a, n in zip(arrays, extents, strict=True)], axis=-1)
