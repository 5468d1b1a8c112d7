"""The CPU backend: NumPy and SciPy kernels for every primitive."""

from tenferro_cpu._backend import CpuBackend, make_backend
from tenferro_cpu._context import CpuContext
from tenferro_cpu._info import info
from tenferro_cpu.native.memory._pool import MemoryPool, memory_pool
from tenferro_cpu.native.threads._threads import threads

__all__ = ["CpuBackend", "CpuContext", "MemoryPool", "info", "make_backend", "memory_pool", "threads"]
