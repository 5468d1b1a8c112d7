"""The CUDA and ROCm backends, on CuPy; importable without CuPy."""

from tenferro_gpu._backend import CudaBackend, RocmBackend, device, make_cuda_backend, make_rocm_backend
from tenferro_gpu._context import CudaContext, RocmContext
from tenferro_gpu._transfer import PendingTransfer, download, upload
from tenferro_gpu.devices import CudaRuntime, PoolAllocator, RocmRuntime, register_cuda, register_rocm

__all__ = [
    "CudaBackend",
    "CudaContext",
    "CudaRuntime",
    "PendingTransfer",
    "PoolAllocator",
    "RocmBackend",
    "RocmContext",
    "RocmRuntime",
    "device",
    "download",
    "make_cuda_backend",
    "make_rocm_backend",
    "register_cuda",
    "register_rocm",
    "upload",
]


def __dir__() -> list[str]:
    return __all__.copy()
