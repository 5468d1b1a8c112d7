"""`Mesh`: a grid of devices that arrays are sharded over."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from tenferro_runtime.compilers import ProgramCompiler
from tenferro_runtime.extension import PlacementError, Program, Tensor, tensor
from tenferro_xla._executable import HostExecutable
from tenferro_xla._jitted import jitted
from tenferro_xla._lower import lower_to_stablehlo
from tenferro_xla.mesh._array import ShardedArray
from tenferro_xla.mesh._grid import DeviceGrid
from tenferro_xla.mesh._spec import PartitionSpec, shown


class Mesh(DeviceGrid, ProgramCompiler):
    """Devices in a grid with named axes, along which arrays are split.

    A mesh of CPU devices is also a compiler: a function made by ``tr.compile(f, backend=mesh)`` takes and returns
    tensors in main memory, and `with_sharding` and `shard_map` inside it determine the shardings. Functions made by
    `compile_on` keep arrays on the devices.

    Args:
        axes: sizes of the axes by name, the major axis first.
        devices: JAX devices in row-major order; by default the first devices of JAX, which JAX orders so that
            neighbours in the grid are close in the network.

    Attributes:
        axes: names and sizes, in order.

    Raises:
        ArgumentError: a size is not a positive integer, or the number of `devices` is not the size of the grid.
        BackendUnavailableError: JAX has too few devices.

    >>> import numpy as np
    >>> mesh = Mesh({"data": 1})
    >>> mesh.shard(np.arange(4.0), PartitionSpec("data"))
    ShardedArray(float64[4], P('data') of data=1)
    """

    def shard(self, x: Any, spec: PartitionSpec) -> ShardedArray:
        """Split an array over the mesh; each device gets a copy of its part.

        In a run of several processes, all of them call this with the same array; with `ShardedArray.from_callback`,
        each process needs only its own parts.

        Args:
            x: an array in main memory, of any shape and dtype.
            spec: how to split it.

        Returns:
            The sharded array, of the same shape and dtype.

        Raises:
            AxisError: the spec names an axis that the mesh or the array does not have.
            ShapeError: an extent is not divisible by the number of parts.
        """
        whole = (x if isinstance(x, Tensor) else tensor(x))._concrete()
        return ShardedArray.from_callback(self, whole.shape, spec, lambda index: whole[index])

    def replicate(self, x: Any) -> ShardedArray:
        """Copy a whole array to every device.

        Args:
            x: an array in main memory, of any shape and dtype.

        Returns:
            The replicated array, of the same shape and dtype.
        """
        return self.shard(x, PartitionSpec())

    @property
    def name(self) -> str:  # type: ignore[override]
        """Name of the mesh as a compiler, for `explain`."""
        return f"a mesh of {shown(self.axes)}"

    def executable(self, program: Program, donated: tuple[int, ...]) -> Callable[..., tuple[Any, ...]]:
        """Compile a program for the mesh; see `ProgramCompiler`. Every device gets the whole arguments.

        Args:
            program: a program of fixed sizes on values in main memory.
            donated: ignored.

        Returns:
            A function of NumPy arrays that returns a tuple of NumPy arrays.

        Raises:
            PlacementError: arguments or results are not in main memory, or the devices are not CPU devices.
            UnsupportedError: a primitive has no lowering.
        """
        if self.platform != "cpu" or not all(s.place.on_host for s in (*program.inputs, *program.outputs)):
            raise PlacementError(
                "tr.compile(f, backend=mesh) takes and returns arrays in main memory and runs on a mesh of CPU "
                f"devices, but this is {self!r} and the program {program!r:.200}; tenferro moves nothing implicitly: "
                "use compile_on(mesh, f)"
            )
        module = lower_to_stablehlo(program, self.platform, mesh=self.axes)
        whole = self.sharding(PartitionSpec())
        results = len(module.outputs) + module.checked
        run = jitted(module, in_shardings=[whole] * len(module.inputs), out_shardings=[whole] * results)
        return HostExecutable(module, partial(self.in_turn, run))
