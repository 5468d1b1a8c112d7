"""Derivative rules of the core primitives, as tables from primitive to rule.

A rule serves both modes at any order: it consists of primitives and operators, and never branches on sizes or values.
Each module lists its conventions for points where a function is not differentiable.
"""

from __future__ import annotations

from tenferro_ad.rules import contraction, elementwise, indexing, reduction, scan, sorting, structure
from tenferro_tensor import Registry

TABLES = (elementwise, structure, indexing, reduction, scan, sorting, contraction)
"""The modules whose ``RULES`` together cover the catalog."""


def register(registry: Registry) -> None:
    """Register the rules of the core primitives."""
    for table in TABLES:
        for primitive, record in table.RULES.items():
            registry.rule(primitive, record)
