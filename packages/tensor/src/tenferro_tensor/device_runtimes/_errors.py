"""Errors of device runtimes: mixed kinds, forked processes, asynchronous failures, and exhausted memory."""

from tenferro_tensor_core import RegistryError, TenferroError


class AcceleratorMismatchError(RegistryError):
    """Two kinds of accelerator meet in one process, or a runtime would be replaced while it is in use.

    A process uses one kind of accelerator, for backend and device runtime alike. Register runtimes before the first use
    of a device, set ``TENFERRO_ACCELERATOR`` to the wanted kind, or use another process.
    """


class ForkedRuntimeError(TenferroError, RuntimeError):
    """A device runtime was used in a process that was forked after the runtime had been made.

    Streams, events and device memory belong to the parent. Start workers with ``spawn`` or ``forkserver``, or fork
    before the first use of a device.
    """


class AsynchronousError(TenferroError, RuntimeError):
    """Work that a stream had accepted failed while it ran; the cause is the exception's ``__cause__``.

    It is raised by the call that waits for the stream, or for an event after the failure. Later results of the stream
    are undefined. Fix the cause; a stream that has failed stays failed.
    """


class DeviceMemoryError(TenferroError, MemoryError):
    """The memory of a device does not suffice for an allocation.

    The message states the requested, used and total memory. Delete tensors, work on smaller parts, or use another
    device.
    """
