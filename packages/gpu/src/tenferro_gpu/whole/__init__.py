"""Whole programs on a GPU: `LoopFunction`s as kernels, and the host code around them."""

from tenferro_gpu.rendering._sharing import FEW_ROWS
from tenferro_gpu.whole._contract import KernelTarget
from tenferro_gpu.whole._native import MIN_PART, KernelSequence
from tenferro_gpu.whole._plan import planned
from tenferro_gpu.whole._source import source_of

__all__ = ["FEW_ROWS", "MIN_PART", "KernelSequence", "KernelTarget", "planned", "source_of"]


def __dir__() -> list[str]:
    return __all__.copy()
