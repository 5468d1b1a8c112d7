"""Equality of arrays, exact or within tolerances."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenferro_tensor import catalog
from tenferro_tensor.functions._listed import listed
from tenferro_tensor.functions.creation import full
from tenferro_tensor.operands import converted
from tenferro_tensor.promotion import broadcast_shapes
from tenferro_tensor_core import ShapeError, ask, bool_, float64

if TYPE_CHECKING:
    from tenferro_tensor._array import Array

__all__ = ["allclose", "array_equal", "array_equiv", "isclose"]


def __dir__() -> list[str]:
    return __all__.copy()


def isclose(x1: Any, x2: Any, /, rtol: Any = 1e-5, atol: Any = 1e-8, equal_nan: bool = False) -> Array:
    """Whether ``abs(x1 - x2) <= atol + rtol * abs(x2)``, elementwise; equal infinities are close.

    Args:
        x1: array.
        x2: reference, to which the relative tolerance applies; both broadcast.
        rtol: relative tolerance.
        atol: absolute tolerance.
        equal_nan: whether NaN is close to NaN.

    Returns:
        Boolean array of the broadcast shape.

    Raises:
        ShapeError: the shapes do not broadcast.

    See also:
        `allclose`, which reduces to one value.

    >>> tr.isclose(tr.asarray([1.0, 2.0]), tr.asarray([1.0 + 1e-9, 2.1]))
    Tensor([ True, False])
    """
    x1, x2 = listed(x1), listed(x2)
    x1, x2 = (converted(x, float64) if x.spec.dtype.kind in "biu" else x for x in (x1, x2))
    finite = catalog.is_finite(x2)
    centre = catalog.select(finite, x2, 0.0)
    within = catalog.le(catalog.abs(catalog.sub(x1, centre)), catalog.add(atol, catalog.mul(rtol, catalog.abs(centre))))
    near = catalog.bitwise_or(catalog.bitwise_and(within, finite), catalog.eq(x1, x2))
    if not equal_nan:
        return near
    return catalog.bitwise_or(near, catalog.bitwise_and(catalog.is_nan(x1), catalog.is_nan(x2)))


def allclose(x1: Any, x2: Any, /, rtol: Any = 1e-5, atol: Any = 1e-8, equal_nan: bool = False) -> Array:
    """Whether all elements are close in the sense of `isclose`.

    Args:
        x1: array.
        x2: reference, to which the relative tolerance applies; both broadcast.
        rtol: relative tolerance.
        atol: absolute tolerance.
        equal_nan: whether NaN is close to NaN.

    Returns:
        Boolean array without axes.

    Raises:
        ShapeError: the shapes do not broadcast.

    >>> bool(tr.allclose(tr.asarray([1.0, 2.0]), tr.asarray([1.0 + 1e-9, 2.0])))
    True
    """
    return _every(isclose(x1, x2, rtol, atol, equal_nan))


def array_equal(x1: Any, x2: Any, /, equal_nan: bool = False) -> Array:
    """Whether two arrays have the same shape and equal elements.

    Args:
        x1, x2: arrays of any shapes and dtypes.
        equal_nan: whether NaN equals NaN.

    Returns:
        Boolean array without axes.

    >>> tr.array_equal(tr.asarray([1, 2]), tr.asarray([1, 2]))
    Tensor(True)
    """
    x1, x2 = listed(x1), listed(x2)
    s, t = x1.spec.shape, x2.spec.shape
    if len(s) != len(t) or not all(ask(d, "==", e) for d, e in zip(s, t, strict=True)):
        return full((), False, dtype=bool_, device=x1.spec.place.device)
    same = catalog.eq(x1, x2)
    if equal_nan and x1.spec.inexact and x2.spec.inexact:
        same = catalog.bitwise_or(same, catalog.bitwise_and(catalog.is_nan(x1), catalog.is_nan(x2)))
    return _every(same)


def array_equiv(x1: Any, x2: Any, /) -> Array:
    """Whether two arrays have equal elements after broadcasting; false if they do not broadcast.

    Args:
        x1, x2: arrays of any shapes and dtypes.

    Returns:
        Boolean array without axes.

    >>> tr.array_equiv(tr.asarray([1, 1]), tr.asarray(1))
    Tensor(True)
    """
    x1, x2 = listed(x1), listed(x2)
    try:
        broadcast_shapes(x1.spec.shape, x2.spec.shape)
    except ShapeError:
        return full((), False, dtype=bool_, device=x1.spec.place.device)
    return _every(catalog.eq(x1, x2))


def _every(mask: Any) -> Any:
    return catalog.reduce_all(mask, axes=tuple(range(mask.spec.ndim)))
