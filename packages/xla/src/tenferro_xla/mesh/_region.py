"""The context of tracing a program of one device: the axes of its mesh, and the coordinates of the device."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final, NamedTuple

from tenferro_runtime.extension import ArgumentError
from tenferro_runtime.ir import here
from tenferro_xla.mesh._spec import MeshAxes, require_names


class DeviceRegion(NamedTuple):
    """The body of a `shard_map` that is being traced.

    Attributes:
        axes: names and sizes of the axes of the mesh.
        coordinates: index of the device along each axis, traced integers.
    """

    axes: MeshAxes
    coordinates: tuple[Any, ...]


_region: Final[ContextVar[DeviceRegion | None]] = ContextVar("tenferro_xla region", default=None)


def current() -> DeviceRegion | None:
    """Return the region that is being traced, or ``None``."""
    return _region.get()


@contextmanager
def recorded(region: DeviceRegion) -> Iterator[None]:
    """Set the current region while the body of a `shard_map` is traced."""
    token = _region.set(region)
    try:
        yield
    finally:
        _region.reset(token)


def axes_named(what: str, names: Any) -> MeshAxes:
    """Return names and sizes of the axes that a collective works along, in the given order.

    Raises:
        ArgumentError: no body of `shard_map` is being traced, or `names` is not a name or a tuple of distinct names.
        AxisError: the mesh has no axis of this name.
    """
    region = current()
    if region is None:
        raise ArgumentError(
            f"{what} is called{here()} outside a function passed to shard_map; only there does each device have its "
            "own values, and do the axes of a mesh have names"
        )
    found = (names,) if isinstance(names, str) else names
    if not isinstance(found, tuple) or not found or not all(isinstance(n, str) for n in found):
        raise ArgumentError(f"{what} takes the name of a mesh axis or a tuple of names{here()}, got {names!r:.60}")
    if len(set(found)) < len(found):
        raise ArgumentError(f"{what} names a mesh axis twice{here()}: {found!r}")
    require_names(list(found), region.axes, what)
    sizes = dict(region.axes)
    return tuple([(n, sizes[n]) for n in found])
