"""Sorting and searching; complex numbers are ordered by real part, then by imaginary part, and NaN comes last."""

from tenferro_tensor._primitive import primitive
from tenferro_tensor._spec import Spec
from tenferro_tensor.catalog._axes import require_axis, require_flag, require_kind, require_same_dtype
from tenferro_tensor_core import ArgumentError, ShapeError, int64

__all__ = ["argsort", "searchsorted", "sort"]


def __dir__() -> list[str]:
    return __all__.copy()


@primitive(widens=True)
def sort(x: Spec, *, axis: int, descending: bool) -> Spec:
    """Sorted elements along an axis; NaN is last in both orders.

    Args:
        x: array to sort.
        axis: axis to sort along, counted from 0.
        descending: sort in descending order.

    Returns:
        Spec of `x`.

    Raises:
        AxisError: the axis is out of range.
    """
    require_axis("sort", axis, x)
    require_flag("sort", descending, "descending")
    return x


@primitive(widens=True)
def argsort(x: Spec, *, axis: int, descending: bool) -> Spec:
    """Indices that sort `x` along an axis, stably; NaN is last in both orders.

    Args:
        x: array to sort.
        axis: axis to sort along, counted from 0.
        descending: sort in descending order.

    Returns:
        int64 spec of the shape of `x`.

    Raises:
        AxisError: the axis is out of range.
    """
    require_axis("argsort", axis, x)
    require_flag("argsort", descending, "descending")
    return x.with_(dtype=int64)


@primitive(widens=True)
def searchsorted(sorted1d: Spec, values: Spec, *, side: str) -> Spec:
    """Indices at which to insert values into an ascending vector.

    Args:
        sorted1d: the vector.
        values: values to insert, of the same dtype.
        side: ``"left"`` to insert before equal elements, ``"right"`` after them.

    Returns:
        int64 spec of the shape of `values`.

    Raises:
        ShapeError: the first operand is not a vector.
        ArgumentError: `side` is neither of these.
    """
    if side not in ("left", "right"):
        raise ArgumentError(f"searchsorted takes side='left' or side='right', got {side!r}", side=side)
    if sorted1d.ndim != 1:
        raise ShapeError(
            f"searchsorted needs a sorted vector, got {sorted1d!r}; search the rows one by one", shape=sorted1d.shape
        )
    require_same_dtype("searchsorted", sorted1d, values)
    require_kind("searchsorted", values, "biuf", "booleans, integers or real floating point, but not complex numbers")
    return values.with_(dtype=int64)
