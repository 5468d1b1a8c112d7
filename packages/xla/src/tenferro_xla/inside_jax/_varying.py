"""The mesh axes over which arrays vary inside ``shard_map``, which JAX stores in the types of arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax

from tenferro_tensor import Spec

# JAX 0.10 replaced the first attribute by the second.
_NAMES = ("vma", "manual_axis_type")


def together(arrays: Sequence[Any]) -> list[Any]:
    """Make all arrays vary over the axes over which any of them varies."""
    axes = [_axes(jax.typeof(x)) for x in arrays]
    every = frozenset().union(*axes)
    return [_varying(x, every - own) for x, own in zip(arrays, axes, strict=True)] if every else list(arrays)


def types_of(specs: Sequence[Spec], operands: Sequence[Any]) -> list[Any]:
    """Return the types of results that vary over the axes of the operands."""
    like = next((a for a in operands if _axes(a)), None)
    if like is None:
        return [jax.core.ShapedArray(s.shape, s.dtype) for s in specs]
    varying = {name: getattr(like, name) for name in _NAMES if hasattr(like, name)}
    mesh, split = like.sharding.mesh, jax.sharding.PartitionSpec
    placed = [jax.sharding.NamedSharding(mesh, split(*[None] * s.ndim)) for s in specs]
    return [jax.core.ShapedArray(s.shape, s.dtype, sharding=p, **varying) for s, p in zip(specs, placed, strict=True)]


def _axes(aval: Any) -> frozenset[Any]:
    for name in _NAMES:
        found = getattr(aval, name, None)
        if found is not None:
            return frozenset(getattr(found, "varying", found))
    return frozenset()


def _varying(x: Any, axes: frozenset[Any]) -> Any:
    if not axes:
        return x
    if hasattr(jax.lax, "pcast"):
        return jax.lax.pcast(x, tuple(sorted(axes)), to="varying")
    return jax.lax.pvary(x, tuple(sorted(axes)))
