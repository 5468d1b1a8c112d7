"""Fusion for programs that cannot become one native function: each run of steps that can is one part.

`_parts` splits a program at the steps that prevent a native function; each part between them is a program of its own,
called by one step, with its own native function. `_bits` decides which steps have the same bits there.
"""

from tenferro_runtime.running.fusion._parts import parts
from tenferro_runtime.running.rendering._tiers import kernel_stats, wait

__all__ = ["kernel_stats", "parts", "wait"]


def __dir__() -> list[str]:
    return __all__.copy()
