"""The contract of accelerators: devices with memory, streams that run work in order, and events between them.

No method blocks unless its documentation says so, except that an allocation that finds no room may wait until queued
work has freed memory. A *raw* value is an array of the backend of the same kind. Work issued to one stream runs in the
order of issue; only events order the work of different streams.
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
        architecture: ``"90"`` for compute capability 9.0, a gfx name, or the kind's own name for it.
        asynchronous: whether kernels return before their work is done.
        reference_counted: whether a released value keeps its memory while something refers to it, such as a view.
    """

    name: str
    memory: int
    warp: int
    architecture: str
    asynchronous: bool = True
    reference_counted: bool = False


class Event(ABC):
    """A point in the work of a stream, created by `Stream.record`."""

    @property
    @abstractmethod
    def done(self) -> bool:
        """Whether all work before the event is done; never waits, never raises an asynchronous error."""

    @abstractmethod
    def synchronize(self) -> None:
        """Block the calling thread until all work before the event is done.

        Raises:
            AsynchronousError: work before the event failed.
        """

    @abstractmethod
    def elapsed(self, earlier: Event) -> float:
        """Time since an earlier event; both must be done.

        Args:
            earlier: the earlier event.

        Returns:
            Seconds.

        Raises:
            UnsupportedError: one of the two was recorded without timing, or they are of different kinds.
        """


class Stream(ABC):
    """A queue of a device: work issued to it runs in order, asynchronously.

    Attributes:
        device: the device that runs the work.
        priority: smaller numbers run first when work competes; as given on creation.
    """

    device: RuntimeDevice
    priority: int

    def launch(
        self, kernel: Callable[..., Any], operands: Sequence[Any], outs: tuple[Spec, ...] = ()
    ) -> tuple[Any, ...]:
        """Issue a kernel and return its raw results at once.

        The caller orders the streams: if another stream writes an operand, call `wait` first.

        Args:
            kernel: a result of `Backend.kernel` for a device of this stream.
            operands: raw arrays, Python scalars and sizes, as the kernel takes them.
            outs: specs of the results.

        Returns:
            The raw results.
        """
        with issuing(self):
            result = kernel(*operands)
        return tuple(result) if isinstance(result, (tuple, list)) and len(outs) != 1 else (result,)

    @abstractmethod
    def record(self, *, timing: bool = False) -> Event:
        """Create an event after everything issued so far.

        Args:
            timing: record the time, for `Event.elapsed`.

        Returns:
            The event.
        """

    @abstractmethod
    def wait(self, event: Event) -> None:
        """Make later work of this stream wait for an event of any stream of the runtime; the caller does not block.

        Args:
            event: the event.
        """

    @abstractmethod
    def release(self, raw: Any) -> None:
        """Release the memory of a value in the order of this stream, whoever still refers to the value.

        The caller has made this stream wait for all streams that use the value, and never uses it again. The memory is
        free for later work of this stream, and for other streams once this one has come so far. Releasing twice has no
        effect. A value that is never released is freed once the last reference is gone and the streams that use it
        have passed.

        Args:
            raw: the value.
        """

    @abstractmethod
    def synchronize(self) -> None:
        """Block the calling thread until everything issued so far is done.

        Raises:
            AsynchronousError: work of the stream failed.
        """


class Pending(ABC):
    """A copy to main memory in progress.

    Attributes:
        event: the event after the copy.
    """

    event: Event

    @abstractmethod
    def result(self) -> np.ndarray[Any, Any]:
        """The host array; blocks until the copy is done.

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
        """The capabilities of the device."""

    @property
    @abstractmethod
    def default_stream(self) -> Stream:
        """The stream of work that specifies no other."""

    @property
    @abstractmethod
    def copy_stream(self) -> Stream:
        """The stream for transfers that overlap with computation."""

    @abstractmethod
    def stream(self, priority: int = 0) -> Stream:
        """Create a stream.

        Args:
            priority: smaller numbers run first when work competes.

        Returns:
            The stream.
        """

    @property
    @abstractmethod
    def streams(self) -> tuple[Stream, ...]:
        """The used streams that are still referenced, including the default and the copy stream."""

    @abstractmethod
    def memory(self) -> dict[str, int]:
        """Bytes by name: ``"live"`` is the current total of values, ``"peak"`` its maximum; others are optional."""

    @abstractmethod
    def upload(self, host: np.ndarray[Any, Any] | Pending, stream: Stream, out: Any = None) -> Any:
        """Copy a host array to this device, in the order of one of its streams.

        The array may be changed as soon as the call returns. For a pending download, the stream waits, not the host.

        Args:
            host: the array, or a pending copy of one.
            stream: the stream that copies.
            out: raw value of this device to copy into; the caller has ordered the stream after other uses of it.

        Returns:
            The raw value, `out` if given.

        Raises:
            DeviceMemoryError: the device is out of memory.
            ShapeError, DTypeError, PlacementError, ArgumentError: `out` does not fit; see `require_destination`.
        """

    @abstractmethod
    def download(self, raw: Any, stream: Stream, out: np.ndarray[Any, Any] | None = None) -> Pending:
        """Copy a raw value of this device to main memory, in the order of one of its streams.

        Args:
            raw: the value.
            stream: the stream that copies.
            out: array to copy into directly; nobody may touch it until the result is read.

        Returns:
            The pending copy.

        Raises:
            ShapeError, DTypeError, ArgumentError: `out` does not fit; see `require_destination`.
        """

    @abstractmethod
    def empty(self, spec: Spec, stream: Stream) -> Any:
        """Allocate an uninitialised raw value, in the order of one of the device's streams.

        Args:
            spec: shape and dtype.
            stream: the stream.

        Returns:
            The raw value.

        Raises:
            DeviceMemoryError: the device is out of memory.
        """

    def synchronize(self) -> None:
        """Wait until all streams have finished everything issued so far.

        Raises:
            AsynchronousError: work of a stream failed; the first of several failures, after waiting for all streams.
        """
        wait_for_each([stream.record() for stream in self.streams])

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.id}>"


class DeviceRuntime(ABC):
    """All accelerators of one kind, and the operations between them; one per process, from `device_runtime`.

    Attributes:
        kind: the kind of device, equal to the name of the backend that computes on it.
    """

    kind: ClassVar[str]

    @abstractmethod
    def devices(self) -> tuple[RuntimeDevice, ...]:
        """The devices, by ordinal."""

    @abstractmethod
    def device(self, ordinal: int) -> RuntimeDevice:
        """Return a device by its number.

        Args:
            ordinal: number of the device.

        Returns:
            The device.

        Raises:
            PlacementError: there is no such device; the text names the existing ones.
            BackendUnavailableError: the driver or the hardware is missing.
        """

    @abstractmethod
    def device_of(self, raw: Any) -> RuntimeDevice:
        """The device whose memory holds a raw value.

        Args:
            raw: the value.

        Returns:
            The device.
        """

    @abstractmethod
    def stream_of(self, raw: Any) -> Stream | None:
        """The stream that computes a raw value.

        Args:
            raw: the value.

        Returns:
            The stream, or None if nobody has to wait for the value.
        """

    @abstractmethod
    def can_access_peer(self, source: RuntimeDevice, target: RuntimeDevice) -> bool:
        """Whether `copy_peer` copies directly between two devices instead of through main memory.

        Args:
            source: device to copy from.
            target: device to copy to.

        Returns:
            True for direct copies.
        """

    @abstractmethod
    def copy_peer(self, raw: Any, source: Stream | None, target: Stream, out: Any = None) -> Any:
        """Copy a raw value to the device of the target stream, as work of that stream.

        Args:
            raw: the value; before its release, the caller lets the releasing stream wait for the target stream.
            source: stream whose work so far the copy waits for; None if the target stream already waits for the value.
            target: the stream that copies.
            out: as in `RuntimeDevice.upload`.

        Returns:
            The raw value on the target device.
        """

    def synchronize_all(self) -> None:
        """Wait until all streams of all devices have finished everything issued so far.

        Raises:
            AsynchronousError: work of a stream failed; the first of several failures, after waiting for all streams.
        """
        wait_for_each([stream.record() for device in self.devices() for stream in device.streams])


def require_destination(out: Any, shape: tuple[Any, ...], dtype: np.dtype[Any], where: str = "main memory") -> None:
    """Refuse memory that a transfer cannot write to directly.

    Implementers call it, and check the device themselves.

    Args:
        out: array with NumPy's attributes ``shape``, ``dtype`` and ``flags``.
        shape: shape of the copied value.
        dtype: dtype of the copied value.
        where: the memory space, for messages.

    Raises:
        ShapeError, DTypeError: `out` has another shape or dtype; nothing is broadcast or converted.
        ArgumentError: `out` is read-only, not contiguous, or not an array.

    >>> require_destination(np.zeros(3), (3,), np.dtype("float32"))
    Traceback (most recent call last):
    tenferro_tensor_core._errors.DTypeError: a transfer of float32 (3,) was given float64 (3,) in main memory to ...
    """
    if hasattr(out, "spec") or not (hasattr(out, "flags") and hasattr(out, "shape") and hasattr(out, "dtype")):
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
    """Something that may have pending work: an event, a stream, a backend."""

    def synchronize(self) -> None:
        """Wait until it is done."""


def wait_for_each(several: Iterable[Waitable]) -> None:
    """Wait for all, even if one has failed, then raise the first failure."""
    failures = []
    for one in several:
        try:
            one.synchronize()
        except Exception as error:
            failures.append(error)
    if failures:
        raise failures[0]
