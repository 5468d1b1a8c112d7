"""Waiting for the work of one device, or of all."""

from __future__ import annotations

from tenferro_tensor import backends
from tenferro_tensor._accelerator import AcceleratorBackend
from tenferro_tensor._place import ComputeDevice
from tenferro_tensor.device_runtimes._contracts import wait_for_each


def synchronize(device: str | ComputeDevice) -> None:
    """Wait until a device has finished all work issued so far.

    Reading a result waits for it without such a call.

    Args:
        device: device or its name, as in ``"cuda:1"``; all of its streams are waited for.

    Raises:
        AsynchronousError: work failed asynchronously; see its cause.
        PlacementError: there is no such device.

    >>> synchronize("cpu:0")
    """
    device = ComputeDevice(device)
    backend = backends.get_backend(device.kind)
    backend.require(device)
    if isinstance(backend, AcceleratorBackend):
        backend.runtime.device(device.index).synchronize()
    else:
        backend.synchronize()


def synchronize_all() -> None:
    """Wait until all devices that this process has used have finished all work issued so far.

    Raises:
        AsynchronousError: work failed asynchronously; the first of several failures, after waiting for all devices.

    >>> synchronize_all()
    """
    wait_for_each(backends.made())
