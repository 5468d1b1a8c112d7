"""Inside of ``shard_map``, types of arrays name the mesh axes over which they vary; JAX spells that in two ways."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax

from tenferro_tensor import Spec

# JAX 0.10 replaced the first one by the second one.
_NAMES = ("vma", "manual_axis_type")


def together(arrays: Sequence[Any]) -> list[Any]:
    """The arrays, all varying over the axes over which any of them varies."""
    axes = [_axes(jax.typeof(x)) for x in arrays]
    every = frozenset().union(*axes)
    return [_varying(x, every - own) for x, own in zip(arrays, axes, strict=True)] if every else list(arrays)


def types_of(specs: Sequence[Spec], operands: Sequence[Any]) -> list[Any]:
    """Types of results that vary as the operands do, given their types."""
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
