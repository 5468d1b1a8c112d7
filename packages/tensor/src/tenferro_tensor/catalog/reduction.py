"""Reductions over axes; the reduced axes are removed."""

from tenferro_tensor._primitive import primitive
from tenferro_tensor._spec import Spec
from tenferro_tensor.catalog._axes import require_axes, require_axis, require_kind
from tenferro_tensor_core import ShapeError, ask, int64

__all__ = [
    "argmax",
    "argmin",
    "reduce_all",
    "reduce_any",
    "reduce_max",
    "reduce_min",
    "reduce_prod",
    "reduce_sum",
]


def __dir__() -> list[str]:
    return __all__.copy()


_ORDERED = "booleans, integers or real floating point, but not complex numbers"


def _reduced(name: str, x: Spec, axes: tuple[int, ...]) -> Spec:
    require_axes(name, axes, x.ndim, x)
    return x.with_(shape=tuple([d for i, d in enumerate(x.shape) if i not in axes]))


def _require_elements(name: str, x: Spec, axes: tuple[int, ...]) -> None:
    for axis in axes:
        if not ask(x.shape[axis], ">=", 1):
            raise ShapeError(
                f"{name} over axis {axis} of {x!r} has no elements to choose from; "
                "there is no neutral element: handle the empty case apart, or concatenate a bound",
                shape=x.shape,
                axis=axis,
            )


@primitive(widens=True)
def reduce_sum(x: Spec, *, axes: tuple[int, ...]) -> Spec:
    """Sum over axes, in the dtype of `x`: integers wrap around, booleans are combined by or; 0 for no elements.

    Args:
        x: array to reduce.
        axes: axes to reduce, counted from 0.

    Returns:
        Spec without these axes.

    Raises:
        AxisError: an axis is out of range or repeated.
    """
    return _reduced("reduce_sum", x, axes)


@primitive(widens=True)
def reduce_prod(x: Spec, *, axes: tuple[int, ...]) -> Spec:
    """Product over axes, in the dtype of `x`: integers wrap around, booleans are combined by and; 1 for no elements.

    Args:
        x: array to reduce.
        axes: axes to reduce, counted from 0.

    Returns:
        Spec without these axes.

    Raises:
        AxisError: an axis is out of range or repeated.
    """
    return _reduced("reduce_prod", x, axes)


@primitive(widens=True)
def reduce_max(x: Spec, *, axes: tuple[int, ...]) -> Spec:
    """Largest element over axes; NaN if one is NaN. No reduced axis may have extent 0.

    Args:
        x: array to reduce.
        axes: axes to reduce, counted from 0.

    Returns:
        Spec without these axes.

    Raises:
        AxisError: an axis is out of range or repeated.
    """
    require_kind("reduce_max", x, "biuf", _ORDERED)
    out = _reduced("reduce_max", x, axes)
    _require_elements("reduce_max", x, axes)
    return out


@primitive(widens=True)
def reduce_min(x: Spec, *, axes: tuple[int, ...]) -> Spec:
    """Smallest element over axes; NaN if one is NaN. No reduced axis may have extent 0.

    Args:
        x: array to reduce.
        axes: axes to reduce, counted from 0.

    Returns:
        Spec without these axes.

    Raises:
        AxisError: an axis is out of range or repeated.
    """
    require_kind("reduce_min", x, "biuf", _ORDERED)
    out = _reduced("reduce_min", x, axes)
    _require_elements("reduce_min", x, axes)
    return out


@primitive
def reduce_all(x: Spec, *, axes: tuple[int, ...]) -> Spec:
    """Whether all elements over axes are true; true for no elements.

    Args:
        x: array to reduce.
        axes: axes to reduce, counted from 0.

    Returns:
        Spec without these axes.

    Raises:
        AxisError: an axis is out of range or repeated.
    """
    require_kind("reduce_all", x, "b", "booleans; compare with 0 first")
    return _reduced("reduce_all", x, axes)


@primitive
def reduce_any(x: Spec, *, axes: tuple[int, ...]) -> Spec:
    """Whether any element over axes is true; false for no elements.

    Args:
        x: array to reduce.
        axes: axes to reduce, counted from 0.

    Returns:
        Spec without these axes.

    Raises:
        AxisError: an axis is out of range or repeated.
    """
    require_kind("reduce_any", x, "b", "booleans; compare with 0 first")
    return _reduced("reduce_any", x, axes)


def _located(name: str, x: Spec, axis: int) -> Spec:
    require_kind(name, x, "biuf", _ORDERED)
    require_axis(name, axis, x)
    _require_elements(name, x, (axis,))
    return x.with_(shape=(*x.shape[:axis], *x.shape[axis + 1 :]), dtype=int64)


@primitive(widens=True)
def argmax(x: Spec, *, axis: int) -> Spec:
    """Index of the first largest element along an axis; the first NaN wins over every number.

    Args:
        x: real array.
        axis: axis to search, counted from 0.

    Returns:
        int64 spec without the axis.

    Raises:
        AxisError: the axis is out of range.
        ShapeError: the axis has extent 0.
    """
    return _located("argmax", x, axis)


@primitive(widens=True)
def argmin(x: Spec, *, axis: int) -> Spec:
    """Index of the first smallest element along an axis; the first NaN wins over every number.

    Args:
        x: real array.
        axis: axis to search, counted from 0.

    Returns:
        int64 spec without the axis.

    Raises:
        AxisError: the axis is out of range.
        ShapeError: the axis has extent 0.
    """
    return _located("argmin", x, axis)
