"""Sorting and searching; complex numbers are ordered by real part, then by imaginary part, and NaN comes last."""

from tenferro_tensor._primitive import primitive
from tenferro_tensor._spec import Spec
from tenferro_tensor.catalog._axes import require_axis, require_flag, require_kind, require_same_dtype
from tenferro_tensor_core import ArgumentError, ShapeError, int64

__all__ = ["argsort", "searchsorted", "sort"]


@primitive(widens=True)
def sort(x: Spec, *, axis: int, descending: bool) -> Spec:
    """Elements in order along `axis`; NaN is last in both orders."""
    require_axis("sort", axis, x)
    require_flag("sort", descending, "descending")
    return x


@primitive(widens=True)
def argsort(x: Spec, *, axis: int, descending: bool) -> Spec:
    """Indices along `axis` that sort `x`; equal elements keep their order, NaN is last, in both orders."""
    require_axis("argsort", axis, x)
    require_flag("argsort", descending, "descending")
    return x.with_(dtype=int64)


@primitive(widens=True)
def searchsorted(sorted1d: Spec, values: Spec, *, side: str) -> Spec:
    """Where to insert each value into an ascending vector: before (``"left"``) or after (``"right"``) its equals."""
    if side not in ("left", "right"):
        raise ArgumentError(f"searchsorted takes side='left' or side='right', got {side!r}", side=side)
    if sorted1d.ndim != 1:
        raise ShapeError(
            f"searchsorted needs a sorted vector, got {sorted1d!r}; search the rows one by one", shape=sorted1d.shape
        )
    require_same_dtype("searchsorted", sorted1d, values)
    require_kind("searchsorted", values, "biuf", "booleans, integers or real floating point, but not complex numbers")
    return values.with_(dtype=int64)
