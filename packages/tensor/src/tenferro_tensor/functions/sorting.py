"""Sorting along an axis. Complex numbers are ordered by real part, then by imaginary part; NaN comes last."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tenferro_tensor import catalog
from tenferro_tensor.operands import AlongOps, value

if TYPE_CHECKING:
    from tenferro_tensor._array import Array

__all__ = ["argsort", "sort"]

_SORT: Final = [AlongOps("sort", catalog.sort, descending=descending) for descending in (False, True)]
_ARGSORT: Final = [AlongOps("argsort", catalog.argsort, descending=descending) for descending in (False, True)]


def sort(x: Any, /, axis: int = -1, *, descending: bool = False, stable: bool = True) -> Array:
    """The elements in order along an axis; always stable.

    >>> tr.sort(tr.asarray([3, 1, 2]), descending=True)
    Tensor([3, 2, 1])
    """
    return _SORT[bool(descending)](x if hasattr(x, "spec") else value(x), axis)


def argsort(x: Any, /, axis: int = -1, *, descending: bool = False, stable: bool = True) -> Array:
    """The indices along an axis that sort `x`; always stable.

    >>> tr.argsort(tr.asarray([3, 1, 2]))
    Tensor([1, 2, 0])
    """
    return _ARGSORT[bool(descending)](x if hasattr(x, "spec") else value(x), axis)
