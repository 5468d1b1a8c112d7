"""From source to code: the run-time compilers of CUDA and HIP, and their cache on disk."""

from tenferro_gpu.compiling._compiler import RuntimeCompiler, compiler
from tenferro_gpu.compiling._libraries import RuntimeLibrary, runtime_library

__all__ = ["RuntimeCompiler", "RuntimeLibrary", "compiler", "runtime_library"]


def __dir__() -> list[str]:
    return __all__.copy()
