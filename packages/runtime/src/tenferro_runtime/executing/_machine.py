"""The machine that plans run on: pools of the CPU backend, and streams of the device runtime."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tenferro_runtime.executing._executor import Accelerator, Machine
from tenferro_runtime.executing._moves import Queue
from tenferro_tensor import ComputeDevice, current_stream, device_runtime, get_backend
from tenferro_tensor.device_runtimes import DeviceRuntime, RuntimeDevice, Stream


class _Process(Machine):
    """What the process has."""

    def __init__(self) -> None:
        self._beside: tuple[DeviceRuntime | None, dict[ComputeDevice, Stream]] = (None, {})

    def post(self, pool: ComputeDevice, run: Callable[[], None]) -> None:
        get_backend(pool.kind).submit(pool, run)

    def accelerator(self, device: ComputeDevice) -> Accelerator:
        runtime = device_runtime(device.kind)
        return Accelerator(runtime, runtime.device(device.index))

    def stream(self, queue: Queue) -> Stream:
        device = self.accelerator(queue.device).device
        if queue.role == "copy":
            return device.copy_stream
        return current_stream(device) if queue.role == "compute" else self._second(device)

    def _second(self, device: RuntimeDevice) -> Stream:
        """The second stream of a device that computes, made when a plan first needs it."""
        runtime, streams = self._beside
        if runtime is not device_runtime(device.id.kind):
            streams = {}
            self._beside = device_runtime(device.id.kind), streams
        return streams.get(device.id) or streams.setdefault(device.id, device.stream())


PROCESS: Final = _Process()
"""The machine of this process."""


def reaches(source: ComputeDevice, target: ComputeDevice) -> bool:
    """Whether memory of the second accelerator can be filled from that of the first without the host."""
    first, second = PROCESS.accelerator(source), PROCESS.accelerator(target)
    return first.runtime.can_access_peer(first.device, second.device)
