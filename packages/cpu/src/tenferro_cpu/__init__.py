"""The CPU backend: NumPy and SciPy kernels for every primitive, and machine code where that is faster."""

from typing import TYPE_CHECKING

from tenferro_tensor_core.deferred import deferred

if TYPE_CHECKING:
    from tenferro_cpu._backend import CpuBackend, make_backend
    from tenferro_cpu._context import CpuContext
    from tenferro_cpu._info import info
    from tenferro_cpu.native.kernels._device import device
    from tenferro_cpu.native.memory._pool import MemoryPool, NumpyMemory, memory_pool
    from tenferro_cpu.native.threads._blas import use_blas
    from tenferro_cpu.native.threads._threads import threads
    from tenferro_cpu.pools import CpuPool, open_pools
else:
    __getattr__ = deferred(
        __name__,
        {
            "_backend": "CpuBackend make_backend",
            "_context": "CpuContext",
            "_info": "info",
            "native.kernels._device": "device",
            "native.memory._pool": "MemoryPool NumpyMemory memory_pool",
            "native.threads._blas": "use_blas",
            "native.threads._threads": "threads",
            "pools": "CpuPool open_pools",
        },
    )

__all__ = [
    "CpuBackend",
    "CpuContext",
    "CpuPool",
    "MemoryPool",
    "NumpyMemory",
    "device",
    "info",
    "make_backend",
    "memory_pool",
    "open_pools",
    "threads",
    "use_blas",
]


def __dir__() -> list[str]:
    return __all__.copy()
