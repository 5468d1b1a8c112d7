"""The typed builder of machine code: values with operators, memory, loops and branches; LLVM text is written here only.

What depends on the user's program is built with it. In the order in which one thing needs the other: `_emitter`
(names, lines and basic blocks), `_scalars` (integers, flags, pointers), `_vectors` (`Vec`, on which mathematics is
written once, and `Block`, a function under construction), `_scalar_block` (the same with one number in place of a
vector), `_flow` (loops and branches), `_memory` (loads and stores of
vectors), `_avx512` (instructions that only those processors have).
"""

from tenferro_cpu.native.builder._emitter import Module
from tenferro_cpu.native.builder._flow import Branch, DoLoop, Loop, Phis
from tenferro_cpu.native.builder._memory import Scratch
from tenferro_cpu.native.builder._scalar_block import ScalarBlock
from tenferro_cpu.native.builder._scalars import Flag, Int, Pointer
from tenferro_cpu.native.builder._types import BITS, LLVM_TYPES, number
from tenferro_cpu.native.builder._vectors import Block, Vec

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
