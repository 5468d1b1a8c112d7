"""Which programs have native functions with the bits of single steps."""

from __future__ import annotations

from typing import Final

from tenferro_runtime.fusion._candidates import EXACT, EXACT_REAL
from tenferro_runtime.ir._program import Equation, Program
from tenferro_runtime.whole._cost import inside
from tenferro_tensor import REGISTRY, catalog
from tenferro_tensor_core import kind_of

ROUNDING: Final = frozenset({
    catalog.reduce_sum, catalog.reduce_prod, catalog.cumsum, catalog.cumprod, catalog.cumlogsumexp,
    catalog.dot_general, catalog.scatter,
})  # fmt: skip
"""Primitives whose result depends on the order in which they add or multiply."""


def keeps_bits(program: Program) -> bool:
    """Whether every step of a program, including nested programs, has equal bits in any correct kernel."""
    return all(_keeps(program, eq) and all(map(keeps_bits, inside(eq))) for eq in program.equations)


def _keeps(program: Program, eq: Equation) -> bool:
    p = eq.op.primitive
    kinds = {kind_of(program.specs[v].dtype) for v in (*eq.variables, *eq.results)}
    if kinds.isdisjoint("fc"):
        return True
    if p.elementwise:
        return p in EXACT or (p in EXACT_REAL and "c" not in kinds)
    return p not in ROUNDING and REGISTRY.find("loops", p) is None
