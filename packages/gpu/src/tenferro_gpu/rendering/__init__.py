"""Kernels as CUDA C: the functions of primitives, statements of loop nests, and the assignment of work items."""

from tenferro_gpu.rendering._functions import RESERVED, function_of, rendered
from tenferro_gpu.rendering._group_writer import BLOCK
from tenferro_gpu.rendering._loops import Axes, chain, parallel_work, rows
from tenferro_gpu.rendering._nest_kernels import NestKernel, Sharing
from tenferro_gpu.rendering._parts_writer import MAX_PARTS, SLOT
from tenferro_gpu.rendering._renderer import CudaRenderer
from tenferro_gpu.rendering._sharing import sharing_of

__all__ = [
    "Axes",
    "BLOCK",
    "CudaRenderer",
    "MAX_PARTS",
    "NestKernel",
    "RESERVED",
    "SLOT",
    "Sharing",
    "chain",
    "function_of",
    "parallel_work",
    "rendered",
    "rows",
    "sharing_of",
]


def __dir__() -> list[str]:
    return __all__.copy()
