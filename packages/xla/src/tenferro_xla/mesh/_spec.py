"""`PartitionSpec`: the mesh axes along which each axis of an array is split."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from tenferro_runtime.extension import ArgumentError, AxisError, DimLike, ShapeError
from tenferro_runtime.ir import here

MeshAxes = tuple[tuple[str, int], ...]
"""Names and sizes of the axes of a mesh, as stored in programs."""

Split = tuple[tuple[str, ...], ...]
"""For each axis of an array, the mesh axes along which it is split, the major one first; as stored in programs."""


class PartitionSpec:
    """How an array is split over a mesh: one entry for each of its axes.

    An entry is the name of a mesh axis, a tuple of names with the major one first, or ``None`` for an axis that is not
    split. Trailing axes without an entry are not split. The array is replicated over mesh axes that no entry names.

    Args:
        entries: the entries, in the order of the array's axes.

    Attributes:
        entries: the entries.

    Raises:
        ArgumentError: an entry has another type, or a mesh axis occurs twice.

    >>> P("data", None, ("x", "y"))
    P('data', None, ('x', 'y'))
    >>> P("data") == P("data", None)
    True
    """

    __slots__ = ("_key", "entries")
    entries: tuple[str | tuple[str, ...] | None, ...]

    def __init__(self, *entries: str | tuple[str, ...] | None) -> None:
        for e in entries:
            if not (e is None or isinstance(e, str) or (isinstance(e, tuple) and all(isinstance(n, str) for n in e))):
                raise ArgumentError(
                    f"an entry of a PartitionSpec is the name of a mesh axis, a tuple of names or None, got {e!r:.60}"
                )
        names = [n for e in entries for n in names_of(e)]
        for n in names:
            if names.count(n) > 1:
                raise ArgumentError(
                    f"P{entries!r} names the mesh axis {n!r} twice; an array is split along a mesh axis once", axis=n
                )
        self.entries = entries
        key = [names_of(e) for e in entries]
        while key and not key[-1]:
            key.pop()
        self._key: Split = tuple(key)

    def split(self, ndim: int, axes: MeshAxes, what: str = "an array") -> Split:
        """Return the mesh axes along which each axis of an array is split.

        Args:
            ndim: number of axes of the array.
            axes: names and sizes of the axes of the mesh.
            what: name of the array in errors.

        Returns:
            A tuple of names for each axis, the major one first.

        Raises:
            AxisError: there are more entries than axes, or the mesh has no axis of a name.
        """
        if len(self.entries) > ndim:
            raise AxisError(f"{self!r} has {len(self.entries)} entries{here()}, but {what} has {ndim} axes")
        require_names([n for e in self.entries for n in names_of(e)], axes, repr(self))
        found = [names_of(e) for e in self.entries]
        return (*found, *[()] * (ndim - len(found)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PartitionSpec) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def __repr__(self) -> str:
        return f"P({', '.join(map(repr, self.entries))})"

    def __reduce__(self) -> tuple[Any, ...]:
        return PartitionSpec, self.entries


P = PartitionSpec
"""Short for `PartitionSpec`."""


def names_of(entry: str | tuple[str, ...] | None) -> tuple[str, ...]:
    """Return the mesh axes that an entry names."""
    return () if entry is None else (entry,) if isinstance(entry, str) else entry


def require_spec(spec: Any) -> PartitionSpec:
    """Return the argument if it is a `PartitionSpec`.

    Raises:
        ArgumentError: it is not.
    """
    if not isinstance(spec, PartitionSpec):
        raise ArgumentError(f"an array is split by a PartitionSpec, for example P('data', None), got {spec!r:.60}")
    return spec


def spec_of(split: Split) -> PartitionSpec:
    """Return the spec of a result of `PartitionSpec.split`."""
    return PartitionSpec(*[None if not n else n[0] if len(n) == 1 else n for n in split])


def require_names(names: list[str], axes: MeshAxes, what: str) -> None:
    """Check that the mesh has axes of these names.

    Raises:
        AxisError: it lacks one.
    """
    known = dict(axes)
    for n in names:
        if n not in known:
            raise AxisError(
                f"{what} names the mesh axis {n!r}{here()}, but the mesh has {shown(axes)}; use one of these names",
                axis=n,
            )


def shown(axes: MeshAxes) -> str:
    """Format the axes of a mesh.

    >>> shown((("data", 4), ("model", 2)))
    'data=4, model=2'
    """
    return ", ".join(f"{name}={size}" for name, size in axes)


def count(names: tuple[str, ...], axes: MeshAxes) -> int:
    """Return the number of parts along some axes of a mesh."""
    sizes = dict(axes)
    return math.prod(sizes[n] for n in names)


def local_shape(shape: tuple[DimLike, ...], split: Split, axes: MeshAxes, what: str = "an array") -> tuple[Any, ...]:
    """Return the shape of the part on each device.

    Raises:
        ShapeError: an extent is not divisible by the number of parts.
    """
    found = []
    for i, (n, names) in enumerate(zip(shape, split, strict=True)):
        parts = count(names, axes)
        if n % parts != 0:
            raise ShapeError(
                f"axis {i} of {what} has {n} elements, which is not divisible by the {parts} devices along "
                f"{' and '.join(map(repr, names))} ({shown(axes)}){here()}; pad the array to a multiple, or split "
                "another axis",
                axis=i,
                extent=n,
                parts=parts,
            )
        found.append(n // parts)
    return tuple(found)


def global_shape(shape: tuple[DimLike, ...], split: Split, axes: MeshAxes) -> tuple[Any, ...]:
    """Return the shape of the array whose parts have this shape."""
    return tuple([n * count(names, axes) for n, names in zip(shape, split, strict=True)])


def axes_of(mesh: Any) -> MeshAxes:
    """Return names and sizes of the axes of a mesh, or of a mapping from names to sizes.

    Raises:
        ArgumentError: `mesh` is neither, or a size is not a positive integer.
    """
    found = getattr(mesh, "axes", mesh)
    if isinstance(found, Mapping):
        found = tuple(found.items())
    if not isinstance(found, tuple) or not all(
        isinstance(e, tuple) and len(e) == 2 and isinstance(e[0], str) and isinstance(e[1], int) and e[1] >= 1
        for e in found
    ):
        raise ArgumentError(
            f"a mesh is a Mesh, or sizes of axes by name, for example {{'data': 4, 'model': 2}}, got {mesh!r:.80}"
        )
    return found
