"""Sorting along an axis. Complex numbers are ordered by real part, then by imaginary part; NaN comes last."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tenferro_tensor import catalog
from tenferro_tensor.operands import AlongOps, value

if TYPE_CHECKING:
    from tenferro_tensor._array import Array

__all__ = ["argsort", "sort"]


def __dir__() -> list[str]:
    return __all__.copy()


_SORT: Final = [AlongOps("sort", catalog.sort, descending=descending) for descending in (False, True)]
_ARGSORT: Final = [AlongOps("argsort", catalog.argsort, descending=descending) for descending in (False, True)]


def sort(x: Any, /, axis: int = -1, *, descending: bool = False, stable: bool = True) -> Array:
    """Sort the elements along an axis. NaN comes last, and equal elements keep their order.

    Args:
        x: array with at least one axis.
        axis: axis along which to sort.
        descending: sort in descending order.
        stable: ignored; the sort is always stable.

    Returns:
        Array of the shape and dtype of `x`.

    Raises:
        AxisError: the axis is out of range.

    See also:
        `argsort`, which returns the indices.

    >>> tr.sort(tr.asarray([3, 1, 2]), descending=True)
    Tensor([3, 2, 1])
    """
    return _SORT[bool(descending)](x if hasattr(x, "spec") else value(x), axis)


def argsort(x: Any, /, axis: int = -1, *, descending: bool = False, stable: bool = True) -> Array:
    """Indices that sort the elements along an axis. NaN comes last, and equal elements keep their order.

    Args:
        x: array with at least one axis.
        axis: axis along which to sort.
        descending: sort in descending order.
        stable: ignored; the sort is always stable.

    Returns:
        int64 array of the shape of `x`.

    Raises:
        AxisError: the axis is out of range.

    See also:
        `sort`, which returns the elements.

    >>> tr.argsort(tr.asarray([3, 1, 2]))
    Tensor([1, 2, 0])
    """
    return _ARGSORT[bool(descending)](x if hasattr(x, "spec") else value(x), axis)
