"""The CUDA and ROCm backends, on CuPy; importable where CuPy is not."""

from tenferro_gpu._backend import CudaBackend, RocmBackend, make_cuda_backend, make_rocm_backend
from tenferro_gpu._context import CudaContext, RocmContext
from tenferro_gpu._stack import Capabilities
from tenferro_gpu._transfer import download, upload

__all__ = [
    "Capabilities",
    "CudaBackend",
    "CudaContext",
    "RocmBackend",
    "RocmContext",
    "download",
    "make_cuda_backend",
    "make_rocm_backend",
    "upload",
]
