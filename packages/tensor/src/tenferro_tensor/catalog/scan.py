"""Cumulative operations along an axis; element ``i`` of the result combines elements ``0..i`` of the operand."""

from tenferro_tensor._primitive import primitive
from tenferro_tensor._spec import Spec
from tenferro_tensor.catalog._axes import require_axis, require_flag, require_kind

__all__ = ["cumlogsumexp", "cummax", "cummin", "cumprod", "cumsum"]


def __dir__() -> list[str]:
    return __all__.copy()


_ORDERED = "booleans, integers or real floating point, but not complex numbers"


def _require_line(name: str, x: Spec, axis: int, reverse: bool) -> None:
    require_axis(name, axis, x)
    require_flag(name, reverse, "reverse")


@primitive(widens=True)
def cumsum(x: Spec, *, axis: int, reverse: bool) -> Spec:
    """Cumulative sum along an axis, in the dtype of `x`.

    Args:
        x: array to accumulate.
        axis: axis to accumulate along, counted from 0.
        reverse: accumulate from the end.

    Returns:
        Spec of `x`.

    Raises:
        AxisError: the axis is out of range.
    """
    _require_line("cumsum", x, axis, reverse)
    return x


@primitive(widens=True)
def cumprod(x: Spec, *, axis: int, reverse: bool) -> Spec:
    """Cumulative product along an axis, in the dtype of `x`.

    Args:
        x: array to accumulate.
        axis: axis to accumulate along, counted from 0.
        reverse: accumulate from the end.

    Returns:
        Spec of `x`.

    Raises:
        AxisError: the axis is out of range.
    """
    _require_line("cumprod", x, axis, reverse)
    return x


@primitive(widens=True)
def cummax(x: Spec, *, axis: int, reverse: bool) -> Spec:
    """Cumulative maximum along an axis; NaN from the first NaN onwards.

    Args:
        x: array to accumulate.
        axis: axis to accumulate along, counted from 0.
        reverse: accumulate from the end.

    Returns:
        Spec of `x`.

    Raises:
        AxisError: the axis is out of range.
    """
    require_kind("cummax", x, "biuf", _ORDERED)
    _require_line("cummax", x, axis, reverse)
    return x


@primitive(widens=True)
def cummin(x: Spec, *, axis: int, reverse: bool) -> Spec:
    """Cumulative minimum along an axis; NaN from the first NaN onwards.

    Args:
        x: array to accumulate.
        axis: axis to accumulate along, counted from 0.
        reverse: accumulate from the end.

    Returns:
        Spec of `x`.

    Raises:
        AxisError: the axis is out of range.
    """
    require_kind("cummin", x, "biuf", _ORDERED)
    _require_line("cummin", x, axis, reverse)
    return x


@primitive(widens=True)
def cumlogsumexp(x: Spec, *, axis: int, reverse: bool) -> Spec:
    """``log(cumsum(exp(x)))`` along an axis, without intermediate overflow.

    Args:
        x: array to accumulate.
        axis: axis to accumulate along, counted from 0.
        reverse: accumulate from the end.

    Returns:
        Spec of `x`.

    Raises:
        AxisError: the axis is out of range.
    """
    require_kind("cumlogsumexp", x, "f", "real floating point")
    _require_line("cumlogsumexp", x, axis, reverse)
    return x
