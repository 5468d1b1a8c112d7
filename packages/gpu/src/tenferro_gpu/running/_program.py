"""`GpuProgram`: a compiled kernel on the devices of one kind."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, Final

from tenferro_gpu.rendering import BLOCK
from tenferro_tensor.device_model import Access, CompiledSpec, Program
from tenferro_tensor_core import ArgumentError, ShapeError
from tenferro_tensor_core.forks import new_lock

MAX_WORK_GROUPS: Final = 1 << 16
"""Maximum work groups per launch; more elements take several passes."""

Ints = tuple[int, ...]
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

    Attributes:
        reduced: number of axes that its reduction removes.
    """

    __slots__ = ("_functions", "_load", "_lock", "compiled", "reduced")

    def __init__(self, compiled: CompiledSpec, load: Load) -> None:
        self.compiled: CompiledSpec = compiled
        self._load = load
        self.reduced: int = len([v for v in compiled.spec.variables if v.name.startswith("r")])
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
        """See `DeviceProgram.execute`; inputs broadcast to the extents, results have the kept axes and are contiguous.

        A reduction expects the reduced axes after the kept ones, and is not split. Device and stream must be current,
        as inside ``with stream:``.
        """
        spec, space = self.compiled.spec, tuple(values)
        if any(isinstance(x.device, str) for x in buffers):  # NumPy's name for main memory
            raise ArgumentError(f"{spec.entry} runs on a device, got an array in main memory; upload it")
        stay = len(space) - self.reduced
        devices = {x.device.id for x in buffers}
        if len(devices) != 1:
            raise ArgumentError(f"{spec.entry} got buffers of devices {sorted(devices)}; move them to one")
        strides = []
        for number, (x, operand) in enumerate(zip(buffers, spec.operands)):
            if x.dtype != operand.dtype:
                raise ArgumentError(f"buffer {number} of {spec.entry} is an array of {operand.dtype}, got {x.dtype}")
            if number in spec.writes:
                self._require_in_order(number, x, space[:stay])
            else:
                strides.append(self._strides(number, x, space))
        if not all(space[:stay]):
            return
        rendered = tuple([spec.operands[k].access for k in spec.reads])
        for number, (own, access) in enumerate(zip(strides, rendered)):
            if all(space) and access not in (Access.STRIDED, access_of(own, space)):
                raise ShapeError(
                    f"buffer {number} of {spec.entry} has strides {own} over {space}, but the kernel was rendered for "
                    f"{access.value} access; render it for these strides",
                    buffer=number,
                )
        given = [s for own, access in zip(strides, rendered) if access is Access.STRIDED for s in own]
        groups = min(-(-prod(space[:stay]) // spec.launch.grid[0]), MAX_WORK_GROUPS)
        self.function(devices.pop())((groups,), (BLOCK,), (*buffers, *space, *given))

    def _strides(self, number: int, x: Any, space: Ints) -> Ints:
        own = (1,) * (len(space) - x.ndim) + x.shape
        if x.ndim > len(space) or any(d not in (1, n) for d, n in zip(own, space)):
            raise ShapeError(
                f"buffer {number} of {self.compiled.spec.entry} of shape {x.shape} does not broadcast to {space}",
                buffer=number,
            )
        strides = (0,) * (len(space) - x.ndim) + tuple([s // x.itemsize for s in x.strides])
        return tuple([0 if d == 1 else s for d, s in zip(own, strides)])

    def _require_in_order(self, number: int, y: Any, shape: Ints) -> None:
        if y.shape != shape or not y.flags.c_contiguous:
            raise ShapeError(
                f"buffer {number} of {self.compiled.spec.entry} is written, in order, as an array of shape {shape}; "
                f"got shape {y.shape} with strides {y.strides}",
                buffer=number,
            )


def access_of(strides: Ints, space: Ints) -> Access:
    """The access that strides over a space imply.

    >>> access_of((3, 1), (5, 3)), access_of((0, 0), (5, 3)), access_of((0, 1), (5, 3))
    (<Access.UNIT: 'unit'>, <Access.FIXED: 'fixed'>, <Access.STRIDED: 'strided'>)
    """
    count = 1
    for own, n in zip(reversed(strides), reversed(space)):
        if n != 1 and own != count:
            return Access.STRIDED if any(s for s, d in zip(strides, space) if d != 1) else Access.FIXED
        count *= n
    return Access.UNIT
