"""Arrays split over a mesh of devices, and programs that XLA compiles for all of them."""

from tenferro_xla.mesh._array import Shard, ShardedArray
from tenferro_xla.mesh._compile import MeshFunction, compile_on
from tenferro_xla.mesh._executable import DeviceMemory, MeshExecutable
from tenferro_xla.mesh._mesh import Mesh
from tenferro_xla.mesh._spec import P, PartitionSpec

__all__ = [
    "DeviceMemory",
    "Mesh",
    "MeshExecutable",
    "MeshFunction",
    "P",
    "PartitionSpec",
    "Shard",
    "ShardedArray",
    "compile_on",
]
