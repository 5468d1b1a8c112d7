"""Derivative rules of the core primitives, as tables from primitive to record.

A rule is written once and serves both modes at any order: it is made of primitives and operators only, and asks
nothing about sizes or values. Points where a function is not differentiable are listed with the rules that choose.
"""

from __future__ import annotations

from tenferro_ad.rules import contraction, elementwise, indexing, reduction, scan, sorting, structure
from tenferro_tensor import Registry

TABLES = (elementwise, structure, indexing, reduction, scan, sorting, contraction)
"""The modules whose ``RULES`` together cover the catalog."""


def register(registry: Registry) -> None:
    """Put the rules of the core primitives into a registry."""
    for table in TABLES:
        for primitive, record in table.RULES.items():
            registry.rule(primitive, record)
