"""Waiting for work: of one device, or of all."""

from __future__ import annotations

from tenferro_tensor import backends
from tenferro_tensor._accelerator import AcceleratorBackend
from tenferro_tensor._place import ComputeDevice
from tenferro_tensor.device_runtimes._contracts import wait_for_each


def synchronize(device: str | ComputeDevice) -> None:
    """Wait until a device has done all work that was given to it so far.

    Results need no such call: reading one waits for what computes it.

    Args:
        device: as in ``"cuda:1"``; every stream of it is waited for.

    Raises:
        AsynchronousError: work failed after it had been accepted; the cause is kept.
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
    """Wait until all devices that this process has used have done all work that was given to them so far.

    Raises:
        AsynchronousError: work failed after it had been accepted; the first of several, after all have been waited for.

    >>> synchronize_all()
    """
    wait_for_each(backends.made())
