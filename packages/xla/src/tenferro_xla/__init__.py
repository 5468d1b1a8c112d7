"""XLA as a backend: devices, compiled programs, and StableHLO, which is lowered to, exported and imported."""

from typing import TYPE_CHECKING, Any

from tenferro_tensor_core.absent import AbsentNameError, nearest
from tenferro_xla._backend import XlaBackend, make_backend
from tenferro_xla._compiler import XlaCompiler, compiled, make_compiler
from tenferro_xla._emitter import HloEmitter, HloValue
from tenferro_xla._executor import XlaExecutable, XlaExecutor
from tenferro_xla._lower import StableHloModule, lower_to_stablehlo
from tenferro_xla._workers import DeviceWorkers, LocalDevice, LostDeviceError, XlaWorkers
from tenferro_xla.exporting import ExportedProgram, export
from tenferro_xla.importing import ImportedFunction, import_stablehlo

__all__ = [
    "ExportedProgram",
    "DeviceWorkers",
    "HloEmitter",
    "HloValue",
    "ImportedFunction",
    "LocalDevice",
    "LostDeviceError",
    "StableHloModule",
    "XlaBackend",
    "XlaCompiler",
    "XlaExecutable",
    "XlaExecutor",
    "XlaWorkers",
    "compiled",
    "export",
    "import_stablehlo",
    "lower_to_stablehlo",
    "make_backend",
    "make_compiler",
]


def __dir__() -> list[str]:
    return __all__.copy()


if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        elsewhere = name in ("as_jax", "from_jax")
        advice = (lambda: f"use tenferro_ad.adapters.jax.{name}") if elsewhere else (lambda: nearest(name, __all__))
        raise AbsentNameError(f"module 'tenferro_xla' has no attribute {name!r}", advice, name=name)
