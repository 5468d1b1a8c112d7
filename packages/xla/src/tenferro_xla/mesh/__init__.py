"""Arrays sharded over a mesh of devices, and programs that XLA compiles for all of them."""

from tenferro_xla.mesh._array import Shard, ShardedArray
from tenferro_xla.mesh._compile import MeshFunction, compile_on
from tenferro_xla.mesh._constraint import with_sharding
from tenferro_xla.mesh._executable import DeviceMemory, MeshExecutable
from tenferro_xla.mesh._mesh import Mesh
from tenferro_xla.mesh._shard_map import shard_map
from tenferro_xla.mesh._spec import P, PartitionSpec
from tenferro_xla.mesh.collectives import (
    all_gather,
    all_to_all,
    axis_index,
    axis_size,
    pmax,
    pmean,
    pmin,
    ppermute,
    psum,
    reduce_scatter,
)

__all__ = [
    "DeviceMemory",
    "Mesh",
    "MeshExecutable",
    "MeshFunction",
    "P",
    "PartitionSpec",
    "Shard",
    "ShardedArray",
    "all_gather",
    "all_to_all",
    "axis_index",
    "axis_size",
    "compile_on",
    "pmax",
    "pmean",
    "pmin",
    "ppermute",
    "psum",
    "reduce_scatter",
    "shard_map",
    "with_sharding",
]


def __dir__() -> list[str]:
    return __all__.copy()
