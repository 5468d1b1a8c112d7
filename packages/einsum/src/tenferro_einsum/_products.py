"""Named products of two arrays."""

from __future__ import annotations

from typing import Any

from tenferro_runtime import asarray, kron, outer, tensordot
from tenferro_tensor import Array

__all__ = ["inner", "kron", "outer", "tensordot"]


def inner(x: Any, y: Any, /) -> Array:
    """Sum of products over the last axes.

    Operands without axes multiply elementwise.

    Args:
        x: array of shape (..., n).
        y: array of shape (..., n).

    Returns:
        Array with the other axes of `x`, then those of `y`, of the promoted dtype.

    Raises:
        ShapeError: the last extents differ.

    >>> inner([[1, 2], [3, 4]], [10, 1])
    Tensor([12, 34])
    """
    x, y = asarray(x), asarray(y)
    if not x.ndim or not y.ndim:
        return x * y
    return tensordot(x, y, axes=([-1], [-1]))
