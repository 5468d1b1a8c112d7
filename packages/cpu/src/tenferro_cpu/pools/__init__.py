"""CPU devices ``cpu:1``, ``cpu:2``, ...: each a thread with cores and an allocator of its own."""

from tenferro_cpu.pools._opened import opened
from tenferro_cpu.pools._pool import CpuPool, open_pools
from tenferro_cpu.pools._thread import inside

__all__ = ["CpuPool", "inside", "open_pools", "opened"]
