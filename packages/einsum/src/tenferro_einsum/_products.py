"""Products of two arrays that have a name of their own."""

from __future__ import annotations

from typing import Any

from tenferro_runtime import asarray, kron, outer, tensordot
from tenferro_tensor import Array

__all__ = ["inner", "kron", "outer", "tensordot"]


def inner(x: Any, y: Any, /) -> Array:
    """Sums of products over the last axes; the result has the other axes of `x`, then those of `y`.

    Operands without axes multiply element-wise.

    Raises:
        ShapeError: the last extents differ.

    >>> inner([[1, 2], [3, 4]], [10, 1])
    Tensor([12, 34])
    """
    x, y = asarray(x), asarray(y)
    if not x.ndim or not y.ndim:
        return x * y
    return tensordot(x, y, axes=([-1], [-1]))
