"""CPU devices ``cpu:1``, ``cpu:2``, ...: each a thread with its own cores and allocator."""

from tenferro_cpu.pools._opened import opened
from tenferro_cpu.pools._pool import CpuPool, open_pools
from tenferro_cpu.pools._thread import inside

__all__ = ["CpuPool", "inside", "open_pools", "opened"]


def __dir__() -> list[str]:
    return __all__.copy()
