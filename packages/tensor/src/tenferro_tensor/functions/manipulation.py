"""Reshaping and reordering of the elements of one array."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tenferro_tensor import catalog
from tenferro_tensor._primitive import Op
from tenferro_tensor._steps import shaped
from tenferro_tensor.calls import broadcasted, reshaped, swapped
from tenferro_tensor.direct import ANY_SIZE, direct
from tenferro_tensor.functions import _forms
from tenferro_tensor.functions._op_chains import chained, known_ops
from tenferro_tensor.functions._span import span_op
from tenferro_tensor.functions._starts import starts_of
from tenferro_tensor.identity import aliased, apart
from tenferro_tensor.operands import (
    axes_of,
    axis_of,
    converted,
    extent,
    host_elements,
    known_integer,
    shape_of,
    size_of,
    value,
)
from tenferro_tensor.promotion import broadcast_shapes, broadcasts_to, brought
from tenferro_tensor.tables import Table
from tenferro_tensor.views import linked, view
from tenferro_tensor_core import ArgumentError, DimLike, ShapeError, ask, decide, dim_max, floordiv, int64

if TYPE_CHECKING:
    from tenferro_tensor._array import Array

__all__ = [
    "broadcast_arrays",
    "broadcast_shapes",
    "broadcast_to",
    "expand_dims",
    "flip",
    "matrix_transpose",
    "moveaxis",
    "permute_dims",
    "ravel",
    "reshape",
    "roll",
    "squeeze",
    "swapaxes",
]


def __dir__() -> list[str]:
    return __all__.copy()


_RESHAPES: Final = Table("reshapes of known sizes")
_TRANSPOSE_LAST: Final = Table("transposes of the last two axes")


def _put_shape(base: Any, part: Any, *args: Any, **named: Any) -> Any:
    return reshape(part, base.shape)


@view(reshaped, _put_shape, lambda raw, shape, copy=None: np.reshape(raw, shape, copy=False), moves=True)
def reshape(x: Any, /, shape: Any, *, copy: bool | None = None) -> Array:
    """Arrange the elements, in row-major order, in another shape.

    An extent of -1 is inferred. With symbolic extents it becomes a formula, which also holds for calls of the compiled
    function in which an extent is 0.

    Args:
        x: array of any shape and dtype.
        shape: extents of the result, one of which may be -1.
        copy: True always copies, False raises if elements must move, None copies if necessary.

    Returns:
        Array of the given shape and the dtype of `x`.

    Raises:
        ShapeError: the number of elements differs, or -1 is not determined.
        ArgumentError: `copy` is False, but elements must move.

    >>> tr.reshape(tr.arange(6), (2, -1)).shape
    (2, 3)
    """
    if not hasattr(x, "spec"):
        x = value(x)
    if copy is not None:
        return _reshaped_copy(x, shape) if copy else _reshaped_view(x, shape)
    spec = x.spec
    plain = shape.__class__ is tuple and not spec.symbolic
    if plain:
        for d in shape:
            if d.__class__ is not int:
                plain = False
                break
        else:
            op = _RESHAPES.get((spec, shape))
            if op is not None:
                return op(x)
    extents = shape_of(shape)
    if extents == spec.shape:
        return aliased(x)
    op = catalog.reshape.op(shape=_solved(spec, extents))
    out = op(x)
    if plain:
        _RESHAPES.remember((spec, extents), op)
    return out


def _reshaped_copy(x: Any, shape: Any) -> Any:
    return apart(x, reshape(x._copied(), shape))  # copies are in row-major order, so this is a view of the copy


def _reshaped_view(x: Any, shape: Any) -> Any:
    out = reshape(x, shape)
    before, after = host_elements(x), host_elements(out)
    if before is not None and after is not None and before.size and not np.may_share_memory(before, after):
        raise ArgumentError(
            f"{x.spec!r} cannot be reshaped to {out.spec.shape} without a copy, which copy=False forbids: its elements "
            "are not in row-major order; pass copy=None"
        )
    return out


def _solved(spec: Any, extents: tuple[DimLike, ...]) -> tuple[DimLike, ...]:
    holes = [i for i, d in enumerate(extents) if d.__class__ is int and d < 0]
    if not holes:
        return extents
    rest = math.prod([d for i, d in enumerate(extents) if i not in holes])
    if len(holes) > 1 or extents[holes[0]] != -1 or rest == 0:
        raise ShapeError(
            f"reshape of {spec!r} to {extents}: one extent may be -1 and the others must leave it determined; "
            "give the extents",
            shape=spec.shape,
            wanted=extents,
        )
    if not ask(spec.size % rest, "==", 0):
        raise ShapeError(
            f"reshape cannot arrange the {spec.size} elements of {spec!r} as {extents}: {rest} does not divide "
            f"{spec.size}; give a shape with the same number of elements",
            shape=spec.shape,
            wanted=extents,
        )
    return (*extents[: holes[0]], floordiv(spec.size, rest), *extents[holes[0] + 1 :])


@view(_forms.ravel, _put_shape, moves=True, contiguous=True)
def ravel(x: Any, /) -> Array:
    """Flatten an array in row-major order.

    Args:
        x: array of any shape and dtype.

    Returns:
        Vector of the dtype of `x`.

    >>> tr.ravel(tr.asarray([[1, 2], [3, 4]]))
    Tensor([1, 2, 3, 4])
    """
    x = value(x)
    return aliased(x) if x.spec.ndim == 1 else catalog.reshape(x, shape=(x.spec.size,))


def _inverse(axes: Any, ndim: int) -> list[int]:
    return sorted(range(ndim), key=[axis % ndim for axis in axes].__getitem__)


def _put_permuted(base: Any, part: Any, axes: Sequence[int]) -> Any:
    return permute_dims(part, _inverse(axes, base.spec.ndim))


@view(_forms.permute_dims, _put_permuted)
def permute_dims(x: Any, /, axes: Sequence[int]) -> Array:
    """Permute the axes: axis ``i`` of the result is axis ``axes[i]`` of `x`.

    Args:
        x: array of any shape and dtype.
        axes: each axis once, in the new order.

    Returns:
        Array of the dtype of `x`.

    Raises:
        ArgumentError: an axis is missing.
        AxisError: an axis is out of range or repeated.

    See also:
        `transpose`, which reverses the axes by default; `moveaxis`.

    >>> tr.permute_dims(tr.zeros((2, 3, 4)), (2, 0, 1)).shape
    (4, 2, 3)
    """
    x = value(x)
    try:
        axes = tuple(axes)
    except TypeError:
        raise ArgumentError(f"permute_dims takes the axes in their new order, as a tuple, got {axes!r}") from None

    def ops() -> list[Op]:
        permutation = axes_of("permute_dims", axes, x.spec.ndim)
        if len(permutation) != x.spec.ndim:
            raise ArgumentError(
                f"permute_dims needs each of the {x.spec.ndim} axes of {x.spec!r} once, got {axes}", axes=axes
            )
        moved = permutation != tuple(range(x.spec.ndim))
        return [catalog.transpose.op(permutation=permutation)] if moved else []

    return chained("permute_dims", x, (axes,), ops)


def _put_transposed(base: Any, part: Any) -> Any:
    return matrix_transpose(part)


@view(swapped, _put_transposed)
def matrix_transpose(x: Any, /) -> Array:
    """Transpose matrices: swap the last two axes.

    Args:
        x: array of shape (..., m, n).

    Returns:
        Array of shape (..., n, m).

    Raises:
        ShapeError: `x` has fewer than two axes.

    >>> tr.matrix_transpose(tr.zeros((5, 2, 3))).shape
    (5, 3, 2)
    """
    if not hasattr(x, "spec"):
        x = value(x)
    n = x.spec.ndim
    op = _TRANSPOSE_LAST.get(n)
    if op is None:
        if n < 2:
            raise ShapeError(
                f"matrix_transpose needs at least two axes, got {x.spec!r}; reshape to a matrix", shape=x.spec.shape
            )
        op = _TRANSPOSE_LAST[n] = catalog.transpose.op(permutation=(*range(n - 2), n - 1, n - 2))
    return op(x)


def _put_swapped(base: Any, part: Any, axis1: int, axis2: int) -> Any:
    return swapaxes(part, axis1, axis2)


@view(np.ndarray.swapaxes, _put_swapped)
def swapaxes(x: Any, /, axis1: int, axis2: int) -> Array:
    """Swap two axes.

    Args:
        x: array of any shape and dtype.
        axis1: one axis.
        axis2: the other axis.

    Returns:
        Array of the dtype of `x`.

    Raises:
        AxisError: the axis is out of range.

    >>> tr.swapaxes(tr.zeros((2, 3, 4)), 0, 2).shape
    (4, 3, 2)
    """
    x = value(x)
    order = list(range(x.spec.ndim))
    a, b = axis_of("swapaxes", axis1, len(order)), axis_of("swapaxes", axis2, len(order))
    order[a], order[b] = b, a
    return permute_dims(x, order)


def _put_moved(base: Any, part: Any, source: Any, destination: Any) -> Any:
    return moveaxis(part, destination, source)


@view(_forms.moveaxis, _put_moved)
def moveaxis(x: Any, /, source: int | tuple[int, ...], destination: int | tuple[int, ...]) -> Array:
    """Move axes to new positions; the others keep their order.

    Args:
        x: array of any shape and dtype.
        source: axis or axes to move.
        destination: their positions in the result.

    Returns:
        Array of the dtype of `x`.

    Raises:
        ArgumentError: there is not one position for each axis.
        AxisError: an axis is out of range or repeated.

    >>> tr.moveaxis(tr.zeros((2, 3, 4)), 0, -1).shape
    (3, 4, 2)
    """
    x = value(x)
    n = x.spec.ndim
    sources = axes_of("moveaxis", source if isinstance(source, (tuple, list)) else (source,), n)
    places = axes_of("moveaxis", destination if isinstance(destination, (tuple, list)) else (destination,), n)
    if len(sources) != len(places):
        raise ArgumentError(f"moveaxis needs as many places as axes, got source {source} and destination {destination}")
    order = [a for a in range(n) if a not in sources]
    for place, axis in sorted(zip(places, sources, strict=True)):
        order.insert(place, axis)
    return permute_dims(x, order)


@view(_forms.squeeze, _put_shape)
def squeeze(x: Any, /, axis: Any = None) -> Array:
    """Remove axes of extent 1.

    Args:
        x: array of any shape and dtype.
        axis: axis or axes to remove; by default all of extent 1.

    Returns:
        Array of the dtype of `x`.

    Raises:
        ShapeError: an axis does not have extent 1.
        AxisError: an axis is out of range or repeated.

    See also:
        `expand_dims`, the inverse.

    >>> tr.squeeze(tr.zeros((1, 3, 1)), axis=(0, 2)).shape
    (3,)
    """
    x = value(x)
    if axis is None:
        axis = tuple([a for a, d in enumerate(x.spec.shape) if ask(d, "==", 1)])
    axes = axes_of("squeeze", (axis,) if not isinstance(axis, (tuple, list)) else axis, x.spec.ndim)
    for a in axes:
        if not ask(x.spec.shape[a], "==", 1):
            raise ShapeError(
                f"squeeze drops axes of extent 1, but axis {a} of {x.spec!r} has extent {x.spec.shape[a]}; "
                "index or reduce it instead",
                shape=x.spec.shape,
                axis=a,
            )
    if not axes:
        return aliased(x)
    return catalog.reshape(x, shape=tuple([d for i, d in enumerate(x.spec.shape) if i not in axes]))


@view(_forms.expand_dims, _put_shape)
def expand_dims(x: Any, /, axis: Any = 0) -> Array:
    """Insert axes of extent 1.

    Args:
        x: array of any shape and dtype.
        axis: position or positions of the new axes in the result.

    Returns:
        Array of the dtype of `x`.

    Raises:
        AxisError: an axis is out of range or repeated.

    See also:
        `squeeze`, the inverse.

    >>> tr.expand_dims(tr.zeros((2, 3)), axis=1).shape
    (2, 1, 3)
    """
    x = value(x)

    def ops() -> list[Op]:
        given = axis if isinstance(axis, (tuple, list)) else (axis,)
        n = x.spec.ndim + len(given)
        new = axes_of("expand_dims", tuple(given), n)
        old = iter(x.spec.shape)
        return [catalog.reshape.op(shape=tuple([1 if i in new else next(old) for i in range(n)]))]

    return chained("expand_dims", x, (axis,), ops)


@direct(broadcasted, ANY_SIZE)
def broadcast_to(x: Any, /, shape: Any) -> Array:
    """Broadcast an array to a shape.

    Args:
        x: array of any shape and dtype.
        shape: the shape; axes are aligned at the right, and extents are equal or 1.

    Returns:
        Array of the given shape and the dtype of `x`.

    Raises:
        ShapeError: the shape of `x` does not broadcast to it.

    >>> tr.broadcast_to(tr.asarray([1, 2]), (2, 2))
    Tensor([[1, 2],
            [1, 2]])
    """
    x = value(x)
    goal = shape_of(shape)
    if not broadcasts_to(x.spec.shape, goal):
        raise ShapeError(
            f"{x.spec!r} does not broadcast to {goal}; align the axes at the right, with extents equal or 1",
            shape=x.spec.shape,
            wanted=goal,
        )
    return apart(x, brought(x, x.spec.with_(shape=goal)))


@direct(_forms.broadcast_arrays, ANY_SIZE)
def broadcast_arrays(*arrays: Any) -> tuple[Array, ...]:
    """Broadcast arrays to their common shape.

    Args:
        arrays: arrays of any shapes and dtypes.

    Returns:
        A tuple of arrays of that shape.

    Raises:
        ShapeError: the shapes do not broadcast.

    >>> [a.shape for a in tr.broadcast_arrays(tr.zeros((2, 1)), tr.zeros(3))]
    [(2, 3), (2, 3)]
    """
    values = [value(a) for a in arrays]
    if not values:
        return ()
    goal = broadcast_shapes(*[v.spec.shape for v in values])
    return tuple([apart(v, brought(v, v.spec.with_(shape=goal))) for v in values])


def _put_flipped(base: Any, part: Any, axis: Any = None) -> Any:
    return flip(part, axis)


@view(_forms.flip, _put_flipped)
def flip(x: Any, /, axis: Any = None) -> Array:
    """Reverse the order of the elements along axes.

    Args:
        x: array of any shape and dtype.
        axis: axis or axes; by default all.

    Returns:
        Array of the shape and dtype of `x`.

    Raises:
        AxisError: an axis is out of range or repeated.

    >>> tr.flip(tr.asarray([1, 2, 3]))
    Tensor([3, 2, 1])
    """
    x = value(x)

    def ops() -> list[Op]:
        axes = axes_of("flip", axis, x.spec.ndim)
        return [catalog.reverse.op(axes=axes)] if axes else []

    return chained("flip", x, (axis,), ops)


@direct(_forms.roll, ANY_SIZE)
def roll(x: Any, /, shift: Any, axis: Any = None) -> Array:
    """Shift elements cyclically along axes.

    A shift may be a 0-d integer array, which may be traced.

    Args:
        x: array of any shape and dtype.
        shift: number of places, or one for each axis; may be a 0-d integer array, also a traced one.
        axis: axis or axes; by default the flattened array is shifted.

    Returns:
        Array of the shape and dtype of `x`.

    Raises:
        ArgumentError: there is not one shift for each axis.
        AxisError: an axis is out of range or repeated.

    >>> tr.roll(tr.asarray([1, 2, 3]), 1)
    Tensor([3, 1, 2])
    """
    x = value(x)
    if axis is None:
        return apart(x, reshape(roll(ravel(x), shift, axis=0), x.spec.shape))
    axes = axis if isinstance(axis, (tuple, list)) else (axis,)
    shifts = shift if isinstance(shift, (tuple, list)) else (shift,) * len(axes)
    if len(shifts) != len(axes):
        raise ArgumentError(f"roll needs one shift for each axis, got shift {shift} and axis {axis}")
    out = x
    for by, a in zip(shifts, axes, strict=True):
        axis = axis_of("roll", a, x.spec.ndim)
        by = known_integer(by)
        if hasattr(by, "spec"):
            out = _rolled_by_value(out, by, axis)
        else:
            out = _rolled(out, size_of("roll", "shift", by), axis)
    return apart(x, out)


def _rolled_by_value(x: Any, by: Any, axis: int) -> Any:
    """`_rolled` by a shift known only at run time: a block of the array joined with itself."""
    if by.spec.ndim or by.spec.dtype.kind not in "iu":
        raise ArgumentError(f"roll shifts by a single integer along each axis, got {by.spec!r}; pass one for each axis")
    shape = x.spec.shape
    if shape[axis] == 0:
        return x
    first = catalog.remainder(catalog.neg(converted(by, int64)), extent(x, axis))
    starts = starts_of(x, [first if a == axis else 0 for a in range(len(shape))])
    return catalog.dynamic_slice(catalog.concatenate(x, x, axis=axis), *starts, sizes=shape)


def _rolled(x: Any, by: DimLike, axis: int) -> Any:
    n = x.spec.shape[axis]
    if by == 0 or n == 0:
        return x
    if not (decide(by, ">=", 0) and decide(by, "<=", n)):
        by = by % (n if isinstance(n, int) else dim_max(n, 1))
    if by == 0:
        return x

    def ops() -> list[Op]:
        ahead, behind = span_op(x, axis, n - by, n), span_op(x, axis, 0, n - by)
        return [ahead, behind, catalog.concatenate.op(axis=axis)]

    ahead, behind, joined = known_ops("roll", x, (by, axis), ops)
    return joined(ahead(x), behind(x))


def view_in_shape(x: Any, shape: tuple[DimLike, ...]) -> Any:
    """A view with axes of extent 1 inserted.

    Args:
        x: value.
        shape: its shape with these axes.

    Returns:
        A value, never the object `x` itself.
    """
    return linked(x, catalog.reshape(x, shape=shape), shaped(shape))
