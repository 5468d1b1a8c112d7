"""Programs as artifacts for other tools: portable StableHLO and exported JAX functions."""

from tenferro_xla.exporting._export import ExportedProgram, export

__all__ = ["ExportedProgram", "export"]


def __dir__() -> list[str]:
    return __all__.copy()
