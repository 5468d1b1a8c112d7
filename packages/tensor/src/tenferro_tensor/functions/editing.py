"""Deletion, insertion, appending and repetition of entries along an axis."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tenferro_tensor import catalog
from tenferro_tensor.direct import direct
from tenferro_tensor.functions import _numpy_forms
from tenferro_tensor.functions._listed import listed
from tenferro_tensor.functions._span import span
from tenferro_tensor.functions.joining import concat, tile
from tenferro_tensor.functions.manipulation import broadcast_to, moveaxis, ravel, reshape
from tenferro_tensor.functions.reading import getitem, take
from tenferro_tensor.functions.updating import admitted
from tenferro_tensor.operands import axes_of, axis_of, host_elements, known_integer, require_concrete, shape_of, value
from tenferro_tensor_core import (
    ArgumentError,
    AxisError,
    Dim,
    ShapeError,
    TracingError,
    as_size,
    ask,
    dim_max,
    floordiv,
    specialise,
)

if TYPE_CHECKING:
    from tenferro_tensor._array import Array

__all__ = ["append", "delete", "insert", "resize", "trim_zeros"]


def __dir__() -> list[str]:
    return __all__.copy()


def append(x: Any, /, values: Any, axis: int | None = None) -> Array:
    """Join values to an array along an axis.

    Args:
        x: array of any shape and dtype.
        values: array with the same number of axes.
        axis: axis to join along; by default both are flattened.

    Returns:
        Array of the promoted dtype.

    Raises:
        ShapeError: other extents differ.
        AxisError: the axis is out of range.

    >>> tr.append(tr.asarray([[1, 2]]), tr.asarray([3]))
    Tensor([1, 2, 3])
    """
    return concat([listed(x), listed(values)], axis=axis)


def _line(name: str, x: Any, axis: int | None) -> tuple[Any, int]:
    x = listed(x)
    return (ravel(x), 0) if axis is None else (x, axis_of(name, axis, x.spec.ndim))


def _known_indices(name: str, obj: Any, n: Any) -> Any:
    """A single index as an integer or size; a slice or array of indices as a host array."""
    obj = known_integer(as_size(obj))
    if isinstance(obj, Dim) or obj.__class__ is int or (hasattr(obj, "spec") and not obj.spec.ndim):
        return obj
    extent = specialise(n, f"{name}(x, {type(obj).__name__})")
    if isinstance(obj, slice):
        return np.arange(*obj.indices(extent))
    found = host_elements(obj)
    if found is None:
        raise TracingError(
            f"{name} has a result that depends on indices, which are not known while tracing or under vmap; pass "
            "integers, or a single traced index"
        )
    if found.size == 0 and not hasattr(obj, "dtype"):
        found = found.astype(np.int64)
    if found.dtype.kind not in "iub" or found.ndim > 1:
        raise ArgumentError(f"{name} takes an index, a slice, or a vector of indices or booleans, got {obj!r}")
    if found.dtype.kind == "b" and found.shape != (extent,):
        raise ShapeError(f"{name} needs a mask with one entry for each of {extent} indices, got {found.shape}")
    return found


def _counted(name: str, i: Any, n: Any, most: Any, axis: int) -> Any:
    """The index counted from 0, after a check of its range."""
    if not (ask(i, "<=", most) if ask(i, ">=", 0) else ask(-i, "<=", n)):
        raise AxisError(f"{name}: index {i} is out of bounds for axis {axis} with extent {n}", index=str(i), axis=axis)
    return i if ask(i, ">=", 0) else n + i


@direct(_numpy_forms.delete)
def delete(x: Any, /, obj: Any, axis: int | None = None) -> Array:
    """Remove entries along an axis.

    Args:
        x: array of any shape and dtype.
        obj: index, which may be traced; or a slice, or a known vector of indices or booleans.
        axis: axis to remove from; by default the flattened array.

    Returns:
        Array of the dtype of `x`.

    Raises:
        AxisError: an index is out of bounds.
        TracingError: a vector of indices is unknown while tracing.

    >>> tr.delete(tr.asarray([1, 2, 3, 4]), [0, 2])
    Tensor([2, 4])
    """
    x, axis = _line("delete", x, axis)
    n = x.spec.shape[axis]
    at = _known_indices("delete", obj, n)
    if isinstance(at, np.ndarray):
        try:
            kept = np.delete(np.arange(specialise(n, "delete")), at)
        except IndexError as cause:
            raise AxisError(f"delete: {cause}", axis=axis) from None
        return take(x, kept, axis=axis)
    if hasattr(at, "spec"):
        rest = catalog.iota(shape=(n - 1,), dtype=at.spec.dtype, axis=0, place=x.spec.place)
        first = catalog.select(catalog.lt(at, 0), catalog.add(at, value(n)), at)
        return take(x, catalog.add(rest, catalog.convert(catalog.ge(rest, first), dtype=at.spec.dtype)), axis=axis)
    at = _counted("delete", at, n, n - 1, axis)
    return catalog.concatenate(span(x, axis, 0, at), span(x, axis, at + 1, n), axis=axis)


def insert(x: Any, /, obj: Any, values: Any, axis: int | None = None) -> Array:
    """Insert values before indices along an axis.

    Args:
        x: array of any shape and dtype.
        obj: index, slice, or vector of indices or booleans, which refer to `x` before the insertion.
        values: values to insert, which broadcast and convert to the dtype of `x` without loss.
        axis: axis to insert along; by default the flattened array.

    Returns:
        Array of the dtype of `x`.

    Raises:
        AxisError: an index is out of bounds.
        DTypeError: the values do not convert to the dtype of `x` without loss.
        TracingError: the indices are unknown while tracing.

    >>> tr.insert(tr.asarray([1, 2, 3]), 1, 9)
    Tensor([1, 9, 2, 3])
    """
    x, axis = _line("insert", x, axis)
    n = x.spec.shape[axis]
    at = _known_indices("insert", obj, n)
    if hasattr(at, "spec"):
        raise TracingError("insert puts values before an index that is known, and this one is traced; use where")
    values = admitted(x, listed(values) if isinstance(values, (list, tuple)) else values)
    if isinstance(at, np.ndarray):
        at = np.flatnonzero(at) if at.dtype.kind == "b" else at
        if at.size != 1:
            return _inserted_several(x, axis, at, values)
        single, at = True, int(at.reshape(()))
    else:
        single = False
    at = _counted("insert", at, n, n, axis)
    ndim = x.spec.ndim
    values = reshape(values, (1,) * (ndim - values.spec.ndim) + values.spec.shape)
    values = values if single else moveaxis(values, 0, axis)
    goal = tuple([values.spec.shape[axis] if a == axis else d for a, d in enumerate(x.spec.shape)])
    return catalog.concatenate(span(x, axis, 0, at), broadcast_to(values, goal), span(x, axis, at, n), axis=axis)


def _inserted_several(x: Any, axis: int, at: np.ndarray[Any, Any], values: Any) -> Any:
    n = specialise(x.spec.shape[axis], "insert")
    at = np.asarray([_counted("insert", int(i), n, n, axis) for i in at], np.int64)
    goal = tuple([at.size if a == axis else d for a, d in enumerate(x.spec.shape)])
    both = catalog.concatenate(x, broadcast_to(values, goal), axis=axis)
    order = np.empty(n + at.size, np.int64)
    by_place = at.argsort(kind="stable")
    places = at.copy()
    places[by_place] += np.arange(at.size)
    new = np.zeros(n + at.size, bool)
    new[places] = True
    order[places] = n + np.arange(at.size)
    order[~new] = np.arange(n)
    return take(both, order, axis=axis)


@direct(_numpy_forms.resize)
def resize(x: Any, /, new_shape: Any) -> Array:
    """Arrange the elements in a shape of any size, repeating or cutting the flattened array.

    Args:
        x: array of any shape and dtype.
        new_shape: extents of the result.

    Returns:
        Array of shape `new_shape` and the dtype of `x`.

    Raises:
        ArgumentError: an extent is negative.

    See also:
        `reshape`, which keeps the number of elements.

    >>> tr.resize(tr.asarray([1, 2, 3]), (2, 2))
    Tensor([[1, 2],
            [3, 1]])
    """
    x = ravel(listed(x))
    shape = shape_of(new_shape)
    total: Any = 1
    for d in shape:
        if ask(d, "<", 0):
            raise ArgumentError(f"resize takes extents of at least 0, got {shape}", shape=shape)
        total = total * d
    n = x.spec.shape[0]
    if ask(n, "==", 0):
        return broadcast_to(catalog.reduce_sum(x, axes=(0,)) if x.spec.dtype.kind != "b" else False, shape)
    times = floordiv(total + (n - 1), n)
    return catalog.reshape(span(tile(x, (dim_max(times, 0),)), 0, 0, total), shape=shape)


def trim_zeros(x: Any, /, trim: str = "fb", axis: Any = None) -> Array:
    """Remove zeros at the ends of axes.

    Args:
        x: array whose elements are known.
        trim: ``"f"`` for the front, ``"b"`` for the back, ``"fb"`` for both.
        axis: axis or axes; by default all.

    Returns:
        Array of the dtype of `x`.

    Raises:
        TracingError: the elements are unknown while tracing.
        ArgumentError: `trim` is another text.

    >>> tr.trim_zeros(tr.asarray([0, 0, 1, 0, 2, 0]))
    Tensor([1, 0, 2])
    """
    x = listed(x)
    front, back = "f" in trim.lower(), "b" in trim.lower()
    if not trim or trim.lower().strip("fb"):
        raise ArgumentError(f"trim_zeros takes trim 'f', 'b' or 'fb', got {trim!r}", trim=trim)
    require_concrete(x, "trim_zeros", "slice with known bounds instead")
    axes = axes_of("trim_zeros", axis, x.spec.ndim)
    places = x._concrete().nonzero()
    key = []
    for a, n in enumerate(x.spec.shape):
        found = places[a]
        first, last = (int(found.min()), int(found.max()) + 1) if found.size else (n, n)
        if not found.size and back and not front:
            first, last = 0, 0
        key.append(slice(first if front else 0, last if back else n) if a in axes else slice(None))
    return getitem(x, tuple(key))
