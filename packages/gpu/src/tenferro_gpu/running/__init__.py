"""Compiled kernels on arrays of a device."""

from tenferro_gpu.running._program import GpuProgram

__all__ = ["GpuProgram"]
__dir__ = __all__.copy
