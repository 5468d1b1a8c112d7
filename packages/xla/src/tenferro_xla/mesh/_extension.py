"""Registrations of the entry point ``tenferro.extensions: xla``."""

from tenferro_runtime.extension import Registry
from tenferro_xla.mesh import _constraint, _derivatives, _lanes, _lowering
from tenferro_xla.mesh._shard_map import on_devices, pruned


def register(registry: Registry) -> None:
    """Register the primitives of programs on meshes."""
    registry.expansion(on_devices, _lanes.reference)
    registry.pruning(on_devices, pruned, keeps_bits=True)
    _constraint.register(registry)
    _derivatives.register(registry)
    _lanes.register(registry)
    _lowering.register(registry)
