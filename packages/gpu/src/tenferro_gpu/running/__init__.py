"""Compiled kernels on arrays of a device: layouts of operands, arguments of launches, regions of programs."""

from tenferro_gpu.running._launch import LaunchArguments, launch_of
from tenferro_gpu.running._layout import IterationSpace, laid
from tenferro_gpu.running._program import GpuProgram
from tenferro_gpu.running._region import RegionKernel

__all__ = ["GpuProgram", "LaunchArguments", "IterationSpace", "RegionKernel", "laid", "launch_of"]
