"""Kernels as CUDA C: which function a primitive is, how an iteration space is walked, the text of a kernel."""

from tenferro_gpu.rendering._functions import RESERVED, function_of, rendered
from tenferro_gpu.rendering._renderer import CudaRenderer
from tenferro_gpu.rendering._text import BLOCK

__all__ = ["BLOCK", "RESERVED", "CudaRenderer", "function_of", "rendered"]
