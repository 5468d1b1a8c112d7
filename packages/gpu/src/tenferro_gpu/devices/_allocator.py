"""`PoolAllocator`: CuPy's memory pool of one device, under the contract of the device model."""

from __future__ import annotations

from typing import Any

import numpy as np

from tenferro_gpu.devices._device import CupyDevice
from tenferro_tensor.device_model import Allocator

_BYTE = np.dtype(np.uint8)


class PoolAllocator(Allocator):
    """Blocks are arrays of bytes, in the order of the device's default stream."""

    def __init__(self, device: CupyDevice) -> None:
        self._device = device

    def allocate(self, nbytes: int) -> Any:
        """As the contract says.

        Raises:
            DeviceMemoryError: the memory of the device does not suffice.
        """
        with self._device.enough(nbytes, _BYTE), self._device.default_stream:
            return self._device.cupy.empty(nbytes, _BYTE)

    def stats(self) -> dict[str, int]:
        """As the contract says: `CupyDevice.memory`."""
        return self._device.memory()

    def clear(self) -> None:
        """As the contract says."""
        with self._device.raw:
            self._device.cupy.get_default_memory_pool().free_all_blocks()
