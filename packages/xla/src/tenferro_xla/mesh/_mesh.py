"""`Mesh`: a grid of devices, and how arrays come to them."""

from __future__ import annotations

from typing import Any

from tenferro_runtime.extension import Tensor, tensor
from tenferro_xla.mesh._array import ShardedArray
from tenferro_xla.mesh._grid import DeviceGrid
from tenferro_xla.mesh._spec import PartitionSpec


class Mesh(DeviceGrid):
    """Devices in a grid whose axes have names, by which arrays are split.

    Args:
        axes: the sizes of the axes by name, the major one first.
        devices: devices of JAX, in row-major order; by default the first ones that JAX has, ordered by JAX so that
            neighbours in the grid are near each other.

    Attributes:
        axes: names and sizes, in order.

    Raises:
        ArgumentError: a size is no positive integer, or the number of `devices` is not that of the grid.
        BackendUnavailableError: JAX has fewer devices.

    >>> import numpy as np
    >>> mesh = Mesh({"data": 1})
    >>> mesh.shard(np.arange(4.0), PartitionSpec("data"))
    ShardedArray(float64[4], P('data') of data=1)
    """

    def shard(self, x: Any, spec: PartitionSpec) -> ShardedArray:
        """An array split over the mesh; each device gets a copy of its part.

        In a run of several processes, all of them call this with the same array; to have in each process just its own
        part, see `ShardedArray.from_callback`.

        Args:
            x: an array in main memory.
            spec: how it is split.

        Raises:
            AxisError: the spec names axes that the mesh or the array does not have.
            ShapeError: an extent cannot be shared evenly.
        """
        whole = (x if isinstance(x, Tensor) else tensor(x))._concrete()
        return ShardedArray.from_callback(self, whole.shape, spec, lambda index: whole[index])

    def replicate(self, x: Any) -> ShardedArray:
        """An array that every device has whole."""
        return self.shard(x, PartitionSpec())
