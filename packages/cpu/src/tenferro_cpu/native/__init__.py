"""Native kernels of the CPU: rendered as LLVM text, compiled in the process, cached on disk.

Without llvmlite, which `tenferro-cpu` brings, or with ``TENFERRO_CPU_JIT=0`` in the environment, NumPy kernels run
instead. Importing this package does not import llvmlite; the first kernel does.
"""

from tenferro_cpu.native._host import Host
from tenferro_cpu.native.codegen.machine._jit import Engine, available, engine, host

__all__ = ["Engine", "Host", "available", "engine", "host"]


def __dir__() -> list[str]:
    return __all__.copy()
