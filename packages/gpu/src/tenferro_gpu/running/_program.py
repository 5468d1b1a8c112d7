"""`GpuProgram`: a compiled kernel on the devices of one kind."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, Final

from tenferro_gpu.rendering import BLOCK, chain
from tenferro_tensor.device_model import CompiledSpec, Program
from tenferro_tensor.loop_ir import For
from tenferro_tensor_core import ArgumentError, evaluate
from tenferro_tensor_core.forks import new_lock

MAX_WORK_GROUPS: Final = 1 << 16
"""Maximum work groups per launch; more elements take several passes."""

Function = Callable[[tuple[int], tuple[int], tuple[Any, ...]], Any]
Load = Callable[[CompiledSpec, int], Function]


class GpuProgram(Program):
    """A kernel on CuPy arrays; its code is loaded once on every device that runs it.

    Methods take:
        device: number of the device.
        buffers: arrays of CuPy, inputs first.
        values: values of the variables.

    Methods return:
        The loaded function.

    Args:
        compiled: a kernel of `CudaRenderer`.
        load: loads its function on a device, by number.
    """

    __slots__ = ("_functions", "_load", "_lock", "compiled")

    def __init__(self, compiled: CompiledSpec, load: Load) -> None:
        self.compiled: CompiledSpec = compiled
        self._load = load
        self._functions: dict[int, Function] = {}
        self._lock = new_lock()

    def function(self, device: int) -> Function:
        """The loaded kernel on a device, which must be current."""
        found = self._functions.get(device)
        if found is None:
            with self._lock:
                found = self._functions.get(device)
                if found is None:
                    found = self._functions[device] = self._load(self.compiled, device)
        return found

    def execute(self, buffers: Sequence[Any], values: Sequence[int]) -> None:
        """See `Program.execute`. Device and stream must be current, as inside ``with stream:``."""
        spec = self.compiled.spec
        if any(isinstance(x.device, str) for x in buffers):  # NumPy's name for main memory
            raise ArgumentError(f"{spec.entry} runs on a device, got an array in main memory; upload it")
        devices = {x.device.id for x in buffers}
        if len(devices) != 1:
            raise ArgumentError(f"{spec.entry} got buffers of devices {sorted(devices)}; move them to one")
        groups = self._groups(values)
        if groups:
            self.function(devices.pop())((groups,), (BLOCK,), (*buffers, *map(int, values)))

    def _groups(self, values: Sequence[int]) -> int:
        """Groups of a launch; none for a parallel loop without iterations."""
        spec = self.compiled.spec
        if not spec.launch.grid or spec.kernel is None:
            return 1
        (nest,) = spec.kernel.body
        assert isinstance(nest, For)
        sizes = dict(zip(spec.kernel.sizes, map(int, values), strict=True))
        count = prod([evaluate(extent, sizes) for _, extent in chain(nest)[0]])
        return min(-(-count // spec.launch.grid[0]), MAX_WORK_GROUPS)
