"""Streams and events of CuPy. CuPy's current device and stream are entered for every call, and restored after it."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tenferro_tensor import AsynchronousError, Event, Stream
from tenferro_tensor_core import UnsupportedError
from tenferro_tensor_core.forks import new_lock


class CupyEvent(Event):
    """An event of a stream of a `CupyDevice`; waiting for it puts the thread to sleep."""

    __slots__ = ("_cupy", "_timing", "device", "raw")

    def __init__(self, device: Any, raw: Any, timing: bool) -> None:
        self.device, self.raw, self._timing, self._cupy = device, raw, timing, device.cupy

    @property
    def done(self) -> bool:
        """As the contract says."""
        try:
            return bool(self.raw.done)
        except self._cupy.cuda.runtime.CUDARuntimeError:
            return True  # the work before it failed; waiting tells

    def synchronize(self) -> None:
        """As the contract says."""
        with failures_of(self.device):
            self.raw.synchronize()

    def elapsed(self, earlier: Event) -> float:
        """As the contract says."""
        if not isinstance(earlier, CupyEvent) or not (self._timing and earlier._timing):
            raise UnsupportedError("the time between events is known of those recorded with record(timing=True)")
        return float(self._cupy.cuda.get_elapsed_time(earlier.raw, self.raw)) / 1000


class CupyStream(Stream):
    """A stream of a `CupyDevice`.

    Attributes:
        raw: CuPy's stream.
    """

    __slots__ = ("_on", "device", "priority", "raw")

    def __init__(self, device: Any, raw: Any, priority: int = 0) -> None:
        self.device: Any = device
        self.raw, self.priority, self._on = raw, priority, device.raw

    def __enter__(self) -> CupyStream:
        """Make device and stream current for CuPy, in this thread."""
        self._on.__enter__()
        try:
            self.raw.__enter__()
        except BaseException:
            self._on.__exit__()
            raise
        return self

    def is_current(self) -> bool:
        """Whether device and stream are current for CuPy in this thread, so that nothing has to be entered."""
        cuda = self.device.cupy.cuda
        return bool(cuda.runtime.getDevice() == self._on.id and cuda.get_current_stream().ptr == self.raw.ptr)

    def __exit__(self, *error: Any) -> None:
        try:
            self.raw.__exit__(*error)
        finally:
            self._on.__exit__(*error)

    def record(self, *, timing: bool = False) -> CupyEvent:
        """As the contract says."""
        with self._on:
            event = self.device.cupy.cuda.Event(block=True, disable_timing=not timing)
            event.record(self.raw)
        return CupyEvent(self.device, event, timing)

    def wait(self, event: Event) -> None:
        """As the contract says; an event of another device is waited for, too."""
        assert isinstance(event, CupyEvent)
        with self._on:
            self.raw.wait_event(event.raw)

    def release(self, raw: Any) -> None:
        """As the contract says: the memory goes back to the stream that it was allocated on, once this one is there."""
        if self.device.runtime.lent(self, (raw,)):
            self.device.keeping.keep(self.record(), raw)

    def synchronize(self) -> None:
        """As the contract says."""
        with failures_of(self.device), self._on:
            self.raw.synchronize()

    def __repr__(self) -> str:
        return f"<stream of {self.device.id}, priority {self.priority}>"


class Keeping:
    """Keeps values, and host memory of copies, alive until work that reads them has passed.

    CuPy gives the memory of a value back to the stream that allocated it when the last reference goes, whatever other
    streams still do with it.
    """

    def __init__(self) -> None:
        self._kept: deque[tuple[CupyEvent, tuple[Any, ...]]] = deque()
        self._lock = new_lock()

    def keep(self, event: CupyEvent, *values: Any) -> None:
        """Keep values until an event has passed, at the earliest."""
        with self._lock:
            self._kept.append((event, values))
        self.sweep()

    def sweep(self) -> None:
        """Let go of what has passed; events come to pass about in the order in which they were made."""
        gone = []  # values go after the lock does, for what they free may keep others
        with self._lock:
            while self._kept and self._kept[0][0].done:
                gone.append(self._kept.popleft())

    def __len__(self) -> int:
        return len(self._kept)


@contextmanager
def failures_of(device: Any) -> Iterator[None]:
    """Errors of the driver as failures of work that had been accepted."""
    try:
        yield
    except device.cupy.cuda.runtime.CUDARuntimeError as cause:
        raise AsynchronousError(
            f"work that {device.id} had accepted failed: {cause}; mend its cause and start the process again, for a "
            "device that has failed stays failed",
            device=str(device.id),
        ) from cause
