"""Whole programs as one native function: from `LoopIR` to LLVM text.

In order of dependence: `_sizes` (symbolic sizes in registers), `_values` (numbers in registers and in memory),
`_functions` (mathematics on them), `_arena` (memory of temporaries), `_frame` (registers and buffers of a function),
`_calls` (kernels for whole arrays), `_work` (estimates), `_polls` (interrupts), `_statements` (loops and branches),
`_lanes` and `_vectors` (innermost loops as vectors), `_chunks` (for threads), `_nests` (nests of loops as functions of
their own), `_render` (the function), `_entry` (the function as a callable).
"""

from tenferro_cpu.native.codegen.whole._arena import arena_bytes, arena_slots
from tenferro_cpu.native.codegen.whole._entry import LEVEL, loaded, native, with_outputs
from tenferro_cpu.native.codegen.whole._fortran import fortran_symbols
from tenferro_cpu.native.codegen.whole._render import NAME, RenderedFunction, render

__all__ = [
    "LEVEL",
    "NAME",
    "RenderedFunction",
    "arena_bytes",
    "arena_slots",
    "fortran_symbols",
    "loaded",
    "native",
    "render",
    "with_outputs",
]


def __dir__() -> list[str]:
    return __all__.copy()
