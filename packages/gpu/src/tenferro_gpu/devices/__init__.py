"""The device runtime on CuPy: devices, streams, events, and copies through page-locked memory."""

from tenferro_gpu.devices._allocator import PoolAllocator
from tenferro_gpu.devices._device import CupyDevice
from tenferro_gpu.devices._runtime import CudaRuntime, CupyRuntime, RocmRuntime, register_cuda, register_rocm
from tenferro_gpu.devices._streams import CupyEvent, CupyStream

__all__ = [
    "CudaRuntime",
    "CupyDevice",
    "CupyEvent",
    "CupyRuntime",
    "CupyStream",
    "PoolAllocator",
    "RocmRuntime",
    "register_cuda",
    "register_rocm",
]


def __dir__() -> list[str]:
    return __all__.copy()
