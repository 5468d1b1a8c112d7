"""`PoolAllocator`: a memory pool of one device, as an allocator of the device model."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

from tenferro_gpu.devices._device import CupyDevice
from tenferro_tensor.device_model import Allocator

_BYTE = np.dtype(np.uint8)


class PoolAllocator(Allocator):
    """Allocates blocks as arrays of bytes, ordered on the device's default stream.

    Methods take:
        nbytes: size in bytes.

    Methods return:
        The block.

    Args:
        device: the device.
        own: whether to use a separate pool of CuPy instead of that of the device.
    """

    def __init__(self, device: CupyDevice, own: bool = False) -> None:
        self._device, self._own = device, device.cupy.cuda.MemoryPool() if own else None

    def allocate(self, nbytes: int) -> Any:
        """See `Allocator.allocate`.

        Raises:
            DeviceMemoryError: the device has not enough memory.
        """
        with self._device.enough(nbytes, _BYTE), self._device.default_stream, self.serving():
            return self._device.cupy.empty(nbytes, _BYTE)

    def stats(self) -> dict[str, int]:
        """See `Allocator.stats`: `CupyDevice.memory`; for a separate pool, its live and peak bytes."""
        if self._own is None:
            return self._device.memory()
        self._device.keeping.sweep()
        with self._device.raw:
            return {"live": int(self._own.used_bytes()), "peak": int(self._own.total_bytes())}

    def clear(self) -> None:
        """See `Allocator.clear`."""
        with self._device.raw:
            if self._own is None:
                self._device.runtime.pool.clear()
            else:
                self._own.free_all_blocks()

    def serving(self) -> AbstractContextManager[Any]:
        """See `Allocator.serving`; applies to all allocations of CuPy in this thread meanwhile."""
        if self._own is None:
            return nullcontext()
        scope: AbstractContextManager[Any] = self._device.cupy.cuda.using_allocator(self._own.malloc)
        return scope
