"""Programs as artifacts that other tools load: portable StableHLO, and exported functions of JAX."""

from tenferro_xla.exporting._export import ExportedProgram, export

__all__ = ["ExportedProgram", "export"]
