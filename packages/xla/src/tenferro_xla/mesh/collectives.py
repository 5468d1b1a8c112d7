"""Exchanges between the devices of a mesh, inside of functions given to `shard_map`.

Each works along one axis of the mesh or several, named first to last from the major one, and separately for each group
of devices that differ in these only. Read as functions of the values of all devices, they are linear but for `pmax` and
`pmin`, and their derivatives are those of that function: the transpose of a sum over devices is a sum over devices.

The primitives have an operand `place`, which is a coordinate of the device: it says that even the exchange of a
constant belongs to the program of one device, and differs between devices.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tenferro_runtime.extension import ArgumentError, AxisError, DTypeError, ShapeError, Spec, primitive
from tenferro_runtime.ir import here
from tenferro_runtime.trees import map_tree
from tenferro_tensor.functions import asarray
from tenferro_xla.mesh import _region
from tenferro_xla.mesh._spec import MeshAxes, shown

__all__ = [
    "all_gather", "all_to_all", "axis_index", "axis_size", "pmax", "pmean", "pmin", "ppermute", "psum",
    "reduce_scatter",
]  # fmt: skip

Names = str | tuple[str, ...]


def size_of(axes: MeshAxes) -> int:
    """The number of devices that exchange."""
    return math.prod(n for _, n in axes)


def _require_numbers(name: str, x: Spec) -> None:
    if x.dtype.kind == "b":
        raise DTypeError(f"{name} needs numbers, got {x!r}; convert booleans to integers first", dtype="bool")


@primitive(family="tenferro-xla.sum_devices.v1", extension="xla")
def sum_devices(x: Spec, place: Spec, *, axes: MeshAxes) -> Spec:
    """The sum over devices, on all of them."""
    _require_numbers("a sum over devices", x)
    return x


@primitive(family="tenferro-xla.extreme_device.v1", extension="xla")
def extreme_device(x: Spec, place: Spec, *, axes: MeshAxes, kind: str) -> Spec:
    """The largest or the least element over devices (`kind` is ``"maximum"`` or ``"minimum"``), on all of them."""
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
    """The part along `axis` of the sum over devices that belongs to each."""
    _require_numbers("reduce_scatter", x)
    return x.with_(shape=_divided("reduce_scatter", x, axis, axes))


@primitive(family="tenferro-xla.permute_devices.v1", extension="xla")
def permute_devices(x: Spec, place: Spec, *, axes: MeshAxes, pairs: tuple[tuple[int, int], ...]) -> Spec:
    """The value of another device: that of `source` goes to `target` for each pair, and others get zeros."""
    return x


@primitive(family="tenferro-xla.exchange_parts.v1", extension="xla")
def exchange_parts(x: Spec, place: Spec, *, axes: MeshAxes, split: int, joined: int) -> Spec:
    """Part number k along `split` goes to device number k; what comes is joined along `joined`."""
    parts = _divided("all_to_all", x, split, axes)
    return x.with_(shape=_scaled(x.with_(shape=parts), joined, size_of(axes)))


def _scaled(x: Spec, axis: int, n: int) -> tuple[Any, ...]:
    return tuple([d * n if i == axis else d for i, d in enumerate(x.shape)])


def _divided(name: str, x: Spec, axis: int, axes: MeshAxes) -> tuple[Any, ...]:
    n = size_of(axes)
    if x.shape[axis] % n != 0:
        raise ShapeError(
            f"{name} along {shown(axes)} shares axis {axis} of {x!r} between {n} devices{here()}, but {x.shape[axis]} "
            f"is no multiple of {n}; pad it",
            extent=x.shape[axis],
            devices=n,
        )
    return tuple([d // n if i == axis else d for i, d in enumerate(x.shape)])


def _axis_of(name: str, x: Any, axis: int) -> int:
    n: int = x.spec.ndim
    if not -n <= axis < n:
        raise AxisError(f"{name}: {x.spec!r} has no axis {axis}{here()}", axis=axis)
    return axis % n


def psum(x: Any, axes: Names) -> Any:
    """The sum over the devices along mesh axes, on all of them.

    Args:
        x: an array, or arrays in any containers.
        axes: the name of a mesh axis, or a tuple of names.

    Raises:
        ArgumentError: the call is outside of a function given to `shard_map`.
        AxisError: the mesh has no such axis.

    >>> import tenferro_runtime as tr
    >>> from tenferro_xla.mesh import P, shard_map
    >>> total = shard_map(lambda x: psum(tr.sum(x), "data"), {"data": 2}, P("data"), P())
    >>> total(tr.asarray([1.0, 2.0, 3.0, 4.0]))
    Tensor(10.)
    """
    along = _region.axes_named("psum", axes)
    return map_tree(lambda leaf: sum_devices(asarray(leaf), _place(), axes=along), x)


def pmean(x: Any, axes: Names) -> Any:
    """The mean over the devices along mesh axes, on all of them; see `psum`."""
    along = _region.axes_named("pmean", axes)
    return map_tree(lambda leaf: sum_devices(asarray(leaf), _place(), axes=along) / size_of(along), x)


def pmax(x: Any, axes: Names) -> Any:
    """The largest element over the devices along mesh axes, on all of them; equal ones share the derivative."""
    along = _region.axes_named("pmax", axes)
    return map_tree(lambda leaf: extreme_device(asarray(leaf), _place(), axes=along, kind="maximum"), x)


def pmin(x: Any, axes: Names) -> Any:
    """The least element over the devices along mesh axes, on all of them; equal ones share the derivative."""
    along = _region.axes_named("pmin", axes)
    return map_tree(lambda leaf: extreme_device(asarray(leaf), _place(), axes=along, kind="minimum"), x)


def all_gather(x: Any, axes: Names, axis: int = 0) -> Any:
    """The parts of all devices joined along an axis of the array, on all of them.

    Args:
        x: an array.
        axes: the name of a mesh axis, or a tuple of names.
        axis: where the parts are joined, in the order of the devices.

    >>> import tenferro_runtime as tr
    >>> from tenferro_xla.mesh import P, shard_map
    >>> whole = shard_map(lambda x: all_gather(x, "data"), {"data": 2}, P("data"), P())
    >>> whole(tr.asarray([1.0, 2.0, 3.0, 4.0]))
    Tensor([1., 2., 3., 4.])
    """
    along, value = _region.axes_named("all_gather", axes), asarray(x)
    return gather_parts(value, _place(), axes=along, axis=_axis_of("all_gather", value, axis))


def reduce_scatter(x: Any, axes: Names, axis: int = 0) -> Any:
    """The sum over devices, of which each keeps its part along an axis of the array.

    Args:
        x: an array.
        axes: the name of a mesh axis, or a tuple of names.
        axis: the axis that is shared, whose extent is a multiple of the number of devices.

    Raises:
        ShapeError: it is not.
    """
    along, value = _region.axes_named("reduce_scatter", axes), asarray(x)
    return sum_parts(value, _place(), axes=along, axis=_axis_of("reduce_scatter", value, axis))


def ppermute(x: Any, axes: Names, perm: Sequence[tuple[int, int]]) -> Any:
    """The value of another device.

    Args:
        x: an array.
        axes: the name of a mesh axis, or a tuple of names.
        perm: pairs (source, target) of indices along the axes; a device that is no target gets zeros.

    Raises:
        ArgumentError: an index is out of range, or occurs twice as a source or as a target.
    """
    along, value = _region.axes_named("ppermute", axes), asarray(x)
    pairs = tuple([(int(a), int(b)) for a, b in perm])
    n = size_of(along)
    for what, found in (("source", [a for a, _ in pairs]), ("target", [b for _, b in pairs])):
        if len(set(found)) < len(found) or not all(0 <= i < n for i in found):
            raise ArgumentError(
                f"perm of ppermute has the {what}s {found}{here()}; each is one of 0 to {n - 1}, and occurs once"
            )
    return permute_devices(value, _place(), axes=along, pairs=pairs)


def all_to_all(x: Any, axes: Names, split_axis: int, concat_axis: int) -> Any:
    """Each device sends a part of its array to each other one, and joins what it gets.

    Args:
        x: an array.
        axes: the name of a mesh axis, or a tuple of names.
        split_axis: the axis that is cut into one part for each device.
        concat_axis: the axis along which the parts that come are joined, in the order of the devices.

    Raises:
        ShapeError: the extent of `split_axis` is no multiple of the number of devices.
    """
    along, value = _region.axes_named("all_to_all", axes), asarray(x)
    split, joined = (_axis_of("all_to_all", value, a) for a in (split_axis, concat_axis))
    return exchange_parts(value, _place(), axes=along, split=split, joined=joined)


def _place() -> Any:
    region = _region.current()
    assert region is not None, "names have been looked up in it"
    return region.coordinates[0]


def axis_index(axes: Names) -> Any:
    """The index of the device along mesh axes, an integer from 0 on; several axes count as one, the first the major."""
    along = _region.axes_named("axis_index", axes)
    region = _region.current()
    assert region is not None, "names have been looked up in it"
    places = dict(zip([n for n, _ in region.axes], region.coordinates, strict=True))
    index = places[along[0][0]]
    for name, n in along[1:]:
        index = index * n + places[name]
    return index._alias()


def axis_size(axes: Names) -> int:
    """The number of devices along mesh axes."""
    return size_of(_region.axes_named("axis_size", axes))
