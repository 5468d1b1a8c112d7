"""Collective operations between the devices of a mesh, inside functions passed to `shard_map`.

Each works along one or several mesh axes, named from the major one, separately for each group of devices that differ
only in these axes. As functions of the values of all devices, all but `pmax` and `pmin` are linear, and their
derivatives are those of this function: the transpose of a sum over devices is a sum over devices.

The primitives have an operand `place`, a coordinate of the device: it makes even a collective of a constant part of the
program of one device.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeVar

from tenferro_runtime.extension import ArgumentError, AxisError, DTypeError, ShapeError, Spec, primitive
from tenferro_runtime.ir import here
from tenferro_runtime.trees import map_tree
from tenferro_tensor import Array
from tenferro_tensor.functions import asarray
from tenferro_xla.mesh import _region
from tenferro_xla.mesh._spec import MeshAxes, shown

T = TypeVar("T")

__all__ = [
    "all_gather", "all_to_all", "axis_index", "axis_size", "pmax", "pmean", "pmin", "ppermute", "psum",
    "reduce_scatter",
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__.copy()


Names = str | tuple[str, ...]


def size_of(axes: MeshAxes) -> int:
    """Return the number of devices that communicate."""
    return math.prod(n for _, n in axes)


def _require_numbers(name: str, x: Spec) -> None:
    if x.dtype.kind == "b":
        raise DTypeError(f"{name} requires numbers, got {x!r}; convert booleans to integers first", dtype="bool")


@primitive(family="tenferro-xla.sum_devices.v1", extension="xla")
def sum_devices(x: Spec, place: Spec, *, axes: MeshAxes) -> Spec:
    """The sum over devices, on all of them."""
    _require_numbers("a sum over devices", x)
    return x


@primitive(family="tenferro-xla.extreme_device.v1", extension="xla")
def extreme_device(x: Spec, place: Spec, *, axes: MeshAxes, kind: str) -> Spec:
    """The maximum or minimum over devices (`kind` is ``"maximum"`` or ``"minimum"``), on all of them."""
    _require_numbers(f"the {kind} over devices", x)
    if x.cplx:
        raise DTypeError(f"complex numbers have no {kind}, got {x!r}", dtype=x.dtype.name)
    return x


@primitive(family="tenferro-xla.gather_parts.v1", extension="xla")
def gather_parts(x: Spec, place: Spec, *, axes: MeshAxes, axis: int) -> Spec:
    """The parts of all devices, joined along `axis`."""
    return x.with_(shape=_scaled(x, axis, size_of(axes)))


@primitive(family="tenferro-xla.sum_parts.v1", extension="xla")
def sum_parts(x: Spec, place: Spec, *, axes: MeshAxes, axis: int) -> Spec:
    """The sum over devices, of which each device gets its part along `axis`."""
    _require_numbers("reduce_scatter", x)
    return x.with_(shape=_divided("reduce_scatter", x, axis, axes))


@primitive(family="tenferro-xla.permute_devices.v1", extension="xla")
def permute_devices(x: Spec, place: Spec, *, axes: MeshAxes, pairs: tuple[tuple[int, int], ...]) -> Spec:
    """The value of another device: `source` sends to `target` for each pair; devices without a source get zeros."""
    return x


@primitive(family="tenferro-xla.exchange_parts.v1", extension="xla")
def exchange_parts(x: Spec, place: Spec, *, axes: MeshAxes, split: int, joined: int) -> Spec:
    """Part k along `split` goes to device k, which concatenates the received parts along `joined`."""
    parts = _divided("all_to_all", x, split, axes)
    return x.with_(shape=_scaled(x.with_(shape=parts), joined, size_of(axes)))


def _scaled(x: Spec, axis: int, n: int) -> tuple[Any, ...]:
    return tuple([d * n if i == axis else d for i, d in enumerate(x.shape)])


def _divided(name: str, x: Spec, axis: int, axes: MeshAxes) -> tuple[Any, ...]:
    n = size_of(axes)
    if x.shape[axis] % n != 0:
        raise ShapeError(
            f"{name} along {shown(axes)} splits axis {axis} of {x!r} between {n} devices{here()}, but {x.shape[axis]} "
            f"is not a multiple of {n}; pad it",
            extent=x.shape[axis],
            devices=n,
        )
    return tuple([d // n if i == axis else d for i, d in enumerate(x.shape)])


def _axis_of(name: str, x: Any, axis: int) -> int:
    n: int = x.spec.ndim
    if not -n <= axis < n:
        raise AxisError(f"{name}: {x.spec!r} has no axis {axis}{here()}", axis=axis)
    return axis % n


def psum(x: T, axes: Names) -> T:
    """Sum over the devices along mesh axes.

    Args:
        x: an array of any shape and a numeric dtype, or arrays in any containers.
        axes: the name of a mesh axis, or a tuple of names.

    Returns:
        The sum, equal on all these devices; arrays of the same shapes and dtypes in the same containers.

    Raises:
        ArgumentError: the call is outside a function passed to `shard_map`.
        AxisError: the mesh has no such axis.
        DTypeError: an array is boolean.

    See also:
        `pmean`, `pmax`, `pmin` and `reduce_scatter`.

    >>> import tenferro_runtime as tr
    >>> from tenferro_xla.mesh import P, shard_map
    >>> total = shard_map(lambda x: psum(tr.sum(x), "data"), {"data": 2}, P("data"), P())
    >>> total(tr.asarray([1.0, 2.0, 3.0, 4.0]))
    Tensor(10.)
    """
    along = _region.axes_named("psum", axes)
    return map_tree(lambda leaf: sum_devices(asarray(leaf), _place(), axes=along), x)


def pmean(x: T, axes: Names) -> T:
    """Average over the devices along mesh axes.

    Args:
        x: an array of any shape and a numeric dtype, or arrays in any containers.
        axes: the name of a mesh axis, or a tuple of names.

    Returns:
        The mean, equal on all these devices; arrays of the same shapes in the same containers, in the dtype of a
        division.

    Raises:
        ArgumentError: the call is outside a function passed to `shard_map`.
        AxisError: the mesh has no such axis.
        DTypeError: an array is boolean.

    See also:
        `psum`.
    """
    along = _region.axes_named("pmean", axes)
    return map_tree(lambda leaf: sum_devices(asarray(leaf), _place(), axes=along) / size_of(along), x)


def pmax(x: T, axes: Names) -> T:
    """Element-wise maximum over the devices along mesh axes; equal maxima share the derivative.

    Args:
        x: an array of any shape and a real dtype, or arrays in any containers.
        axes: the name of a mesh axis, or a tuple of names.

    Returns:
        The maximum, equal on all these devices; arrays of the same shapes and dtypes in the same containers.

    Raises:
        ArgumentError: the call is outside a function passed to `shard_map`.
        AxisError: the mesh has no such axis.
        DTypeError: an array is boolean or complex.

    See also:
        `pmin` and `psum`.
    """
    along = _region.axes_named("pmax", axes)
    return map_tree(lambda leaf: extreme_device(asarray(leaf), _place(), axes=along, kind="maximum"), x)


def pmin(x: T, axes: Names) -> T:
    """Element-wise minimum over the devices along mesh axes; equal minima share the derivative.

    Args:
        x: an array of any shape and a real dtype, or arrays in any containers.
        axes: the name of a mesh axis, or a tuple of names.

    Returns:
        The minimum, equal on all these devices; arrays of the same shapes and dtypes in the same containers.

    Raises:
        ArgumentError: the call is outside a function passed to `shard_map`.
        AxisError: the mesh has no such axis.
        DTypeError: an array is boolean or complex.

    See also:
        `pmax` and `psum`.
    """
    along = _region.axes_named("pmin", axes)
    return map_tree(lambda leaf: extreme_device(asarray(leaf), _place(), axes=along, kind="minimum"), x)


def all_gather(x: T, axes: Names, axis: int = 0) -> T:
    """Concatenate the parts of all devices along mesh axes.

    Args:
        x: an array of any dtype with at least one axis.
        axes: the name of a mesh axis, or a tuple of names.
        axis: axis of the array along which the parts are concatenated, in the order of the devices.

    Returns:
        The whole array, equal on all these devices: of the same dtype, with the extent of `axis` multiplied by the
        number of devices.

    Raises:
        ArgumentError: the call is outside a function passed to `shard_map`.
        AxisError: the mesh or the array has no such axis.

    See also:
        `reduce_scatter`, its transpose.


    >>> import tenferro_runtime as tr
    >>> from tenferro_xla.mesh import P, shard_map
    >>> whole = shard_map(lambda x: all_gather(x, "data"), {"data": 2}, P("data"), P())
    >>> whole(tr.asarray([1.0, 2.0, 3.0, 4.0]))
    Tensor([1., 2., 3., 4.])
    """
    along, value = _region.axes_named("all_gather", axes), asarray(x)
    return gather_parts(value, _place(), axes=along, axis=_axis_of("all_gather", value, axis))


def reduce_scatter(x: T, axes: Names, axis: int = 0) -> T:
    """Sum over the devices along mesh axes and split the sum between them.

    Args:
        x: an array of a numeric dtype with at least one axis.
        axes: the name of a mesh axis, or a tuple of names.
        axis: axis of the array that is split; its extent is a multiple of the number of devices.

    Returns:
        The part of this device: of the same dtype, with the extent of `axis` divided by the number of devices.

    Raises:
        ArgumentError: the call is outside a function passed to `shard_map`.
        AxisError: the mesh or the array has no such axis.
        DTypeError: the array is boolean.
        ShapeError: the extent is not a multiple of the number of devices.

    See also:
        `all_gather`, its transpose, and `psum`.
    """
    along, value = _region.axes_named("reduce_scatter", axes), asarray(x)
    return sum_parts(value, _place(), axes=along, axis=_axis_of("reduce_scatter", value, axis))


def ppermute(x: T, axes: Names, perm: Sequence[tuple[int, int]]) -> T:
    """Send arrays between the devices along mesh axes.

    Args:
        x: an array of any shape and dtype.
        axes: the name of a mesh axis, or a tuple of names.
        perm: pairs (source, target) of indices along the axes.

    Returns:
        The received array, of the same shape and dtype; zeros on a device that is not a target.

    Raises:
        ArgumentError: an index is out of range, or occurs twice as a source or as a target; or the call is outside a
            function passed to `shard_map`.
        AxisError: the mesh has no such axis.
    """
    along, value = _region.axes_named("ppermute", axes), asarray(x)
    pairs = tuple([(int(a), int(b)) for a, b in perm])
    n = size_of(along)
    for what, found in (("source", [a for a, _ in pairs]), ("target", [b for _, b in pairs])):
        if len(set(found)) < len(found) or not all(0 <= i < n for i in found):
            raise ArgumentError(
                f"perm of ppermute has the {what}s {found}{here()}; they must be distinct indices from 0 to {n - 1}"
            )
    return permute_devices(value, _place(), axes=along, pairs=pairs)


def all_to_all(x: T, axes: Names, split_axis: int, concat_axis: int) -> T:
    """Send a part of the array to each device along mesh axes, and concatenate the received parts.

    Args:
        x: an array of any dtype with at least one axis.
        axes: the name of a mesh axis, or a tuple of names.
        split_axis: axis of the array that is split into one part for each device.
        concat_axis: axis along which the received parts are concatenated, in the order of the devices.

    Returns:
        The array of the received parts: of the same dtype, with the extent of `split_axis` divided and that of
        `concat_axis` multiplied by the number of devices.

    Raises:
        ArgumentError: the call is outside a function passed to `shard_map`.
        AxisError: the mesh or the array has no such axis.
        ShapeError: the extent of `split_axis` is not a multiple of the number of devices.
    """
    along, value = _region.axes_named("all_to_all", axes), asarray(x)
    split, joined = (_axis_of("all_to_all", value, a) for a in (split_axis, concat_axis))
    return exchange_parts(value, _place(), axes=along, split=split, joined=joined)


def _place() -> Any:
    region = _region.current()
    assert region is not None, "names have been looked up in it"
    return region.coordinates[0]


def axis_index(axes: Names) -> Array:
    """Return the index of this device along mesh axes.

    Args:
        axes: the name of a mesh axis, or a tuple of names from the major one, which count as one axis.

    Returns:
        The index from 0, an int64 scalar.

    Raises:
        ArgumentError: the call is outside a function passed to `shard_map`.
        AxisError: the mesh has no such axis.

    See also:
        `axis_size`.
    """
    along = _region.axes_named("axis_index", axes)
    region = _region.current()
    assert region is not None, "names have been looked up in it"
    places = dict(zip([n for n, _ in region.axes], region.coordinates, strict=True))
    index = places[along[0][0]]
    for name, n in along[1:]:
        index = index * n + places[name]
    return index._alias()


def axis_size(axes: Names) -> int:
    """Return the number of devices along mesh axes.

    Args:
        axes: the name of a mesh axis, or a tuple of names.

    Returns:
        The number, a Python integer.

    Raises:
        ArgumentError: the call is outside a function passed to `shard_map`.
        AxisError: the mesh has no such axis.

    See also:
        `axis_index`.
    """
    return size_of(_region.axes_named("axis_size", axes))
