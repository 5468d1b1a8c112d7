"""StableHLO lowering of traced programs, and their execution by XLA."""

from tenferro_xla._emitter import Emitter, Value
from tenferro_xla._executor import XlaExecutable, XlaExecutor
from tenferro_xla._lower import StableHloModule, lower_to_stablehlo

__all__ = ["Emitter", "StableHloModule", "Value", "XlaExecutable", "XlaExecutor", "lower_to_stablehlo"]
