"""`DeviceGrid`: XLA devices in a grid with named axes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from tenferro_runtime.extension import ArgumentError, BackendUnavailableError
from tenferro_tensor_core.forks import cached_property, importing, new_lock
from tenferro_xla.mesh._spec import MeshAxes, PartitionSpec, axes_of, local_shape, require_spec, shown

_cpu_run_lock: Final = new_lock()


class DeviceGrid:
    """A mesh without the functions that make arrays; see `Mesh`."""

    axes: MeshAxes

    def __init__(self, axes: Mapping[str, int], devices: Sequence[Any] | None = None) -> None:
        if not isinstance(axes, Mapping):
            raise ArgumentError(f"a mesh has axes by name, as in Mesh({{'data': 4, 'model': 2}}), got {axes!r:.60}")
        self.axes = axes_of(axes)
        if not self.axes:
            raise ArgumentError("a mesh has at least one axis, as in Mesh({'data': 1})")
        names, sizes = zip(*self.axes)
        with importing():
            import jax
        needed = int(np.prod(sizes))
        found = jax.devices() if devices is None else list(devices)
        if devices is not None and len(found) != needed:
            raise ArgumentError(f"a mesh of {shown(self.axes)} has {needed} devices, got {len(found)}")
        if len(found) < needed:
            raise BackendUnavailableError(
                f"a mesh of {shown(self.axes)} needs {needed} devices, but JAX has {len(found)} "
                f"({found[0].platform}); make it smaller, or for tests on one machine set "
                f"XLA_FLAGS=--xla_force_host_platform_device_count={needed} before JAX starts",
                needed=needed,
                found=len(found),
            )
        kinds = (jax.sharding.AxisType.Auto,) * len(sizes)
        self._jax = jax.make_mesh(sizes, names, axis_types=kinds, devices=found[:needed] if devices is None else found)

    @property
    def shape(self) -> dict[str, int]:
        """The sizes of the axes by name."""
        return dict(self.axes)

    @property
    def size(self) -> int:
        """The number of devices."""
        return int(self._jax.size)

    @property
    def devices(self) -> np.ndarray[Any, Any]:
        """The JAX devices, in an array of the shape of the grid."""
        return np.asarray(self._jax.devices)

    @property
    def platform(self) -> str:
        """The platform of the devices: ``"cpu"``, ``"cuda"``, ``"rocm"`` or ``"tpu"``."""
        return _platform(self._jax.devices.flat[0])

    @cached_property
    def processes(self) -> tuple[int, ...]:
        """The indices of the processes that have devices of the mesh."""
        return tuple(sorted({d.process_index for d in self._jax.devices.flat}))

    def sharding(self, spec: PartitionSpec) -> Any:
        """Convert a spec to a sharding of JAX.

        Args:
            spec: the spec.

        Returns:
            The ``jax.sharding.NamedSharding`` on this mesh.

        Raises:
            AxisError: the spec names an axis that the mesh does not have.
        """
        with importing():
            from jax.sharding import NamedSharding
            from jax.sharding import PartitionSpec as JaxSpec

        require_spec(spec).split(len(spec.entries), self.axes)
        return NamedSharding(self._jax, JaxSpec(*spec.entries))

    def in_turn(self, run: Callable[..., Any], *arrays: Any) -> Any:
        """Run an executable of the mesh; on CPU devices, one at a time and to completion.

        The CPU devices of a process share its threads: of two concurrent runs, each may hold threads that collectives
        of the other one wait for, and XLA then terminates the process.

        Args:
            run: the executable.
            arrays: its arguments.

        Returns:
            Its results.
        """
        if self.platform != "cpu":
            return run(*arrays)
        with _cpu_run_lock:
            found = run(*arrays)
            for x in found if isinstance(found, (list, tuple)) else (found,):
                x.block_until_ready()
            return found

    def local_shape(self, shape: tuple[int, ...], spec: PartitionSpec) -> tuple[int, ...]:
        """Compute the shape of the part of an array on each device.

        Args:
            shape: shape of the whole array.
            spec: how it is split.

        Returns:
            The shape of a part.

        Raises:
            AxisError: the spec names an axis that the mesh or the array does not have.
            ShapeError: an extent is not divisible by the number of parts.


        >>> DeviceGrid({"data": 1}).local_shape((4, 3), PartitionSpec("data"))
        (4, 3)
        """
        return local_shape(shape, require_spec(spec).split(len(shape), self.axes), self.axes)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DeviceGrid) and self._jax == other._jax

    def __hash__(self) -> int:
        return hash(self._jax)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({{{', '.join(f'{n!r}: {k}' for n, k in self.axes)}}}, {self.platform})"


def _platform(device: Any) -> str:
    return "cuda" if device.platform == "gpu" else str(device.platform)
