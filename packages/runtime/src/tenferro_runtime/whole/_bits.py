"""Programs whose native function has the bits of single steps whatever they compute."""

from __future__ import annotations

from typing import Final

from tenferro_runtime.ir._program import Program
from tenferro_runtime.whole._cost import inside
from tenferro_tensor import REGISTRY, catalog

ROUNDING: Final = frozenset({
    catalog.reduce_sum, catalog.reduce_prod, catalog.cumsum, catalog.cumprod, catalog.cumlogsumexp,
    catalog.dot_general, catalog.scatter,
})  # fmt: skip
"""Primitives whose result depends on the order in which they add or multiply."""


def keeps_bits(program: Program) -> bool:
    """Whether no step of a program, or of one inside of it, adds numbers in an order of its own."""
    for eq in program.equations:
        inexact = any(program.specs[v].dtype.kind in "fc" for v in eq.results)
        p = eq.op.primitive
        if inexact and (p in ROUNDING or REGISTRY.find("loops", p) is not None):
            return False
        if not all(map(keeps_bits, inside(eq))):
            return False
    return True
