"""XLA as a backend: places, compiled programs, the StableHLO they are lowered to, and modules of others as programs."""

from tenferro_xla._backend import XlaBackend, make_backend
from tenferro_xla._compiler import XlaCompiler, compiled, make_compiler
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
    "XlaBackend",
    "XlaCompiler",
    "XlaExecutable",
    "XlaExecutor",
    "XlaWorkers",
    "compiled",
    "import_stablehlo",
    "lower_to_stablehlo",
    "make_backend",
    "make_compiler",
]
