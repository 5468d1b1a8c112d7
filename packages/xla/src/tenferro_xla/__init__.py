"""StableHLO lowering of traced programs, and their execution by XLA."""

from tenferro_xla._emitter import HloEmitter, HloValue
from tenferro_xla._executor import XlaExecutable, XlaExecutor
from tenferro_xla._lower import StableHloModule, lower_to_stablehlo
from tenferro_xla._workers import XlaWorkers

__all__ = [
    "HloEmitter",
    "StableHloModule",
    "HloValue",
    "XlaExecutable",
    "XlaExecutor",
    "XlaWorkers",
    "lower_to_stablehlo",
]
