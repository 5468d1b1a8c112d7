"""Primitives that create arrays without operands, and those of symbolic sizes."""

from typing import Any

import numpy as np

from tenferro_tensor._place import HOST, Place
from tenferro_tensor._primitive import primitive
from tenferro_tensor._spec import Spec
from tenferro_tensor.catalog._axes import require_axis, require_sizes
from tenferro_tensor_core import ArgumentError, AxisError, DimLike, DTypeError, ShapeError, int64
from tenferro_tensor_core import dtype as known_dtype

__all__ = ["define_size", "dim_value", "iota"]


def __dir__() -> list[str]:
    return __all__.copy()


@primitive
def iota(*, shape: tuple[DimLike, ...], dtype: np.dtype[Any], axis: int, place: Place = HOST) -> Spec:
    """Array whose every element is its own index along an axis.

    Args:
        shape: extents, at least one.
        dtype: integer or floating-point dtype.
        axis: axis to count along.
        place: place of the result.

    Returns:
        Spec of the result.

    Raises:
        DTypeError: the dtype is boolean.
        AxisError: there is no such axis.
    """
    if not isinstance(dtype, np.dtype) or known_dtype(dtype).kind == "b":
        raise DTypeError(
            f"iota counts in integers or floating point, got {dtype!r}; pass such a dtype object", dtype=repr(dtype)
        )
    if not isinstance(place, Place):
        raise ArgumentError(f"iota takes a Place, got {place!r}; HOST is main memory", place=repr(place))
    require_sizes("iota", shape, "shape")
    out = Spec(shape, dtype, place)
    if not shape:
        raise AxisError("iota needs at least one axis to count along, got shape (); use a constant 0", shape=shape)
    require_axis("iota", axis, out)
    return out


@primitive
def dim_value(*, size: DimLike, place: Place = HOST) -> Spec:
    """Value of a size as a 0-d int64; while tracing it is weakly typed, like a Python integer.

    Args:
        size: the size.
        place: place of the result.

    Returns:
        Spec of the result.
    """
    require_sizes("dim_value", (size,), "size")
    return Spec((), int64, place)


@primitive
def define_size(k: Spec, *, size: DimLike) -> Spec:
    """`k` itself, which defines the value of a symbolic size from here on.

    Specs of a program may mention the size only after this equation, on which they then depend.

    Args:
        k: 0-d integer within the bounds of the size.
        size: the size.

    Returns:
        Spec of `k`, in int64.
    """
    require_sizes("define_size", (size,), "size")
    if k.ndim or k.dtype.kind not in "iu":
        raise ShapeError(f"define_size takes a 0-d integer, got {k!r}; sum or convert it first", shape=k.shape)
    return k.with_(dtype=int64)
