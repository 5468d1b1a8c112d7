"""Imports StableHLO modules as programs, with a table of operations for each group."""

from tenferro_xla.importing._import import OPERATIONS, ImportedFunction, import_stablehlo

__all__ = ["OPERATIONS", "ImportedFunction", "import_stablehlo"]


def __dir__() -> list[str]:
    return __all__.copy()
