"""Sums, products, extrema and logic over axes.

``axis`` is one axis, a tuple of axes or ``None`` for all; ``keepdims=True`` keeps the reduced axes with extent 1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tenferro_tensor import catalog
from tenferro_tensor.direct import ANY_SIZE, direct
from tenferro_tensor.functions import _forms
from tenferro_tensor.operands import AxisOps, converted, truth, value
from tenferro_tensor_core import DType, int64, uint64
from tenferro_tensor_core import dtype as known_dtype

if TYPE_CHECKING:
    from tenferro_tensor._array import Array

__all__ = ["all", "any", "count_nonzero", "max", "min", "prod", "sum"]


def __dir__() -> list[str]:
    return __all__.copy()


_SUM: Final = AxisOps("sum", catalog.reduce_sum)
_PROD: Final = AxisOps("prod", catalog.reduce_prod)
_MAX: Final = AxisOps("max", catalog.reduce_max)
_MIN: Final = AxisOps("min", catalog.reduce_min)
_ALL: Final = AxisOps("all", catalog.reduce_all)
_ANY: Final = AxisOps("any", catalog.reduce_any)


def accumulated(x: Any, dtype: Any) -> Any:
    """`x` in the dtype of sums: the requested one, else 64 bits for booleans and integers."""
    if dtype is not None:
        return converted(x, known_dtype(dtype))
    have: DType = x.spec.dtype
    return x if x.spec.inexact else converted(x, uint64 if have.kind == "u" else int64)


def sum(x: Any, /, axis: Any = None, dtype: Any = None, *, keepdims: bool = False) -> Array:
    """Sum over axes; 0 for no elements.

    Args:
        x: array of any shape and dtype.
        axis: axis or axes to reduce; by default all.
        dtype: dtype of the result; by default that of `x`, int64 or uint64 for integers and booleans.
        keepdims: keep the reduced axes with extent 1.

    Returns:
        Array without the reduced axes.

    Raises:
        AxisError: an axis is out of range or repeated.

    See also:
        `nansum`, which ignores NaN; `cumulative_sum`.

    >>> tr.sum(tr.asarray([[1.0, 2.0], [3.0, 4.0]]), axis=0)
    Tensor([4., 6.])
    """
    try:
        plain = x.spec.inexact and dtype is None
    except AttributeError:  # no value yet; this is faster than `hasattr`
        plain = False
    if not plain:
        x = accumulated(value(x), dtype)
    return _SUM.reduce(x, axis, keepdims)


def prod(x: Any, /, axis: Any = None, dtype: Any = None, *, keepdims: bool = False) -> Array:
    """Product over axes; 1 for no elements.

    Args:
        x: array of any shape and dtype.
        axis: axis or axes to reduce; by default all.
        dtype: dtype of the result; by default that of `x`, int64 or uint64 for integers and booleans.
        keepdims: keep the reduced axes with extent 1.

    Returns:
        Array without the reduced axes.

    Raises:
        AxisError: an axis is out of range or repeated.

    See also:
        `nanprod`, which ignores NaN; `cumulative_prod`.

    >>> tr.prod(tr.asarray([1, 2, 3]))
    Tensor(6)
    """
    return _PROD.reduce(accumulated(value(x), dtype), axis, keepdims)


def max(x: Any, /, axis: Any = None, *, keepdims: bool = False) -> Array:
    """Largest element over axes; NaN if one is NaN.

    Args:
        x: real array of any shape.
        axis: axis or axes to reduce; by default all.
        keepdims: keep the reduced axes with extent 1.

    Returns:
        Array without the reduced axes, in the dtype of `x`.

    Raises:
        ShapeError: there are no elements to choose from.
        AxisError: an axis is out of range or repeated.
        DTypeError: `x` is complex.

    See also:
        `nanmax`, which ignores NaN; `argmax`; `maximum`, elementwise.

    >>> tr.max(tr.asarray([[1, 5], [7, 2]]), axis=1)
    Tensor([5, 7])
    """
    return _MAX.reduce(value(x), axis, keepdims)


def min(x: Any, /, axis: Any = None, *, keepdims: bool = False) -> Array:
    """Smallest element over axes; NaN if one is NaN.

    Args:
        x: real array of any shape.
        axis: axis or axes to reduce; by default all.
        keepdims: keep the reduced axes with extent 1.

    Returns:
        Array without the reduced axes, in the dtype of `x`.

    Raises:
        ShapeError: there are no elements to choose from.
        AxisError: an axis is out of range or repeated.
        DTypeError: `x` is complex.

    See also:
        `nanmin`, which ignores NaN; `argmin`; `minimum`, elementwise.

    >>> tr.min(tr.asarray([[1, 5], [7, 2]]), axis=1)
    Tensor([1, 2])
    """
    return _MIN.reduce(value(x), axis, keepdims)


def all(x: Any, /, axis: Any = None, *, keepdims: bool = False) -> Array:
    """Whether all elements over axes are true; true for no elements.

    Args:
        x: array of any shape and dtype; nonzero counts as true.
        axis: axis or axes to reduce; by default all.
        keepdims: keep the reduced axes with extent 1.

    Returns:
        Boolean array without the reduced axes.

    Raises:
        AxisError: an axis is out of range or repeated.

    >>> tr.all(tr.asarray([True, False]))
    Tensor(False)
    """
    return _ALL.reduce(truth(value(x)), axis, keepdims)


def any(x: Any, /, axis: Any = None, *, keepdims: bool = False) -> Array:
    """Whether any element over axes is true; false for no elements.

    Args:
        x: array of any shape and dtype; nonzero counts as true.
        axis: axis or axes to reduce; by default all.
        keepdims: keep the reduced axes with extent 1.

    Returns:
        Boolean array without the reduced axes.

    Raises:
        AxisError: an axis is out of range or repeated.

    >>> tr.any(tr.asarray([True, False]))
    Tensor(True)
    """
    return _ANY.reduce(truth(value(x)), axis, keepdims)


@direct(_forms.count_nonzero, ANY_SIZE)
def count_nonzero(x: Any, /, axis: Any = None, *, keepdims: bool = False) -> Array:
    """Number of nonzero elements over axes.

    Args:
        x: array of any shape and dtype.
        axis: axis or axes to reduce; by default all.
        keepdims: keep the reduced axes with extent 1.

    Returns:
        int64 array without the reduced axes.

    Raises:
        AxisError: an axis is out of range or repeated.

    >>> tr.count_nonzero(tr.asarray([[1, 0], [2, 3]]), axis=0)
    Tensor([2, 1])
    """
    return _SUM.reduce(converted(truth(value(x)), int64), axis, keepdims)
