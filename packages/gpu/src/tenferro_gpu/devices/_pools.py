"""The memory pools behind the devices of a kind: CuPy's default one, or CUDA's, which is ordered by streams.

CuPy's pool keeps freed blocks for the stream that they were allocated on. CUDA's (``cudaMallocAsync``) belongs to the
driver, hands memory from stream to stream where their order allows it, and is shared with other libraries that use it.
Off by default; `ASYNC_POOL_VARIABLE` turns it on. It becomes the allocator of CuPy in the whole process.
"""

from __future__ import annotations

import os
from typing import Any, Final, Protocol

from tenferro_tensor_core import BackendUnavailableError

ASYNC_POOL_VARIABLE: Final = "TENFERRO_CUDA_ASYNC_POOL"
"""Environment variable that is read when the devices are first used."""


class DevicePool(Protocol):
    """The memory of the current device of CuPy."""

    def live(self) -> int:
        """Bytes of values."""

    def peak(self) -> int:
        """Bytes that values have occupied at most, or more."""

    def clear(self) -> None:
        """Return unused memory to the device."""


class CupyPool:
    """CuPy's pool; its peak is the memory that it has taken from the device and keeps, until it is cleared.

    Methods return:
        Numbers of bytes.

    Args:
        pool: the pool.
    """

    def __init__(self, pool: Any) -> None:
        self._pool = pool

    def live(self) -> int:
        """Bytes of values."""
        return int(self._pool.used_bytes())

    def peak(self) -> int:
        """Bytes taken from the device."""
        return int(self._pool.total_bytes())

    def clear(self) -> None:
        """Return unused blocks to the device."""
        self._pool.free_all_blocks()


class AsyncPool:
    """CUDA's pool, whose counts are the driver's and include what other libraries allocate from it.

    Methods return:
        Numbers of bytes.

    Args:
        cupy: the module, whose allocator this becomes.

    Raises:
        BackendUnavailableError: the driver or a device has no such pool.
    """

    def __init__(self, cupy: Any) -> None:
        try:
            self._pool = cupy.cuda.MemoryAsyncPool()
        except Exception as cause:  # CuPy raises errors of the driver and of its own
            raise BackendUnavailableError(
                f"{ASYNC_POOL_VARIABLE}=1 asks for the asynchronous memory pool of CUDA, which a device does not have "
                f"({cause}); unset the variable",
                backend="cuda",
            ) from cause
        cupy.cuda.set_allocator(self._pool.malloc)
        self._runtime = cupy.cuda.runtime

    def live(self) -> int:
        """Bytes in use."""
        return int(self._pool.used_bytes())

    def peak(self) -> int:
        """Most bytes in use so far, as the driver has counted them."""
        here = self._runtime.deviceGetMemPool(self._runtime.getDevice())
        return int(self._runtime.memPoolGetAttribute(here, self._runtime.cudaMemPoolAttrUsedMemHigh))

    def clear(self) -> None:
        """Wait for the current stream, and return unused memory to the device."""
        self._pool.free_all_blocks()


def asynchronous() -> bool:
    """Whether CUDA's pool is requested."""
    return os.environ.get(ASYNC_POOL_VARIABLE, "") == "1"


def pool_of(cupy: Any, kind: str) -> DevicePool:
    """The pool of the devices of a kind.

    Args:
        cupy: the module.
        kind: ``"cuda"`` or ``"rocm"``, which has CuPy's pool only.

    Returns:
        The pool.

    Raises:
        BackendUnavailableError: CUDA's pool is requested, but a device does not have it.
    """
    return AsyncPool(cupy) if kind == "cuda" and asynchronous() else CupyPool(cupy.get_default_memory_pool())
