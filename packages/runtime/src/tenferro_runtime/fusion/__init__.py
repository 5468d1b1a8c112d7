"""Fusion for programs that cannot become one native function: several element-wise steps run as one kernel.

`_candidates` decides which steps may be fused, the pass `passes.fusion` finds regions, `_writer` makes one equation of
each, `_region` reads its program as a kernel, and `_kernels` runs it: op by op at first, as machine code when that is
ready.
"""

from tenferro_runtime.fusion._kernels import clear, kernel_stats, wait
from tenferro_runtime.fusion._primitive import fused

__all__ = ["clear", "fused", "kernel_stats", "wait"]
