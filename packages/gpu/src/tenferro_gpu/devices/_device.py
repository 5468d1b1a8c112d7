"""`CupyDevice`: streams, memory and copies of one device."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from weakref import WeakSet

import numpy as np

from tenferro_gpu._stack import capabilities
from tenferro_gpu.devices._streams import CupyEvent, CupyStream, Keeping
from tenferro_tensor import (
    Capabilities,
    ComputeDevice,
    DeviceMemoryError,
    Pending,
    RuntimeDevice,
    Spec,
    Stream,
)
from tenferro_tensor.device_runtimes import require_destination
from tenferro_tensor_core import ArgumentError, PlacementError
from tenferro_tensor_core.forks import new_lock


class CupyPending(Pending):
    """A download into page-locked memory, or into a given array.

    Args:
        host: the memory, as an array.
        event: the event after the copy.
    """

    event: CupyEvent

    def __init__(self, host: np.ndarray[Any, Any], event: CupyEvent) -> None:
        self.host: np.ndarray[Any, Any] = host
        self.event = event

    def result(self) -> np.ndarray[Any, Any]:
        """The array, the same at every call, in page-locked memory unless it was given."""
        self.event.synchronize()
        self.event.device.keeping.sweep()
        return self.host


class CupyDevice(RuntimeDevice):
    """One device of a kind; implements `RuntimeDevice`.

    Methods take:
        priority: priority of the stream.
        spec: shape and dtype.
        stream: stream of the work.
        host: host array.
        raw: array of CuPy.
        out: array to write to.
        shape, dtype: required shape and dtype.
        size: number of bytes.
        what: description for messages.

    Methods return:
        As specified by the contract of device runtimes.

    Attributes:
        runtime: the `CupyRuntime` of its kind.
        cupy: the module.
        raw: CuPy's device.
        keeping: values kept alive for pending work.
    """

    def __init__(self, runtime: Any, ordinal: int) -> None:
        self.id: ComputeDevice = ComputeDevice(f"{runtime.kind}:{ordinal}")
        self.runtime: Any = runtime
        self.cupy: Any = runtime.cupy
        self.keeping: Keeping = Keeping()
        self.raw: Any = self.cupy.cuda.Device(ordinal)
        self._lock = new_lock()
        self._streams: WeakSet[CupyStream] = WeakSet()
        self._default = self._noted(self.cupy.cuda.Stream.null)
        self._copy: CupyStream | None = None

    @property
    def capabilities(self) -> Capabilities:
        """Capabilities of the device."""
        return capabilities(self.runtime.kind, self.ordinal)

    @property
    def default_stream(self) -> CupyStream:
        """The stream that CuPy and other libraries use by default, so that their work is ordered with ours."""
        return self._default

    @property
    def copy_stream(self) -> CupyStream:
        """The stream for copies beside the work of the device."""
        with self._lock:
            if self._copy is None:
                self._copy = self.stream()
            return self._copy

    def stream(self, priority: int = 0) -> CupyStream:
        """Create a stream, which does not wait for the default stream implicitly."""
        with self.raw:
            return self._noted(self.cupy.cuda.Stream(non_blocking=True, priority=priority), priority)

    def _noted(self, raw: Any, priority: int = 0) -> CupyStream:
        stream = CupyStream(self, raw, priority)
        with self._lock:
            self._streams.add(stream)
        return stream

    @property
    def streams(self) -> tuple[CupyStream, ...]:
        """The streams that are alive."""
        with self._lock:
            return tuple(self._streams)

    def memory(self) -> dict[str, int]:
        """``"live"`` bytes of values; ``"peak"`` bytes that CuPy's pool has taken from the device and keeps for reuse,
        or, of CUDA's pool, most bytes in use so far; ``"free"`` and ``"total"`` bytes of the device.
        """
        self.keeping.sweep()
        with self.raw:
            pool = self.runtime.pool
            free, total = self.cupy.cuda.runtime.memGetInfo()
            return {
                "live": pool.live(),
                "peak": pool.peak(),
                "free": int(free),
                "total": int(total),
            }

    def empty(self, spec: Spec, stream: Stream) -> Any:
        """Allocate an uninitialised array."""
        own = self._own(stream)
        with self.enough(spec.size, spec.dtype), own:
            raw = self.cupy.empty(spec.shape, spec.dtype)
        self.runtime.mark(own, raw)
        return raw

    def upload(self, host: np.ndarray[Any, Any] | Pending, stream: Stream, out: Any = None) -> Any:
        """Copy an array from main memory."""
        own = self._own(stream)
        plain = host.host if isinstance(host, CupyPending) else np.asarray(host)
        if out is not None:
            self.require_own(out, plain.shape, plain.dtype)
        if isinstance(host, CupyPending):
            own.wait(host.event)
            staged = plain
        else:
            staged = self.pinned(plain.shape, plain.dtype)
            staged[...] = plain
        with self.enough(staged.size, staged.dtype), own:
            raw = self.cupy.empty(staged.shape, staged.dtype) if out is None else out
            if staged.size:
                raw.set(staged, own.raw)
        self.keeping.keep(own.record(), staged)
        self.runtime.mark(own, raw)
        return raw

    def require_own(self, out: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        """Refuse anything but a writable array of CuPy in the memory of this device."""
        if not isinstance(out, self.cupy.ndarray) or self.runtime.device_of(out) is not self:
            seen = out.device if isinstance(out, self.cupy.ndarray) else type(out).__name__
            raise PlacementError(f"a transfer to {self.id} writes into an array of CuPy in its memory, got {seen}")
        require_destination(out, shape, dtype, f"the memory of {self.id}")

    def download(self, raw: Any, stream: Stream, out: np.ndarray[Any, Any] | None = None) -> CupyPending:
        """Copy an array to main memory."""
        own = self._own(stream)
        if self.runtime.device_of(raw) is not self:
            raise PlacementError(f"a download from {self.id} takes values in its memory, got one of {raw.device}")
        if out is not None:
            require_destination(out, raw.shape, raw.dtype)
        with self.enough(raw.size, raw.dtype), own:
            lying = self.cupy.ascontiguousarray(raw).reshape(raw.shape)
            host = self.pinned(raw.shape, raw.dtype) if out is None else out
            if host.size:
                lying.get(stream=own.raw, out=host, blocking=False)
        event = own.record()
        self.keeping.keep(event, raw, lying, host)
        return CupyPending(host, event)

    def pinned(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
        """A host array in page-locked memory, which the device accesses directly."""
        count = int(np.prod(shape, dtype=np.int64))
        memory = self.cupy.cuda.alloc_pinned_memory(max(count, 1) * dtype.itemsize)
        return np.frombuffer(memory, dtype, count).reshape(shape)

    @contextmanager
    def enough(self, size: Any, dtype: np.dtype[Any]) -> Iterator[None]:
        """A context that converts CuPy's error for insufficient memory to a typed error."""
        try:
            yield
        except self.cupy.cuda.memory.OutOfMemoryError as cause:
            raise self.no_room(f"{int(size) * dtype.itemsize} bytes") from cause

    def no_room(self, what: str) -> DeviceMemoryError:
        """The error for insufficient memory."""
        have = self.memory()
        return DeviceMemoryError(
            f"{self.id} has no room for {what}: {have['live']} bytes are in use by values, {have['free']} of "
            f"{have['total']} free; drop tensors, work in smaller pieces, or use another device",
            device=str(self.id),
        )

    def _own(self, stream: Stream) -> CupyStream:
        if not isinstance(stream, CupyStream) or stream.device is not self:
            raise ArgumentError(f"{self.id} was given {stream!r}, which is not one of its streams")
        return stream
