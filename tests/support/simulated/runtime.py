"""The simulated accelerator: four devices with memory of their own, whose work runs later, in other threads."""

import os
import threading
from collections import Counter
from typing import Any
from weakref import WeakSet

import numpy as np

from simulated.clocks import Checker
from simulated.faults import Faults
from simulated.memory import Account, Buffer, SimArray, Staging
from simulated.streams import SimEvent, SimStream, require_process
from tenferro_tensor import (
    Capabilities,
    ComputeDevice,
    DeviceMemoryError,
    DeviceRuntime,
    Pending,
    RuntimeDevice,
    Spec,
    current_stream,
)
from tenferro_tensor.device_runtimes import require_destination
from tenferro_tensor_core import ArgumentError, PlacementError


class SimPending(Pending):
    """A download on its way."""

    def __init__(self, staging: Staging, event: SimEvent, out: Any = None) -> None:
        self.staging, self.event, self.out = staging, event, out

    def result(self) -> np.ndarray:
        self.event.synchronize()
        if self.out is None:
            return self.staging.read()
        self.out[...] = self.staging.read()
        return self.out


class SimDevice(RuntimeDevice):
    """One simulated device."""

    def __init__(self, runtime: Any, ordinal: int, memory: int) -> None:
        self.id, self.runtime = ComputeDevice(f"sim:{ordinal}"), runtime
        self.account = Account(memory)
        self._streams: WeakSet[SimStream] = WeakSet()
        self._lock = threading.Lock()
        self._default, self._copy = self._made(0, "default"), self._made(0, "copy")
        self._count = 0

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities("simulated", self.account.limit, 32, "numpy")

    @property
    def default_stream(self) -> SimStream:
        return self._default

    @property
    def copy_stream(self) -> SimStream:
        return self._copy

    @property
    def streams(self) -> tuple[SimStream, ...]:
        with self._lock:
            return tuple(sorted(self._streams, key=lambda s: s.actor))

    def stream(self, priority: int = 0) -> SimStream:
        return self._made(priority, None)

    def _made(self, priority: int, name: str | None) -> SimStream:
        stream = SimStream(self, priority, name)
        with self._lock:
            self._streams.add(stream)
        return stream

    def memory(self) -> dict[str, int]:
        return self.account.stats()

    def allocate(self, shape: tuple[int, ...], dtype: np.dtype, stream: SimStream) -> SimArray:
        """A raw value that nobody has written."""
        self._require(stream)
        with self.runtime.checker.lock:
            self._count += 1
            nbytes = int(np.prod(shape, dtype=object)) * np.dtype(dtype).itemsize
            fault = self.runtime.faults.draw("allocation")
            if fault is not None or not self.account.take(nbytes):
                raise DeviceMemoryError(
                    f"{self.id} has no room for {nbytes} bytes: {self.account.stats()['live']} of "
                    f"{self.account.limit} are in use; drop tensors, or use another device",
                    device=str(self.id),
                    nbytes=nbytes,
                ) from fault
            buffer = Buffer(f"value {self._count} of {self.id}", tuple(shape), np.dtype(dtype), self.account)
            self.runtime.checker.step(stream.actor, stream.clock)
            self.runtime.checker.allocate(buffer, stream.actor, stream.clock)
        return SimArray(self, stream, buffer)

    def empty(self, spec: Spec, stream: Any) -> SimArray:
        return self.allocate(spec.shape, spec.dtype, stream)  # type: ignore[arg-type]

    def upload(self, host: Any, stream: Any, out: Any = None) -> SimArray:
        if out is not None:
            self.require_out(out, host.staging.data if isinstance(host, SimPending) else host)
        if isinstance(host, SimPending):
            stream.wait(host.event)
            staging = host.staging
        else:
            staging = Staging(self.runtime.checker, host.shape, host.dtype)
            staging.write(host)
        return self.upload_staged(staging, stream, out)

    def require_out(self, out: Any, like: Any) -> None:
        """Raise where a value is not in this memory, or not like what is copied into it."""
        self.require_here(out, "a transfer")
        require_destination(out.buffer.data, like.shape, like.dtype, f"the memory of {self.id}")

    def upload_staged(self, staging: Staging, stream: SimStream, out: Any = None) -> SimArray:
        """A value with the contents of a staging buffer, which is read later."""
        raw = self.allocate(staging.data.shape, staging.data.dtype, stream) if out is None else out
        raw.stream = stream
        buffer = raw.buffer

        def copy() -> None:
            buffer.data[...] = staging.data

        stream.issue("upload", copy, [staging], [buffer], kind="transfer")
        return raw

    def download(self, raw: Any, stream: Any, out: Any = None) -> SimPending:
        self._require(stream)
        self.require_here(raw, "download")
        if out is not None:
            require_destination(out, raw.shape, raw.dtype)
        staging, buffer = Staging(self.runtime.checker, raw.shape, raw.dtype), raw.buffer

        def copy() -> None:
            staging.data[...] = buffer.data

        stream.issue("download", copy, [buffer], [staging], kind="transfer")
        return SimPending(staging, stream.record(), out)

    def duplicate(self, raw: SimArray) -> SimArray:
        """A copy, on the stream that the thread's work goes to."""
        stream: Any = current_stream(self)
        if stream is not raw.stream:
            stream.wait(raw.stream.record())
        return stream.compute("copy", np.copy, (raw,), [(raw.shape, raw.dtype)])[0]

    def require_here(self, raw: Any, what: str) -> None:
        """Raise where a raw value is not in this memory."""
        if not isinstance(raw, SimArray) or raw.device is not self:
            raise PlacementError(f"{what} on {self.id} takes values in its memory, got {raw!r}", device=str(self.id))

    def _require(self, stream: Any) -> None:
        if getattr(stream, "device", None) is not self:
            raise ArgumentError(f"{self.id} was given {stream!r}, which is not one of its streams")


class SimRuntime(DeviceRuntime):
    """The runtime of the kind ``sim``.

    Args:
        count: number of devices.
        memory: bytes of each.
        peers: pairs of ordinals that copy from memory to memory; ``True`` is all.
        faults: what goes wrong, and delays.
        strict: raise at hazards instead of noting them.
        threads: see `Checker`.
    """

    kind = "sim"

    def __init__(
        self,
        count: int = 4,
        *,
        memory: int = 2**28,
        peers: bool | set[tuple[int, int]] = True,
        faults: Faults | None = None,
        strict: bool = False,
        threads: bool = False,
    ) -> None:
        self.checker = Checker(strict=strict, threads=threads)
        self.faults = faults or Faults()
        self.issued: Counter[str] = Counter()
        self._peers, self._pid = peers, os.getpid()
        self._devices = tuple([SimDevice(self, i, memory) for i in range(count)])

    def devices(self) -> tuple[SimDevice, ...]:
        return self._devices

    def device(self, ordinal: int) -> SimDevice:
        if not 0 <= ordinal < len(self._devices):
            raise PlacementError(
                f"sim:{ordinal} was requested, but there are sim:0 to sim:{len(self._devices) - 1}; use one of these",
                device=f"sim:{ordinal}",
            )
        return self._devices[ordinal]

    def device_of(self, raw: Any) -> SimDevice:
        if not isinstance(raw, SimArray):
            raise ArgumentError(f"{raw!r} is no value of a simulated device")
        return raw.device

    def stream_of(self, raw: Any) -> SimStream | None:
        return raw.stream if isinstance(raw, SimArray) else None

    def can_access_peer(self, source: RuntimeDevice, target: RuntimeDevice) -> bool:
        return source is target or self._peers is True or (source.ordinal, target.ordinal) in (self._peers or ())

    def copy_peer(self, raw: Any, source: Any, target: Any, out: Any = None) -> SimArray:
        home = self.device_of(raw)
        if out is not None:
            target.device.require_out(out, raw)
        if source is not None:
            target.wait(source.record())
        if not self.can_access_peer(home, target.device):
            home.copy_stream.wait(target.record())
            return target.device.upload(home.download(raw, home.copy_stream), target, out)
        copy, buffer = target.device.allocate(raw.shape, raw.dtype, target) if out is None else out, raw.buffer
        copy.stream = target
        goal = copy.buffer

        def run() -> None:
            goal.data[...] = buffer.data

        target.issue("peer copy", run, [buffer], [goal], kind="transfer")
        return copy

    def require_process(self) -> None:
        require_process(self._pid)

    def close(self) -> None:
        """End all threads, when they have done what they were given."""
        threads = []
        for device in self._devices:
            for stream in device.streams:
                stream.queue.close()
                threads.append(stream.queue.thread)
        for thread in threads:
            if thread is not None:
                thread.join()
                assert not thread.is_alive()
