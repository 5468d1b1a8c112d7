"""NumPy's functions that change their first argument, by assignment to its elements: they return nothing.

Other values never change, and derivatives pass, as through ``x[key] = values``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tenferro_tensor import catalog
from tenferro_tensor.calls import SCALARS, ValueBase
from tenferro_tensor.functions._listed import listed
from tenferro_tensor.functions.comparison import where as choose
from tenferro_tensor.functions.editing import resize
from tenferro_tensor.functions.flat_indices import unravel_index
from tenferro_tensor.functions.linear_algebra import diagonal
from tenferro_tensor.functions.manipulation import broadcast_to, ravel
from tenferro_tensor.operands import axis_of, positions
from tenferro_tensor_core import ArgumentError, DTypeError, ShapeError, ask, weak

__all__ = ["copyto", "fill_diagonal", "place", "put", "put_along_axis", "putmask"]


def __dir__() -> list[str]:
    return __all__.copy()


def _target(name: str, x: Any) -> Any:
    if not isinstance(x, ValueBase):
        raise ArgumentError(
            f"{name} changes its first argument, which must be a tensor, got a {type(x).__name__}; make it one with "
            "asarray, and keep that"
        )
    return x


def _values(x: Any, given: Any) -> Any:
    """Values to write to an array; a number of Python has its dtype, unless that loses the kind."""
    return np.asarray(given, weak(given.__class__, x.spec.dtype)) if given.__class__ in SCALARS else listed(given)


def copyto(x: Any, values: Any, /, casting: str = "same_kind", where: Any = True) -> None:
    """Write values to all elements of an array, or to those where a condition is true.

    Args:
        x: the array that changes; may be a view.
        values: array or number that broadcasts to the shape of `x`.
        casting: "same_kind"; conversions that lose the kind raise an error.
        where: boolean array that broadcasts to the shape of `x`.

    Raises:
        DTypeError: the values do not convert to the dtype of `x`.
        ShapeError: the shapes do not broadcast.

    >>> x = tr.zeros(3)
    >>> tr.copyto(x, [1.0, 2.0, 3.0], where=[True, False, True])
    >>> x
    Tensor([1., 0., 3.])
    """
    if casting not in ("same_kind", "no", "equiv", "safe"):
        raise ArgumentError(f"copyto converts with casting='same_kind', got {casting!r}; convert the values first")
    if isinstance(x, np.ndarray):
        np.copyto(x, np.asarray(values), where=np.asarray(where))
        return
    x = _target("copyto", x)
    values = listed(_values(x, values))
    x[...] = values if where is True else choose(listed(where), broadcast_to(values, x.shape), x)


def put(x: Any, indices: Any, values: Any, /, mode: str = "raise") -> None:
    """Write values at indices into the flattened array.

    Args:
        x: the array that changes; may be a view.
        indices: integer array of any shape.
        values: array or number, repeated to the number of indices.
        mode: "raise", or "wrap" or "clip" for indices that are out of bounds.

    Raises:
        AxisError: a known index is out of bounds.
        DTypeError: the indices are not integers, or the values do not convert to the dtype of `x`.

    >>> x = tr.zeros((2, 2))
    >>> tr.put(x, [0, 3], [1.0, 2.0])
    >>> x
    Tensor([[1., 0.],
            [0., 2.]])
    """
    x, at = _target("put", x), ravel(listed(indices))
    if at.spec.dtype.kind not in "iu":
        raise DTypeError(f"put takes integers as indices, got {at.spec!r}; convert with astype(int64)")
    n = x.size
    if mode == "wrap":
        at = at % n
    elif mode == "clip":
        at = choose(at < 0, 0, choose(at >= n, n - 1, at))
    elif mode != "raise":
        raise ArgumentError(f"put knows the modes 'raise', 'wrap' and 'clip', got {mode!r}")
    if x.spec.ndim == 1:
        x[at] = resize(_values(x, values), at.shape)
    else:
        x[unravel_index(choose(at < 0, at + n, at), x.shape)] = resize(_values(x, values), at.shape)


def place(x: Any, /, mask: Any, values: Any) -> None:
    """Write values in order to the elements where a mask is true; they are repeated if there are fewer.

    Args:
        x: the array that changes; may be a view.
        mask: boolean array of the shape of `x`, known when the call is made.
        values: array of at least one element.

    Raises:
        ShapeError: the mask has another shape.
        ArgumentError: there are no values, but elements to write.

    See also:
        `putmask`, which takes the values at the places of the elements.

    >>> x = tr.arange(4)
    >>> tr.place(x, x > 1, [7, 8])
    >>> x
    Tensor([0, 1, 7, 8])
    """
    x, mask = _target("place", x), listed(mask)
    values = ravel(listed(_values(x, values)))
    if mask.spec.shape != x.spec.shape:
        raise ShapeError(f"place takes a mask of the shape of {x.spec!r}, got {mask.spec!r}", shape=mask.spec.shape)
    count = int(catalog.reduce_sum(catalog.convert(mask, dtype=np.dtype("int64")), axes=tuple(range(mask.spec.ndim))))
    if not count:
        return
    if not values.spec.size:
        raise ArgumentError("place has elements to write, but no values; pass at least one")
    x[mask] = resize(values, (count,))


def putmask(x: Any, /, mask: Any, values: Any) -> None:
    """Write to the elements where a mask is true the values at their places in the array of repeated values.

    Args:
        x: the array that changes; may be a view.
        mask: boolean array of the shape of `x`; may be traced.
        values: array, which is flattened and repeated to the size of `x`.

    Raises:
        ShapeError: the mask has another shape.
        DTypeError: the values do not convert to the dtype of `x`.

    >>> x = tr.arange(4)
    >>> tr.putmask(x, x > 1, [7, 8, 9])
    >>> x
    Tensor([0, 1, 9, 7])
    """
    x, mask = _target("putmask", x), listed(mask)
    if mask.spec.shape != x.spec.shape:
        raise ShapeError(f"putmask takes a mask of the shape of {x.spec!r}, got {mask.spec!r}", shape=mask.spec.shape)
    x[...] = choose(mask, resize(_values(x, values), x.shape), x)


def put_along_axis(x: Any, indices: Any, values: Any, axis: int | None) -> None:
    """Write elements at separate indices for each line along an axis.

    Args:
        x: the array that changes; may be a view.
        indices: integer array with as many axes as `x`; the other axes broadcast.
        values: array that broadcasts to the indices.
        axis: axis to index; None for the flattened array.

    Raises:
        ShapeError: the numbers of axes differ.
        DTypeError: the indices are not integers, or the values do not convert to the dtype of `x` without loss.

    See also:
        `take_along_axis`, which reads.

    >>> x = tr.asarray([[1, 2], [3, 4]])
    >>> tr.put_along_axis(x, tr.asarray([[1], [0]]), 9, 1)
    >>> x
    Tensor([[1, 9],
            [9, 4]])
    """
    x, indices = _target("put_along_axis", x), listed(indices)
    if axis is None:
        values = listed(_values(x, values))
        put(x, indices, broadcast_to(values, indices.shape) if values.spec.ndim else values)
        return
    n = x.spec.ndim
    if indices.spec.ndim != n:
        raise ShapeError(f"put_along_axis needs indices with the {n} axes of {x.spec!r}, got {indices.spec!r}")
    if indices.spec.dtype.kind not in "iu":
        raise DTypeError(f"put_along_axis takes integers as indices, got {indices.spec!r}; convert with astype(int64)")
    axis = axis_of("put_along_axis", axis, n)
    x[tuple([indices if a == axis else positions(x, a) for a in range(n)])] = values


def fill_diagonal(x: Any, values: Any, /, wrap: bool = False) -> None:
    """Write to the main diagonal.

    Args:
        x: the array that changes: a matrix, or an array with equal extents; may be a view.
        values: a number, or an array that is repeated along the diagonal.
        wrap: in a matrix of more rows than columns, start the diagonal again after an empty row.

    Raises:
        ShapeError: the array has less than two axes, or more of different extents.

    >>> x = tr.zeros((2, 2))
    >>> tr.fill_diagonal(x, 5.0)
    >>> x
    Tensor([[5., 0.],
            [0., 5.]])
    """
    x = _target("fill_diagonal", x)
    values = listed(_values(x, values))
    shape = x.spec.shape
    if len(shape) < 2 or (len(shape) > 2 and not all(ask(n, "==", shape[0]) for n in shape)):
        raise ShapeError(f"fill_diagonal takes a matrix, or an array with equal extents, got {x.spec!r}", shape=shape)
    if wrap and len(shape) == 2 and ask(shape[0], ">", shape[1]):
        put(x, np.arange(0, int(x.size), int(x.shape[1]) + 1), values)
        return
    part = x
    while part.spec.ndim > 2:  # the diagonal of all axes: of the last two, moved to the end, again and again
        part = diagonal(part)
    part = diagonal(part)
    part[...] = values if not values.spec.ndim else resize(values, part.shape)
