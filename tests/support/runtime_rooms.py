"""Objects of the runtime that several tests look into: one import of each private module."""

from tenferro_runtime._counters import COUNTERS
from tenferro_runtime.running._execute import by_steps, lowered
from tenferro_runtime.running.rendering._background import COMPILING, Background

__all__ = ["Background", "COMPILING", "COUNTERS", "by_steps", "lowered"]
