"""Rolls loops that Python unrolled while tracing back into loops.

`_periods` finds runs of equations that repeat, `_flow` checks whether the dataflow through them is that of a loop,
`_rows` tracks which values are slices of one array, `_body` writes the body of the loop and `_moving` its slices and
updates at moving positions, `_loop` writes the loop around it, and `_roll` rolls all loops of a program.
"""

from tenferro_runtime.lowering.rolling._roll import is_rolled, roll

__all__ = ["is_rolled", "roll"]


def __dir__() -> list[str]:
    return __all__.copy()
