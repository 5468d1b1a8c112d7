"""`ShardedArray`: an array with its parts on the devices of a mesh."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from tenferro_runtime.extension import ArgumentError, PlacementError, Spec, Tensor
from tenferro_tensor_core.forks import importing
from tenferro_xla._jax_modules import wide_numbers
from tenferro_xla.distributed import losses_named
from tenferro_xla.mesh._grid import DeviceGrid
from tenferro_xla.mesh._spec import PartitionSpec, local_shape, require_spec, shown


@dataclass(frozen=True, slots=True)
class Shard:
    """The part of an array on one device of this process.

    Attributes:
        index: position of the part in the whole array, a slice for each axis.
        data: copy of its elements in main memory.
        device: the JAX device.
        replica: index among the devices that have this part, from 0.
    """

    index: tuple[slice, ...]
    data: Tensor
    device: Any
    replica: int


class ShardedArray:
    """An array that is split over the devices of a mesh, or replicated on them.

    Made by `Mesh.shard`, `Mesh.replicate`, `from_callback` and functions compiled for a mesh. Only functions compiled
    for a mesh take it as an argument; `gather` copies it to main memory, and nothing does so implicitly.

    Attributes:
        mesh: the mesh.
        spec: how the array is split.
        array: the ``jax.Array`` with its parts.
    """

    __slots__ = ("array", "mesh", "spec")

    mesh: DeviceGrid
    spec: PartitionSpec
    array: Any

    def __init__(self, mesh: DeviceGrid, spec: PartitionSpec, array: Any) -> None:
        self.mesh, self.spec, self.array = mesh, spec, array

    @staticmethod
    def from_callback(
        mesh: DeviceGrid, shape: tuple[int, ...], spec: PartitionSpec, part: Callable[[tuple[slice, ...]], Any]
    ) -> ShardedArray:
        """Make an array from a function that returns its parts; no process needs the whole array.

        Args:
            mesh: the mesh.
            shape: shape of the whole array.
            spec: how to split it.
            part: called with a slice for each axis, for each part on a device of this process; returns the elements of
                the part, which are copied.

        Returns:
            The array, of the given shape and the dtype of the parts.

        Raises:
            AxisError: the spec names an axis that the mesh or the array does not have.
            ShapeError: an extent is not divisible by the number of parts.
            ArgumentError: `part` returned a wrong shape, or different dtypes.

        >>> from tenferro_xla.mesh import Mesh, P
        >>> mesh = Mesh({"data": 1})
        >>> x = ShardedArray.from_callback(mesh, (4,), P("data"), lambda index: np.arange(4.0)[index])
        >>> x.gather()
        Tensor([0., 1., 2., 3.])
        """
        split = require_spec(spec).split(len(shape), mesh.axes)
        local = local_shape(tuple(shape), split, mesh.axes, "the array")
        with importing():
            import jax
        kinds: set[np.dtype[Any]] = set()

        def checked(index: tuple[slice, ...]) -> np.ndarray[Any, Any]:
            full = tuple([slice(*s.indices(n)[:2]) for s, n in zip(index, shape, strict=True)])
            found = part(full)
            x = np.array(found._concrete() if isinstance(found, Tensor) else found)
            kinds.add(x.dtype)
            if x.shape != local or len(kinds) > 1:
                raise ArgumentError(
                    f"the part {_shown(full)} has shape {local}, but the function returned {x.dtype.name}{x.shape}"
                    + (f" after {[k.name for k in kinds - {x.dtype}]}" if len(kinds) > 1 else ""),
                    index=_shown(full),
                )
            return x

        with wide_numbers():
            array = jax.make_array_from_callback(tuple(shape), mesh.sharding(spec), checked)
        return ShardedArray(mesh, spec, array)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the whole array."""
        return tuple(self.array.shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the elements."""
        found: np.dtype[Any] = np.dtype(self.array.dtype)
        return found

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.array.shape)

    @property
    def local_shape(self) -> tuple[int, ...]:
        """The shape of the part on each device."""
        return self.mesh.local_shape(self.shape, self.spec)

    @property
    def shards(self) -> tuple[Shard, ...]:
        """The parts on the devices of this process, each as a copy in main memory."""
        shape = self.shape
        return tuple(
            [
                Shard(
                    tuple([slice(*s.indices(n)[:2]) for s, n in zip(shard.index, shape, strict=True)]),
                    _tensor(shard.data),
                    shard.device,
                    shard.replica_id,
                )
                for shard in self.array.addressable_shards
            ]
        )

    def gather(self) -> Tensor:
        """Copy the whole array to main memory; in a run of several processes, all of them must call this.

        Returns:
            The tensor, of the same shape and dtype.

        Raises:
            ProcessLostError: another process of the run is lost.
        """
        array = self.array
        if not array.is_fully_addressable:
            array = self.reshard(PartitionSpec()).array.addressable_data(0)
        return _tensor(array)

    def reshard(self, spec: PartitionSpec, mesh: DeviceGrid | None = None) -> ShardedArray:
        """Split the array in another way, or over another mesh of this process.

        Args:
            spec: how to split it.
            mesh: the mesh; by default the mesh of the array.

        Returns:
            The array, of the same shape and dtype.

        Raises:
            AxisError: the spec names an axis that the mesh or the array does not have.
            ShapeError: an extent is not divisible by the number of parts.
            ProcessLostError: another process of the run is lost.
        """
        mesh = self.mesh if mesh is None else mesh
        mesh.local_shape(self.shape, spec)
        with importing():
            import jax
        with wide_numbers(), losses_named():
            if self.array.is_fully_addressable:
                array = jax.device_put(self.array, mesh.sharding(spec), may_alias=False)
            else:
                array = mesh.in_turn(jax.jit(_same, out_shardings=mesh.sharding(spec)), self.array)
        return ShardedArray(mesh, spec, array)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NoReturn:
        raise PlacementError(
            f"{self!r} is on {self.mesh.size} devices and is not copied to main memory implicitly; use x.gather(), or "
            "x.shards for the parts of this process"
        )

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        extents = ",".join(map(str, self.shape))
        return f"ShardedArray({self.dtype.name}[{extents}], {self.spec!r} of {shown(self.mesh.axes)})"

    def _repr_html_(self) -> str:
        with importing():
            from tenferro_tensor.markup import card, element
            from tenferro_xla.mesh._picture import sharding_picture
        devices = f" · {self.mesh.size} devices, each has {list(self.local_shape)}"
        return card(element("b", repr(self)), element("span", devices), sharding_picture(self.array))


def _same(x: Any) -> Any:
    return x


def _tensor(array: Any) -> Tensor:
    """Copy a JAX array, which may be donated later, to a tensor."""
    with losses_named():  # by the computation of the array
        own = np.array(array)
    return Tensor.wrap(own, Spec(own.shape, own.dtype))


def _shown(index: tuple[slice, ...]) -> str:
    return f"[{', '.join(f'{s.start}:{s.stop}' for s in index)}]"
