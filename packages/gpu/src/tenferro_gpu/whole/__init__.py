"""Whole programs on a GPU: `LoopFunction`s as kernels, and as what the host does around them."""

from tenferro_gpu.whole._native import KernelSequence, KernelTarget
from tenferro_gpu.whole._plan import planned
from tenferro_gpu.whole._source import source_of

__all__ = ["KernelSequence", "KernelTarget", "planned", "source_of"]
