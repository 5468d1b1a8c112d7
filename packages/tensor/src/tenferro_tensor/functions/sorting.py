"""Sorting along an axis. Complex numbers are ordered by real part, then by imaginary part; NaN comes last."""

from typing import Any

from tenferro_tensor import catalog
from tenferro_tensor.operands import axis_of, value

__all__ = ["argsort", "sort"]


def sort(x: Any, /, axis: int = -1, *, descending: bool = False, stable: bool = True) -> Any:
    """The elements in order along an axis; always stable.

    >>> tr.sort(tr.asarray([3, 1, 2]), descending=True)
    Tensor([3, 2, 1])
    """
    x = value(x)
    return catalog.sort(x, axis=axis_of("sort", axis, x.spec.ndim), descending=bool(descending))


def argsort(x: Any, /, axis: int = -1, *, descending: bool = False, stable: bool = True) -> Any:
    """The indices along an axis that sort `x`; always stable.

    >>> tr.argsort(tr.asarray([3, 1, 2]))
    Tensor([1, 2, 0])
    """
    x = value(x)
    return catalog.argsort(x, axis=axis_of("argsort", axis, x.spec.ndim), descending=bool(descending))
