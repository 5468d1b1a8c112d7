"""StableHLO lowering of traced programs, and their execution by XLA."""

from tenferro_xla._emitter import HloEmitter, HloValue
from tenferro_xla._executor import XlaExecutable, XlaExecutor
from tenferro_xla._lower import StableHloModule, lower_to_stablehlo

__all__ = ["HloEmitter", "StableHloModule", "HloValue", "XlaExecutable", "XlaExecutor", "lower_to_stablehlo"]
