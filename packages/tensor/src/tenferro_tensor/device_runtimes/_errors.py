"""Errors of device runtimes: the wrong stack, a forked process, work that failed later, memory that is used up."""

from tenferro_tensor_core import RegistryError, TenferroError


class AcceleratorMismatchError(RegistryError):
    """Two kinds of accelerator meet in one process, or a runtime would be replaced while it is in use.

    A process uses one kind of accelerator, and backend and device runtime are of that kind. Register runtimes before
    the first use of a device, set ``TENFERRO_ACCELERATOR`` to the kind that is wanted, or use another process.
    """


class ForkedRuntimeError(TenferroError, RuntimeError):
    """A device runtime was used in a process that was forked after the runtime had been made.

    Streams, events and device memory belong to the parent. Start workers with ``spawn`` or ``forkserver``, or fork
    before the first use of a device.
    """


class AsynchronousError(TenferroError, RuntimeError):
    """Work that a stream had accepted failed while it ran; the cause is the exception's ``__cause__``.

    It is raised where the stream, or an event after the failure, is waited for. What the stream computed after the
    failure is undefined. Mend the cause; a stream that has failed stays failed.
    """


class DeviceMemoryError(TenferroError, MemoryError):
    """The memory of a device does not suffice for an allocation.

    The message says how much was asked for, how much is in use and how much there is. Drop tensors, work in smaller
    pieces, or use another device.
    """
