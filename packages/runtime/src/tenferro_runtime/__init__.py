"""The array namespace, tracing, programs and executors."""

from tenferro_runtime import _execute as _execute
from tenferro_runtime._program import Program
from tenferro_runtime._traced import TracedTensor

__all__ = ["Program", "TracedTensor"]
