"""Rotation, mirroring, and leading axes up to a minimum number."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenferro_tensor.direct import ANY_SIZE, direct
from tenferro_tensor.functions import _numpy_forms
from tenferro_tensor.functions._listed import listed
from tenferro_tensor.functions.manipulation import flip, moveaxis, swapaxes, view_in_shape
from tenferro_tensor.operands import axes_of, axis_of, whole
from tenferro_tensor_core import AxisError, ShapeError

if TYPE_CHECKING:
    from tenferro_tensor._array import Array

__all__ = ["atleast_1d", "atleast_2d", "atleast_3d", "fliplr", "flipud", "rollaxis", "rot90"]


def __dir__() -> list[str]:
    return __all__.copy()


@direct(_numpy_forms.atleast_1d, ANY_SIZE, views=True)
def atleast_1d(*arrays: Any) -> Array:
    """View arrays with at least one axis.

    Args:
        arrays: arrays of any shapes and dtypes.

    Returns:
        The array for one argument, a tuple of arrays for several.

    >>> tr.atleast_1d(tr.asarray(2.0))
    Tensor([2.])
    """
    return _each(arrays, 1)


@direct(_numpy_forms.atleast_2d, ANY_SIZE, views=True)
def atleast_2d(*arrays: Any) -> Array:
    """View arrays with at least two axes; a vector becomes a row.

    Args:
        arrays: arrays of any shapes and dtypes.

    Returns:
        The array for one argument, a tuple of arrays for several.

    >>> tr.atleast_2d(tr.asarray([1, 2])).shape
    (1, 2)
    """
    return _each(arrays, 2)


@direct(_numpy_forms.atleast_3d, ANY_SIZE, views=True)
def atleast_3d(*arrays: Any) -> Array:
    """View arrays with at least three axes: (n,) becomes (1, n, 1), and (m, n) becomes (m, n, 1).

    Args:
        arrays: arrays of any shapes and dtypes.

    Returns:
        The array for one argument, a tuple of arrays for several.

    >>> tr.atleast_3d(tr.asarray([1, 2])).shape
    (1, 2, 1)
    """
    return _each(arrays, 3)


def _each(arrays: tuple[Any, ...], least: int) -> Any:
    found = tuple([with_axes(listed(a), least) for a in arrays])
    return found[0] if len(found) == 1 else found


def with_axes(x: Any, least: int) -> Any:
    """`x` with at least `least` axes, never the object `x` itself."""
    shape = x.spec.shape
    if len(shape) < least:
        before = 1 if least > 1 and len(shape) == 1 else 0
        shape = (1,) * before + shape
        shape += (1,) * (least - len(shape))
    return view_in_shape(x, shape)


def flipud(x: Any, /) -> Array:
    """Reverse the order along the first axis.

    Args:
        x: array with at least one axis.

    Returns:
        Array of the shape and dtype of `x`.

    Raises:
        ShapeError: `x` has no axes.

    >>> tr.flipud(tr.asarray([1, 2, 3]))
    Tensor([3, 2, 1])
    """
    x = _of_axes("flipud", x, 1)
    return flip(x, axis=0)


def fliplr(x: Any, /) -> Array:
    """Reverse the order along the second axis.

    Args:
        x: array with at least two axes.

    Returns:
        Array of the shape and dtype of `x`.

    Raises:
        ShapeError: `x` has fewer than two axes.

    >>> tr.fliplr(tr.asarray([[1, 2, 3]]))
    Tensor([[3, 2, 1]])
    """
    x = _of_axes("fliplr", x, 2)
    return flip(x, axis=1)


def _of_axes(name: str, x: Any, least: int) -> Any:
    x = listed(x)
    if x.spec.ndim < least:
        raise ShapeError(f"{name} needs an array with at least {least} axes, got {x.spec!r}", shape=x.spec.shape)
    return x


def rot90(x: Any, /, k: int = 1, axes: Any = (0, 1)) -> Array:
    """Rotate an array by multiples of 90 degrees in the plane of two axes.

    Args:
        x: array with at least two axes.
        k: number of rotations, from the first axis towards the second.
        axes: the two axes of the plane.

    Returns:
        Array of the dtype of `x`.

    Raises:
        AxisError: the axes are not two different ones of `x`.
        ShapeError: `x` has fewer than two axes.

    >>> tr.rot90(tr.asarray([[1, 2], [3, 4]]))
    Tensor([[2, 4],
            [1, 3]])
    """
    x = _of_axes("rot90", x, 2)
    plane = axes_of("rot90", tuple(axes), x.spec.ndim)
    if len(plane) != 2:
        raise AxisError(f"rot90 turns the plane of two axes, got {tuple(axes)}", axes=tuple(axes))
    k = whole("rot90", "k", k) % 4
    if k == 0:
        return view_in_shape(x, x.spec.shape)
    if k == 2:
        return flip(x, axis=plane)
    turned = swapaxes(flip(x, axis=plane[1]) if k == 1 else x, *plane)
    return turned if k == 1 else flip(turned, axis=plane[1])


@direct(_numpy_forms.rollaxis, ANY_SIZE, views=True)
def rollaxis(x: Any, axis: int, start: int = 0) -> Array:
    """Move an axis before the axis `start`.

    Args:
        x: array of any shape and dtype.
        axis: axis to move.
        start: axis to move it before.

    Returns:
        Array of the dtype of `x`.

    Raises:
        AxisError: the axis is out of range.

    See also:
        `moveaxis`, which is clearer.

    >>> tr.rollaxis(tr.zeros((2, 3, 4)), 2).shape
    (4, 2, 3)
    """
    x = listed(x)
    n = x.spec.ndim
    axis = axis_of("rollaxis", axis, n)
    start = whole("rollaxis", "start", start)
    if not -n <= start <= n:
        raise AxisError(f"rollaxis: start {start} is out of range; it goes from {-n} to {n}", axis=start, ndim=n)
    start += n * (start < 0)
    goal = start - (axis < start)
    return view_in_shape(x, x.spec.shape) if goal == axis else moveaxis(x, axis, goal)
