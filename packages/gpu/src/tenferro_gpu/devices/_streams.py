"""Streams and events of CuPy. CuPy's current device and stream are set for every call and restored after it."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tenferro_tensor import AsynchronousError, Event, Stream
from tenferro_tensor_core import UnsupportedError
from tenferro_tensor_core.forks import new_lock


class CupyEvent(Event):
    """An event of a stream of a `CupyDevice`; waiting blocks the thread without spinning.

    Methods take:
        earlier: an earlier event with timing.

    Methods return:
        Milliseconds.
    """

    __slots__ = ("_cupy", "_timing", "device", "raw")

    def __init__(self, device: Any, raw: Any, timing: bool) -> None:
        self.device: Any = device
        self.raw: Any = raw
        self._timing = timing
        self._cupy = device.cupy

    @property
    def done(self) -> bool:
        """Whether the work before the event is done."""
        try:
            return bool(self.raw.done)
        except self._cupy.cuda.runtime.CUDARuntimeError:
            return True  # the work before it failed; waiting reports it

    def synchronize(self) -> None:
        """Wait for the work before the event."""
        with failures_of(self.device):
            self.raw.synchronize()

    def elapsed(self, earlier: Event) -> float:
        """Time since an earlier event."""
        if not isinstance(earlier, CupyEvent) or not (self._timing and earlier._timing):
            raise UnsupportedError("the time between events is known of those recorded with record(timing=True)")
        return float(self._cupy.cuda.get_elapsed_time(earlier.raw, self.raw)) / 1000


class CupyStream(Stream):
    """A stream of a `CupyDevice`.

    Methods take:
        timing: whether the event records time.
        event: event to wait for.
        raw: array whose memory is released.

    Methods return:
        The event.

    Attributes:
        raw: CuPy's stream.
    """

    __slots__ = ("_on", "device", "priority", "raw")

    def __init__(self, device: Any, raw: Any, priority: int = 0) -> None:
        self.device: Any = device
        self.raw: Any = raw
        self.priority: int = priority
        self._on = device.raw

    def __enter__(self) -> CupyStream:
        """Make device and stream current for CuPy in this thread."""
        self._on.__enter__()
        try:
            self.raw.__enter__()
        except BaseException:
            self._on.__exit__()
            raise
        return self

    def is_current(self) -> bool:
        """Whether device and stream are already current for CuPy in this thread."""
        cuda = self.device.cupy.cuda
        return bool(cuda.runtime.getDevice() == self._on.id and cuda.get_current_stream().ptr == self.raw.ptr)

    def __exit__(self, *error: Any) -> None:
        try:
            self.raw.__exit__(*error)
        finally:
            self._on.__exit__(*error)

    def record(self, *, timing: bool = False) -> CupyEvent:
        """Record an event after the work so far."""
        with self._on:
            event = self.device.cupy.cuda.Event(block=True, disable_timing=not timing)
            event.record(self.raw)
        return CupyEvent(self.device, event, timing)

    def wait(self, event: Event) -> None:
        """Make later work wait for an event, which may belong to another device."""
        assert isinstance(event, CupyEvent)
        with self._on:
            self.raw.wait_event(event.raw)

    def release(self, raw: Any) -> None:
        """Return memory to the stream that allocated it, once this stream reaches this point."""
        if self.device.runtime.lent(self, (raw,)):
            self.device.keeping.keep(self.record(), raw)

    def synchronize(self) -> None:
        """Wait for all work of the stream."""
        with failures_of(self.device), self._on:
            self.raw.synchronize()

    def __repr__(self) -> str:
        return f"<stream of {self.device.id}, priority {self.priority}>"


class Keeping:
    """Keeps values, and host memory of copies, alive until the work that reads them has finished.

    CuPy returns the memory of a value to the stream that allocated it when the last reference is dropped, regardless of
    pending work of other streams.
    """

    def __init__(self) -> None:
        self._kept: deque[tuple[CupyEvent, tuple[Any, ...]]] = deque()
        self._lock = new_lock()

    def keep(self, event: CupyEvent, *values: Any) -> None:
        """Keep values at least until an event has passed."""
        with self._lock:
            self._kept.append((event, values))
        self.sweep()

    def sweep(self) -> None:
        """Release values whose events have passed; events pass approximately in the order of their creation."""
        gone = []  # release values after the lock, because releasing may keep others
        with self._lock:
            while self._kept and self._kept[0][0].done:
                gone.append(self._kept.popleft())

    def __len__(self) -> int:
        return len(self._kept)


@contextmanager
def failures_of(device: Any) -> Iterator[None]:
    """Convert errors of the driver to failures of accepted work."""
    try:
        yield
    except device.cupy.cuda.runtime.CUDARuntimeError as cause:
        raise AsynchronousError(
            f"work that {device.id} had accepted failed: {cause}; mend its cause and start the process again, for a "
            "device that has failed stays failed",
            device=str(device.id),
        ) from cause
