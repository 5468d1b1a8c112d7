"""`Mesh`: a grid of devices, and how arrays come to them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from tenferro_runtime.compilers import ProgramCompiler
from tenferro_runtime.extension import PlacementError, Program, Tensor, tensor
from tenferro_xla._executable import Executable
from tenferro_xla._jitted import jitted
from tenferro_xla._lower import lower_to_stablehlo
from tenferro_xla.mesh._array import ShardedArray
from tenferro_xla.mesh._grid import DeviceGrid
from tenferro_xla.mesh._spec import PartitionSpec, shown


class Mesh(DeviceGrid, ProgramCompiler):
    """Devices in a grid whose axes have names, by which arrays are split.

    A mesh of CPU devices is a compiler, too: a function of ``tr.compile(f, backend=mesh)`` takes and returns tensors in
    main memory, and `with_sharding` and `shard_map` in it say what is split. `compile_on` leaves arrays on the devices.

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

    @property
    def name(self) -> str:  # type: ignore[override]
        """What `explain` says of functions that are compiled for the mesh."""
        return f"a mesh of {shown(self.axes)}"

    def executable(self, program: Program, donated: tuple[int, ...]) -> Callable[..., tuple[Any, ...]]:
        """See `ProgramCompiler`; every device gets whole arguments, which are in main memory as they are.

        Raises:
            PlacementError: arguments or results are elsewhere, or the devices have memory of their own.
        """
        if self.platform != "cpu" or not all(s.place.on_host for s in (*program.inputs, *program.outputs)):
            raise PlacementError(
                "tr.compile(f, backend=mesh) takes and returns arrays in main memory and runs on a mesh of CPU "
                f"devices, but this is {self!r} and the program {program!r:.200}; nothing is moved implicitly: use "
                "compile_on(mesh, f)"
            )
        module = lower_to_stablehlo(program, self.platform, mesh=self.axes)
        whole = self.sharding(PartitionSpec())
        results = len(module.outputs) + module.checked
        run = jitted(module, in_shardings=[whole] * len(module.inputs), out_shardings=[whole] * results)
        return Executable(module, partial(self.in_turn, run), near=True)
