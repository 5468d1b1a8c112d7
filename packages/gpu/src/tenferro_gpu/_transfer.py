"""Explicit transfers between main memory and a device; both are differentiable, as every transfer is."""

from __future__ import annotations

from typing import Any

from tenferro_tensor import HOST, Array, ComputeDevice, MemorySpace, Place, catalog, tensor


def upload(x: Any, device: str | ComputeDevice = "cuda:0") -> Any:
    """`x` in the memory of a device.

    Args:
        x: array in main memory.
        device: where to, as in ``"cuda:1"``.

    Raises:
        BackendUnavailableError: there is no such device; the text says what to install or check.
    """
    target = ComputeDevice(device)
    return catalog.transfer(x if isinstance(x, Array) else tensor(x), place=Place(MemorySpace(str(target))))


def download(x: Array) -> Any:
    """`x` in main memory; waits for the work that computes it."""
    return catalog.transfer(x, place=HOST)
