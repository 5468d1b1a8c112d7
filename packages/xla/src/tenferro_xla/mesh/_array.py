"""`ShardedArray`: an array whose parts are on the devices of a mesh."""

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
    """The part of an array that one device of this process has.

    Attributes:
        index: which part of the whole array it is: a slice for each axis.
        data: its elements, a copy in main memory.
        device: the device of JAX.
        replica: 0 for one of the devices that have this part, other numbers for the others.
    """

    index: tuple[slice, ...]
    data: Tensor
    device: Any
    replica: int


class ShardedArray:
    """An array that is split over the devices of a mesh, or replicated on them.

    It is made by `Mesh.shard`, `Mesh.replicate`, `from_callback` and by functions that are compiled for a mesh, and is
    no operand of anything else: `gather` brings it to main memory as a tensor, and nothing does so unasked.

    Attributes:
        mesh: the mesh.
        spec: how the array is split.
        array: the ``jax.Array`` with its parts.
    """

    __slots__ = ("array", "mesh", "spec")

    def __init__(self, mesh: DeviceGrid, spec: PartitionSpec, array: Any) -> None:
        self.mesh, self.spec, self.array = mesh, spec, array

    @staticmethod
    def from_callback(
        mesh: DeviceGrid, shape: tuple[int, ...], spec: PartitionSpec, part: Callable[[tuple[slice, ...]], Any]
    ) -> ShardedArray:
        """An array from a function of the index of a part; no process needs the whole array.

        Args:
            mesh: the mesh.
            shape: shape of the whole array.
            spec: how it is split.
            part: called with a slice for each axis, for each part that devices of this process have; returns its
                elements, which are copied.

        Raises:
            AxisError: the spec names axes that the mesh or the array does not have.
            ShapeError: an extent cannot be shared evenly.
            ArgumentError: `part` returned another shape than that of the part, or parts of several dtypes.

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
        """The shape of the part that one device has."""
        return self.mesh.local_shape(self.shape, self.spec)

    @property
    def shards(self) -> tuple[Shard, ...]:
        """The parts that the devices of this process have, each as a copy in main memory."""
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
        """The whole array in main memory; in a run of several processes all of them must call this.

        Raises:
            ProcessLostError: another process of the run has gone.
        """
        array = self.array
        if not array.is_fully_addressable:
            array = self.reshard(PartitionSpec()).array.addressable_data(0)
        return _tensor(array)

    def reshard(self, spec: PartitionSpec, mesh: DeviceGrid | None = None) -> ShardedArray:
        """The same array split in another way, or over another mesh of this process.

        Raises:
            AxisError: the spec names axes that the mesh or the array does not have.
            ShapeError: an extent cannot be shared evenly.
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
            f"{self!r} is on {self.mesh.size} devices, and is not brought to main memory unasked; write x.gather(), or "
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
    """A tensor of its own elements of an array of JAX, which may give its memory away."""
    with losses_named():  # of the computation whose result it is
        own = np.array(array)
    return Tensor.wrap(own, Spec(own.shape, own.dtype))


def _shown(index: tuple[slice, ...]) -> str:
    return f"[{', '.join(f'{s.start}:{s.stop}' for s in index)}]"
