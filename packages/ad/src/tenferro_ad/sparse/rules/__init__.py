"""Sparsity rules of the core primitives; elementwise ones need no rule."""

from __future__ import annotations

from tenferro_ad.sparse.rules import contraction, indexing, structure
from tenferro_tensor import Registry


def register(registry: Registry) -> None:
    """Register the rules of the core primitives."""
    for table in (structure, indexing, contraction):
        for primitive, rule in table.RULES.items():
            registry.sparsity(primitive, rule)
