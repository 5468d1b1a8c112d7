"""The machine that plans run on: pools of the CPU backend, and streams of the device runtime."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tenferro_runtime.placement._executor import Accelerator, Machine
from tenferro_runtime.placement._queue import Queue
from tenferro_runtime.placement._sync import SyncStrategy, route_between, wait_between
from tenferro_tensor import HOST, ComputeDevice, current_stream, device_runtime, get_backend
from tenferro_tensor.device_runtimes import DeviceRuntime, RuntimeDevice, Stream


class _Process(Machine):
    """The pools and streams of the process."""

    def __init__(self) -> None:
        self._second_streams: tuple[DeviceRuntime | None, dict[ComputeDevice, Stream]] = (None, {})

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
        """The second compute stream of a device, made on first use."""
        runtime, streams = self._second_streams
        if runtime is not device_runtime(device.id.kind):
            streams = {}
            self._second_streams = device_runtime(device.id.kind), streams
        return streams.get(device.id) or streams.setdefault(device.id, device.stream())


PROCESS: Final = _Process()
"""The machine of this process."""


def reaches(source: ComputeDevice, target: ComputeDevice) -> bool:
    """Whether memory of the second accelerator can be filled from that of the first without the host."""
    first, second = PROCESS.accelerator(source), PROCESS.accelerator(target)
    return first.runtime.can_access_peer(first.device, second.device)


def sync_strategy(first: str | ComputeDevice | Stream, then: str | ComputeDevice | Stream) -> SyncStrategy:
    """How work on one device or stream is ordered after work on another, and how its data are transferred.

    Execution plans follow the same rules. An accelerator stands for the current stream of the calling thread, and
    ``cpu:0`` for the calling thread itself.

    Args:
        first: a device, its name, or a stream.
        then: the device, its name, or the stream that waits.

    Returns:
        The wait and the route.

    Raises:
        PlacementError: there is no such device.
        BackendUnavailableError: no installed distribution offers the device.

    >>> from tenferro_cpu import CpuPool
    >>> with CpuPool(index=3):
    ...     str(sync_strategy("cpu:3", "cpu:0")), str(sync_strategy("cpu:0", "cpu:0"))
    ('timeline, shared memory', 'in order, shared memory')
    """
    queues = _queue(first), _queue(then)
    return SyncStrategy(wait_between(*queues), route_between(queues[0].device, queues[1].device, reaches))


def _queue(where: str | ComputeDevice | Stream) -> Queue:
    """The queue of a device, or of a stream; two streams of a device have different ones."""
    if isinstance(where, Stream):
        device = where.device.id
    else:
        device = ComputeDevice(where)
        get_backend(device.kind).require(device)
        if device.kind == HOST.device.kind:
            return Queue(device, "host")
        where = PROCESS.stream(Queue(device, "compute"))
    return Queue(device, f"stream {id(where):x}")
