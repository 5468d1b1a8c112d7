"""CPU devices ``cpu:1``, ``cpu:2``, ...: each a thread with its own cores and allocator."""

from tenferro_cpu.pools._opened import opened
from tenferro_cpu.pools._pool import CpuPool, open_pools
from tenferro_cpu.pools._thread import inside

__all__ = ["CpuPool", "inside", "open_pools", "opened"]
__dir__ = __all__.copy
