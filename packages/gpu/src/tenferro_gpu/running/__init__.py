"""Compiled kernels on arrays of a device."""

from tenferro_gpu.running._program import GpuProgram

__all__ = ["GpuProgram"]


def __dir__() -> list[str]:
    return __all__.copy()
