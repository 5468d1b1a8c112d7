"""What an accelerator is to tenferro: devices with memory, streams that run work in order, and events between them.

Nothing here waits unless it says so. A *raw* value is whatever the backend of the same kind computes on. Work issued
to one stream runs in the order of issue; between streams there is no order but that of events.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np

from tenferro_tensor._place import ComputeDevice
from tenferro_tensor._spec import Spec
from tenferro_tensor.device_runtimes._issuing import issuing
from tenferro_tensor_core import ArgumentError, DTypeError, ShapeError


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a device can do.

    Attributes:
        name: its name.
        memory: bytes of its memory.
        warp: lanes that run in lock-step (wave width on ROCm).
        architecture: ``"90"`` for compute capability 9.0, a gfx name, or whatever the kind calls it.
        asynchronous: whether kernels return before their work is done.
    """

    name: str
    memory: int
    warp: int
    architecture: str
    asynchronous: bool = True


class Event(ABC):
    """A point in the work of a stream, made by `Stream.record`."""

    @property
    @abstractmethod
    def done(self) -> bool:
        """Whether all work before the event is done; never waits, never raises an asynchronous error."""

    @abstractmethod
    def synchronize(self) -> None:
        """Wait, in the calling thread, until all work before the event is done.

        Raises:
            AsynchronousError: work before the event failed.
        """

    @abstractmethod
    def elapsed(self, earlier: Event) -> float:
        """Seconds from an earlier event to this one; both are done.

        Raises:
            UnsupportedError: one of the two was recorded without timing, or they are of different kinds.
        """


class Stream(ABC):
    """A queue of a device: what is issued to it runs in order, later than the call that issues it.

    Attributes:
        device: the device that runs the work.
        priority: smaller numbers run first where work competes; as given when the stream was made.
    """

    device: RuntimeDevice
    priority: int

    def launch(
        self, kernel: Callable[..., Any], operands: Sequence[Any], outs: tuple[Spec, ...] = ()
    ) -> tuple[Any, ...]:
        """Issue a kernel and return its raw results at once.

        The caller answers for the order of streams: operands that another stream writes need a `wait` before.

        Args:
            kernel: what `Backend.kernel` gives for a device of this stream.
            operands: raw arrays, Python scalars and sizes, as the kernel takes them.
            outs: specs of the results.
        """
        with issuing(self):
            result = kernel(*operands)
        return tuple(result) if isinstance(result, (tuple, list)) and len(outs) != 1 else (result,)

    @abstractmethod
    def record(self, *, timing: bool = False) -> Event:
        """An event after all that has been issued so far."""

    @abstractmethod
    def wait(self, event: Event) -> None:
        """Have later work of this stream wait for an event of any stream of the runtime; the caller does not wait."""

    @abstractmethod
    def release(self, raw: Any) -> None:
        """Give the memory of a value back in the order of this stream.

        Nobody reads the value after what has been issued to this stream so far; later work of the stream may have the
        memory. A second release changes nothing. A value that is never released goes when the last reference to it
        has gone and the streams that use it have passed.
        """

    @abstractmethod
    def synchronize(self) -> None:
        """Wait, in the calling thread, until all that has been issued so far is done.

        Raises:
            AsynchronousError: work of the stream failed.
        """


class Pending(ABC):
    """A copy to main memory that is on its way.

    Attributes:
        event: the event after the copy.
    """

    event: Event

    @abstractmethod
    def result(self) -> np.ndarray[Any, Any]:
        """The host array; waits for the copy.

        Raises:
            AsynchronousError: the copy, or what computes its source, failed.
        """


class RuntimeDevice(ABC):
    """One accelerator.

    Attributes:
        id: its name, ``kind:ordinal``.
    """

    id: ComputeDevice

    @property
    def ordinal(self) -> int:
        """Its number among the devices of the runtime."""
        return self.id.index

    @property
    @abstractmethod
    def capabilities(self) -> Capabilities:
        """What it can do."""

    @property
    @abstractmethod
    def default_stream(self) -> Stream:
        """The stream of work that nobody gives another one."""

    @property
    @abstractmethod
    def copy_stream(self) -> Stream:
        """The stream for transfers that are to overlap with computing."""

    @abstractmethod
    def stream(self, priority: int = 0) -> Stream:
        """A new stream."""

    @property
    @abstractmethod
    def streams(self) -> tuple[Stream, ...]:
        """Its streams that somebody holds and that have been used, the default and the copy stream included."""

    @abstractmethod
    def memory(self) -> dict[str, int]:
        """Bytes: ``"live"`` is what values take now, ``"peak"`` the most that they took; others by choice."""

    @abstractmethod
    def upload(self, host: np.ndarray[Any, Any] | Pending, stream: Stream, out: Any = None) -> Any:
        """A raw value with the elements of a host array, copied in the order of a stream of this device.

        The array may be changed as soon as the call returns. Of a pending download no host waits: the stream waits.

        Args:
            host: the array, or a copy of one that is on its way.
            stream: the stream that copies.
            out: a raw value of this device to copy into, which is returned; the caller has ordered the stream after
                whatever else uses it.

        Raises:
            DeviceMemoryError: the memory of the device does not suffice.
            ShapeError, DTypeError, PlacementError, ArgumentError: `out` does not fit, see `require_destination`.
        """

    @abstractmethod
    def download(self, raw: Any, stream: Stream, out: np.ndarray[Any, Any] | None = None) -> Pending:
        """A copy of a raw value of this device to main memory, in the order of a stream of this device.

        Args:
            raw: the value.
            stream: the stream that copies.
            out: an array to copy into, without a copy in between; nobody touches it until the result is asked for.

        Raises:
            ShapeError, DTypeError, ArgumentError: `out` does not fit, see `require_destination`.
        """

    @abstractmethod
    def empty(self, spec: Spec, stream: Stream) -> Any:
        """A raw value whose elements nobody has written, allocated in the order of a stream of this device.

        Raises:
            DeviceMemoryError: the memory of the device does not suffice.
        """

    def synchronize(self) -> None:
        """Wait until all streams have done what has been issued so far.

        Raises:
            AsynchronousError: work of a stream failed; the first failure of several, after all have been waited for.
        """
        wait_for_each([stream.record() for stream in self.streams])

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.id}>"


class DeviceRuntime(ABC):
    """All accelerators of one kind, and what goes on between them; one per process, from `device_runtime`.

    Attributes:
        kind: the kind of device, equal to the name of the backend that computes on it.
    """

    kind: ClassVar[str]

    @abstractmethod
    def devices(self) -> tuple[RuntimeDevice, ...]:
        """The devices, by ordinal."""

    @abstractmethod
    def device(self, ordinal: int) -> RuntimeDevice:
        """The device of an ordinal.

        Raises:
            PlacementError: there is no such device; the text names those that there are. A `BackendUnavailableError`
                is right, too, where driver or hardware is missing.
        """

    @abstractmethod
    def device_of(self, raw: Any) -> RuntimeDevice:
        """The device whose memory a raw value is in."""

    @abstractmethod
    def stream_of(self, raw: Any) -> Stream | None:
        """The stream whose work computes a raw value; ``None`` where nobody has to wait for it."""

    @abstractmethod
    def can_access_peer(self, source: RuntimeDevice, target: RuntimeDevice) -> bool:
        """Whether `copy_peer` goes from memory to memory; it goes by way of main memory where not."""

    @abstractmethod
    def copy_peer(self, raw: Any, source: Stream | None, target: Stream, out: Any = None) -> Any:
        """A copy of a raw value in the memory of the target stream's device, as work of the target stream.

        Args:
            raw: the value; other streams that are to release it wait for the target stream, as for any reader.
            source: a stream for whose work so far the copy waits; ``None`` where the target stream waits already for
                what computes the value.
            target: the stream that copies.
            out: as in `RuntimeDevice.upload`.
        """

    def synchronize_all(self) -> None:
        """Wait until all streams of all devices have done what has been issued so far.

        Raises:
            AsynchronousError: work of a stream failed; the first failure of several, after all have been waited for.
        """
        wait_for_each([stream.record() for device in self.devices() for stream in device.streams])


def require_destination(out: Any, shape: tuple[Any, ...], dtype: np.dtype[Any], where: str = "main memory") -> None:
    """Refuse memory that a transfer cannot write to as it is. Implementers call it; they check the device themselves.

    Args:
        out: an array with NumPy's attributes ``shape``, ``dtype`` and ``flags``.
        shape: of the value that is copied.
        dtype: of the value that is copied.
        where: the memory, for messages.

    Raises:
        ShapeError, DTypeError: `out` has another shape or dtype; nothing is broadcast or converted.
        ArgumentError: it is no array of its own: read-only, or with gaps between its elements.

    >>> require_destination(np.zeros(3), (3,), np.dtype("float32"))
    Traceback (most recent call last):
    tenferro_tensor_core._errors.DTypeError: a transfer of float32 (3,) was given float64 (3,) in main memory to ...
    """
    if not (hasattr(out, "flags") and hasattr(out, "shape") and hasattr(out, "dtype")):
        raise ArgumentError(
            f"a transfer writes into an array of yours in {where}, got {type(out).__name__}; values never change, "
            "so that a tensor is no destination"
        )
    text = f"a transfer of {dtype} {tuple(shape)} was given {out.dtype} {out.shape} in {where} to write to; "
    if out.dtype != dtype:
        raise DTypeError(text + "pass an array of that dtype, or convert the value first", dtype=str(out.dtype))
    if tuple(out.shape) != tuple(shape):
        raise ShapeError(text + "pass an array of that shape", shape=out.shape)
    if not out.flags.c_contiguous or not getattr(out.flags, "writeable", True):
        raise ArgumentError(text + "it is read-only, or not in order without gaps; pass an array of your own")


class Waitable(Protocol):
    """What may have work to do: an event, a stream, a backend."""

    def synchronize(self) -> None:
        """Wait until it is done."""


def wait_for_each(several: Iterable[Waitable]) -> None:
    """Wait for all, also where one has failed, and raise the first failure then."""
    failures = []
    for one in several:
        try:
            one.synchronize()
        except Exception as error:
            failures.append(error)
    if failures:
        raise failures[0]
