"""Compute contexts of accelerators: a context owns a stream, which runs the work of its scope."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, Self
from weakref import WeakKeyDictionary

from tenferro_tensor import dispatch
from tenferro_tensor._place import ComputeDevice
from tenferro_tensor.calls import state
from tenferro_tensor.device_runtimes._contracts import RuntimeDevice, Stream
from tenferro_tensor.device_runtimes._issuing import issuing_stream
from tenferro_tensor.device_runtimes._registry import device_runtime
from tenferro_tensor_core.forks import new_lock

if TYPE_CHECKING:
    from tenferro_tensor.device_model import Allocator


class StreamContext:
    """A compute context with its own stream, for ``with compute_context(...)``.

    The device is checked on construction; the stream is created on first use. Operations inside the scope that run on
    the device use the stream, which waits for operands that other streams write.

    Args:
        device: the accelerator, as in ``"cuda:1"``.
        priority: priority of the stream.
        allocator: allocator of results; by default that of the device.

    Attributes:
        device: the device that runs the work.
        priority: priority of the stream.
        allocator: the allocator, or None for the default one.

    Raises:
        PlacementError: there is no such device.
        BackendUnavailableError: no installed distribution offers the device, or it is missing.
    """

    __slots__ = ("__weakref__", "_lock", "_stream", "allocator", "device", "priority")
    device: ComputeDevice
    priority: int
    allocator: Allocator | None

    def __init__(self, device: str | ComputeDevice, *, priority: int = 0, allocator: Allocator | None = None) -> None:
        self.device, self.priority, self.allocator = ComputeDevice(device), priority, allocator
        self.runtime_device  # noqa: B018 - checked now, not at the first operation
        self._stream: Stream | None = None
        self._lock = new_lock()

    @classmethod
    def for_device(cls, device: Any) -> Self:
        """Return the cached context of a device, always the same one with one stream.

        Args:
            device: device or its name.

        Returns:
            The context.
        """
        name = ComputeDevice(device)
        kept = _kept.setdefault(device_runtime(name.kind).device(name.index), {})
        found: Self = kept.get(cls) or kept.setdefault(cls, cls(name))
        return found

    @property
    def runtime_device(self) -> RuntimeDevice:
        """The device as an object of its runtime."""
        return device_runtime(self.device.kind).device(self.device.index)

    @property
    def stream(self) -> Stream:
        """The stream, created on first use."""
        with self._lock:
            if self._stream is None:
                self._stream = self.runtime_device.stream(self.priority)
            return self._stream

    def activate(self) -> AbstractContextManager[Any]:
        """The context manager that `compute_context` enters, which installs the allocator."""
        return nullcontext() if self.allocator is None else self.allocator.serving()

    def synchronize(self) -> None:
        """Wait for everything issued to the stream so far.

        Raises:
            AsynchronousError: work of the stream failed.
        """
        self.stream.synchronize()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self.device)!r}, priority={self.priority})"


_kept: WeakKeyDictionary[RuntimeDevice, dict[type, Any]] = WeakKeyDictionary()


def current_stream(device: RuntimeDevice) -> Stream:
    """The stream that receives the calling thread's work on a device.

    The stream of an enclosing `Stream.launch`; else that of the enclosing compute context if it belongs to the device;
    else the default stream.

    Args:
        device: a device of the runtime.

    Returns:
        The stream.

    >>> device = device_runtime("cuda").device(0)  # doctest: +SKIP
    >>> current_stream(device) is device.default_stream  # doctest: +SKIP
    True
    """
    stream: Stream | None = issuing_stream()
    if stream is not None and stream.device is device:
        return stream
    if state.open_scopes:
        context = dispatch.scoped_context()
        if context is not None and context.device is device.id:
            found: Stream | None = getattr(context, "stream", None)
            if found is not None:
                return found
    return device.default_stream
