"""A typed builder for machine code: values with operators, memory, loops and branches.

Only this package writes LLVM text; it builds the code that depends on the user's program. In order of dependence:
`_emitter` (names, lines and basic blocks), `_scalars` (integers, flags, pointers), `_vectors` (`Vec`, on which
mathematics is written once, and `Block`, a function under construction), `_scalar_block` (the same for single numbers),
`_flow` (loops and branches), `_memory` (loads and stores of vectors), `_avx512` (instructions specific to those
processors).
"""

from tenferro_cpu.native.codegen.builder._emitter import Module
from tenferro_cpu.native.codegen.builder._flow import Branch, DoLoop, Loop, Phis
from tenferro_cpu.native.codegen.builder._memory import Scratch
from tenferro_cpu.native.codegen.builder._scalar_block import ScalarBlock
from tenferro_cpu.native.codegen.builder._scalars import Flag, Int, Pointer
from tenferro_cpu.native.codegen.builder._types import BITS, LLVM_TYPES, number
from tenferro_cpu.native.codegen.builder._vectors import Block, Vec

__all__ = [
    "BITS",
    "LLVM_TYPES",
    "Block",
    "Branch",
    "DoLoop",
    "Flag",
    "Int",
    "Loop",
    "Module",
    "Phis",
    "Pointer",
    "ScalarBlock",
    "Scratch",
    "Vec",
    "number",
]


def __dir__() -> list[str]:
    return __all__.copy()
