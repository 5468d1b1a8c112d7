"""Joining, splitting, repeating and padding."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from tenferro_tensor import catalog
from tenferro_tensor._primitive import Op
from tenferro_tensor.calls import joined
from tenferro_tensor.direct import ANY_SIZE, direct
from tenferro_tensor.functions import _forms
from tenferro_tensor.functions._op_chains import chained
from tenferro_tensor.functions._span import layer_view, span_view
from tenferro_tensor.functions.manipulation import expand_dims, ravel
from tenferro_tensor.functions.reading import take
from tenferro_tensor.identity import aliased
from tenferro_tensor.operands import alike, axis_of, host_elements, shape_of, size_of, value
from tenferro_tensor_core import (
    ArgumentError,
    Dim,
    DimLike,
    PlacementError,
    ShapeError,
    TracingError,
    as_size,
    ask,
    bool_,
    dim_max,
    dim_min,
    floordiv,
    specialise,
)

if TYPE_CHECKING:
    from tenferro_tensor._array import Array

__all__ = ["concat", "pad", "repeat", "split", "stack", "tile", "unstack"]


def __dir__() -> list[str]:
    return __all__.copy()


@direct(joined)
def concat(arrays: Sequence[Any], /, axis: int | None = 0) -> Array:
    """Join arrays along an existing axis, in the promoted dtype.

    Args:
        arrays: sequence of arrays whose other extents are equal.
        axis: axis to join along; None joins the flattened arrays.

    Returns:
        Array whose extent along the axis is the sum of the extents.

    Raises:
        ShapeError: other extents differ.
        AxisError: the axis is out of range.
        ArgumentError: the sequence is empty.

    See also:
        `stack`, which adds an axis.

    >>> tr.concat([tr.asarray([1, 2]), tr.asarray([3])])
    Tensor([1, 2, 3])
    """
    values = _several("concat", arrays)
    if axis is None:
        values, axis = [ravel(v) for v in values], 0
    if len(values) == 1:
        axis_of("concat", axis, values[0].spec.ndim)
        return aliased(values[0])
    return catalog.concatenate(*values, axis=axis_of("concat", axis, values[0].spec.ndim))


def _several(name: str, arrays: Sequence[Any]) -> list[Any]:
    if not isinstance(arrays, (tuple, list)) and not (hasattr(arrays, "ndim") and arrays.ndim):
        raise ArgumentError(f"{name} takes a list or tuple of arrays, got a {type(arrays).__name__}")
    found = list(arrays)
    if not found:
        raise ArgumentError(f"{name} needs at least one array, got an empty sequence; pass the arrays to join")
    return alike(*[value(a) for a in found])


@direct(_forms.stack)
def stack(arrays: Sequence[Any], /, axis: int = 0) -> Array:
    """Join arrays of one shape along a new axis, in the promoted dtype.

    Args:
        arrays: sequence of arrays of one shape.
        axis: position of the new axis in the result.

    Returns:
        Array with one more axis, whose extent is the number of arrays.

    Raises:
        ShapeError: the shapes differ.
        AxisError: the axis is out of range.
        ArgumentError: the sequence is empty.

    See also:
        `concat`, which joins along an existing axis; `unstack`, the inverse.

    >>> tr.stack([tr.asarray([1, 2]), tr.asarray([3, 4])])
    Tensor([[1, 2],
            [3, 4]])
    """
    values = _several("stack", arrays)
    axis = axis_of("stack", axis, values[0].spec.ndim + 1)
    for i, v in enumerate(values):
        if v.spec.ndim != values[0].spec.ndim or not all(
            ask(a, "==", b) for a, b in zip(v.spec.shape, values[0].spec.shape, strict=True)
        ):
            raise ShapeError(
                f"stack needs arrays of one shape, but array 0 is {values[0].spec!r} and array {i} is {v.spec!r}; "
                "broadcast them first, or join them along an axis with concat",
                shapes=tuple(v.spec.shape for v in values),
            )
    return catalog.concatenate(*[expand_dims(v, axis=axis) for v in values], axis=axis)


@direct(_forms.unstack, ANY_SIZE, views=True)
def unstack(x: Any, /, axis: int = 0) -> tuple[Array, ...]:
    """Split an array into its slices along an axis.

    Args:
        x: array with at least one axis.
        axis: axis to remove.

    Returns:
        A tuple of arrays without that axis.

    Raises:
        AxisError: the axis is out of range.

    See also:
        `stack`, the inverse.

    >>> tr.unstack(tr.asarray([[1, 2], [3, 4]]))
    (Tensor([1, 2]), Tensor([3, 4]))
    """
    x = value(x)
    axis = axis_of("unstack", axis, x.spec.ndim)
    n = specialise(x.spec.shape[axis], f"unstack(axis={axis})")
    return tuple([layer_view(x, axis, i) for i in range(n)])


@direct(_forms.split, ANY_SIZE, views=True)
def split(x: Any, /, indices_or_sections: Any, axis: int = 0) -> list[Array]:
    """Split an array along an axis into equal parts, or at given indices.

    Args:
        x: array with at least one axis.
        indices_or_sections: number of equal parts, or a list of the indices to split before.
        axis: axis to split.

    Returns:
        A list of arrays.

    Raises:
        ShapeError: the extent is not divisible by the number of parts.
        AxisError: the axis is out of range.

    See also:
        `array_split`, whose parts may differ in size.

    >>> tr.split(tr.arange(5), [2, 3])
    [Tensor([0, 1]), Tensor([2]), Tensor([3, 4])]
    """
    x = value(x)
    axis = axis_of("split", axis, x.spec.ndim)
    n = x.spec.shape[axis]
    if isinstance(indices_or_sections, (int, np.integer)):
        parts = int(indices_or_sections)
        if parts < 1 or not ask(n % parts, "==", 0):
            raise ShapeError(
                f"split cannot cut extent {n} of axis {axis} into {parts} equal parts; give the cut indices instead",
                extent=n,
                parts=parts,
            )
        each = floordiv(n, parts)
        cuts = [each * i for i in range(parts + 1)]
    else:
        if not isinstance(indices_or_sections, (tuple, list, np.ndarray)):
            raise ArgumentError(f"split takes a number of parts or a list of cut indices, got {indices_or_sections!r}")
        at = [size_of("split", "cut index", i) for i in indices_or_sections]
        inner = [dim_min(i, n) if ask(i, ">=", 0) else dim_max(n + i, 0) for i in at]
        cuts = [0, *inner, n]
    return [span_view(x, axis, a, dim_max(a, b)) for a, b in pairwise(cuts)]


@direct(_forms.repeat, ANY_SIZE)
def repeat(x: Any, /, repeats: Any, axis: int | None = None) -> Array:
    """Repeat each element along an axis.

    `repeats` is one number, or one for each index of the axis (known when the call is made).

    Args:
        x: array of any shape and dtype.
        repeats: one number, or one for each index of the axis, known when the call is made.
        axis: axis to repeat along; by default the array is flattened.

    Returns:
        Array of the dtype of `x`.

    Raises:
        ArgumentError: a number is negative or not an integer.
        TracingError: `repeats` is unknown while tracing.
        AxisError: the axis is out of range.

    See also:
        `tile`, which repeats the whole array.

    >>> tr.repeat(tr.asarray([1, 2]), 2)
    Tensor([1, 1, 2, 2])
    """
    x = value(x)
    if axis is None:
        x, axis = ravel(x), 0
    axis = axis_of("repeat", axis, x.spec.ndim)
    n = as_size(repeats)
    if isinstance(n, Dim):
        return _repeated(x, n, axis)
    times = host_elements(repeats)
    if times is None and not repeats.spec.place.on_host:
        raise PlacementError(
            f"repeat counts in main memory, but `repeats` is in {repeats.spec.place.memory_space} memory; move it with "
            "to_device('cpu:0')",
            memory_space=repeats.spec.place.memory_space.kind,
        )
    if times is None:
        raise TracingError(
            "repeat has a result whose size depends on `repeats`, which is not known while tracing or under vmap; pass "
            "integers, or a static argument"
        )
    if times.dtype.kind not in "iu" or (times < 0).any() or times.ndim > 1:
        raise ArgumentError(f"repeat takes one count or a vector of counts, integers of at least 0, got {times!r}")
    shape = x.spec.shape
    if times.size == 1:
        return _repeated(x, int(times.reshape(())), axis)
    if not ask(shape[axis], "==", times.size):
        raise ShapeError(
            f"repeat needs one count for each of the {shape[axis]} indices of axis {axis}, got {times.size}",
            extent=shape[axis],
            counts=times.size,
        )
    return take(x, np.repeat(np.arange(times.size), times), axis=axis)


def _repeated(x: Any, times: DimLike, axis: int) -> Any:
    shape = x.spec.shape
    before, after = shape[: axis + 1], shape[axis + 1 :]

    def ops() -> list[Op]:
        return [
            catalog.broadcast_in_dim.op(
                shape=(*before, times, *after), dims=tuple([a + (a > axis) for a in range(len(shape))])
            ),
            catalog.reshape.op(shape=(*shape[:axis], shape[axis] * times, *after)),
        ]

    return chained("repeat", x, (times, axis), ops)


@direct(_forms.tile)
def tile(x: Any, /, reps: Any) -> Array:
    """Repeat a whole array along its axes.

    Args:
        x: array of any shape and dtype.
        reps: number of repetitions along each axis, aligned at the right.

    Returns:
        Array of the dtype of `x`.

    Raises:
        ArgumentError: a number is negative.

    See also:
        `repeat`, which repeats single elements.

    >>> tr.tile(tr.asarray([1, 2]), (2,))
    Tensor([1, 2, 1, 2])
    """
    x = value(x)

    def ops() -> list[Op]:
        times = shape_of(reps)
        n = max(len(times), x.spec.ndim)
        times = (1,) * (n - len(times)) + times
        if any(r.__class__ is int and r < 0 for r in times):
            raise ArgumentError(f"tile takes numbers of repetitions of at least 0, got {reps!r}")
        lead = n - x.spec.ndim
        shape = (1,) * lead + x.spec.shape
        pairs = [d for r, s in zip(times, shape, strict=True) for d in (r, s)]
        return [
            catalog.broadcast_in_dim.op(shape=tuple(pairs), dims=tuple(range(2 * lead + 1, 2 * n, 2))),
            catalog.reshape.op(shape=tuple([r * s for r, s in zip(times, shape, strict=True)])),
        ]

    return chained("tile", x, (reps,), ops)


def _pairs(x: Any, given: Any) -> list[list[DimLike]]:
    """The padding widths before and after each axis, which may be symbolic."""
    table = np.asarray(_plain(given), dtype=object)
    try:
        widths = np.broadcast_to(table, (x.spec.ndim, 2)).tolist()
    except ValueError:
        raise ShapeError(
            f"pad needs (before, after) for each of the {x.spec.ndim} axes of {x.spec!r}, one pair or one integer, "
            f"got {given!r}",
            shape=x.spec.shape,
        ) from None
    return [[size_of("pad", "width", w) for w in pair] for pair in widths]


def _plain(given: Any) -> Any:
    return [_plain(g) for g in given] if isinstance(given, (tuple, list)) else as_size(given)


@direct(_forms.pad, ANY_SIZE)
def pad(x: Any, pad_width: Any, mode: str = "constant", *, constant_values: Any = 0) -> Array:
    """Surround an array with constants.

    Args:
        x: array of any shape and dtype.
        pad_width: ``(before, after)`` for each axis, one pair for all axes, or one integer for all sides.
        mode: ``"constant"`` only.
        constant_values: the constant.

    Returns:
        The padded array, in the dtype of `x` unless the constant needs a wider one.

    Raises:
        ArgumentError: a width is negative, or the mode is another one.
        ShapeError: there is not one pair for each axis.

    >>> tr.pad(tr.asarray([1, 2]), (1, 2))
    Tensor([0, 1, 2, 0, 0])
    """
    if mode != "constant":
        raise ArgumentError(
            f"pad knows mode='constant' only, got {mode!r}; build others with concat and flip", mode=mode
        )
    x = value(x)
    widths = _pairs(x, pad_width)
    if any(ask(w, "<", 0) for pair in widths for w in pair):
        raise ArgumentError(f"pad takes widths of at least 0, got {pad_width!r}; slice to crop")
    if x.spec.dtype == bool_ and constant_values.__class__ is int:
        constant_values = bool(constant_values)
    inner, fill = alike(x, constant_values)
    return catalog.pad(
        inner,
        fill,
        low=tuple([a for a, _ in widths]),
        high=tuple([b for _, b in widths]),
        interior=(0,) * x.spec.ndim,
    )
