"""Compiled kernels on arrays of a device: layouts of operands, hand-written kernels, regions of programs."""

from tenferro_gpu.running._layout import IterationSpace, laid
from tenferro_gpu.running._program import GpuProgram
from tenferro_gpu.running._region import RegionKernel

__all__ = ["GpuProgram", "IterationSpace", "RegionKernel", "laid"]
