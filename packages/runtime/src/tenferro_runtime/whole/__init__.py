"""Programs with loops and branches as one native function, compiled while they run step by step.

`_cost` estimates how long the steps take, `_bits` says which programs keep the bits of single steps, `_form` is
the form that a program has.
"""

from tenferro_runtime.whole._form import how, memory

__all__ = ["how", "memory"]
