"""Programs with loops and branches as one native function, compiled while they run step by step.

`_cost` estimates the time of the steps, and `_program` is the native form of a program.
"""

from tenferro_runtime.lowering.native._program import how, memory

__all__ = ["how", "memory"]


def __dir__() -> list[str]:
    return __all__.copy()
