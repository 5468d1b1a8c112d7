"""Objects of machine code that several tests look into: one import of each private module."""

from tenferro_cpu.native._extension import compiled
from tenferro_cpu.native.contraction._microkernels import REGISTERS, Microkernels, microkernels
from tenferro_cpu.native.kernels._reduce import Reduced

__all__ = ["Microkernels", "REGISTERS", "Reduced", "compiled", "microkernels"]
