"""StableHLO lowering of traced programs, their execution by XLA, and modules of others as programs."""

from tenferro_xla._emitter import HloEmitter, HloValue
from tenferro_xla._executor import XlaExecutable, XlaExecutor
from tenferro_xla._lower import StableHloModule, lower_to_stablehlo
from tenferro_xla._workers import XlaWorkers
from tenferro_xla.importing import ImportedFunction, import_stablehlo

__all__ = [
    "HloEmitter",
    "HloValue",
    "ImportedFunction",
    "StableHloModule",
    "XlaExecutable",
    "XlaExecutor",
    "XlaWorkers",
    "import_stablehlo",
    "lower_to_stablehlo",
]
