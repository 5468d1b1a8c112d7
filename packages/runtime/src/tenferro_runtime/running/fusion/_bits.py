"""Which steps and programs have native functions with the bits of single steps."""

from __future__ import annotations

from typing import Final

from tenferro_runtime.ir._program import Equation, Program, inner_programs
from tenferro_tensor import REGISTRY, Primitive, catalog
from tenferro_tensor_core import kind_of

EXACT: Final[frozenset[Primitive]] = frozenset({
    catalog.add, catalog.sub, catalog.neg, catalog.floor, catalog.ceil, catalog.trunc, catalog.round,
    catalog.copysign, catalog.convert, catalog.select, catalog.stop_gradient, catalog.conj,
    catalog.eq, catalog.ne, catalog.lt, catalog.le, catalog.gt, catalog.ge, catalog.is_nan,
    catalog.is_inf, catalog.is_finite, catalog.bitwise_and, catalog.bitwise_or, catalog.bitwise_xor,
    catalog.bitwise_not,
})  # fmt: skip
"""Primitives whose results have equal bits in all correct kernels and new memory, unlike parts of complex numbers."""

EXACT_REAL: Final[frozenset[Primitive]] = frozenset({catalog.mul, catalog.div, catalog.abs, catalog.sign, catalog.sqrt})
"""The same for real numbers only; for complex numbers they round several times."""

ROUNDING: Final = frozenset({
    catalog.reduce_sum, catalog.reduce_prod, catalog.cumsum, catalog.cumprod, catalog.cumlogsumexp,
    catalog.dot_general, catalog.scatter,
})  # fmt: skip
"""Primitives whose result depends on the order in which they add or multiply."""


def keeps_bits(program: Program) -> bool:
    """Whether every step of a program, including nested programs, has equal bits in any correct kernel."""
    return all(_keeps(program, eq) and all(map(keeps_bits, inner_programs(eq.op.params))) for eq in program.equations)


def rounds_alike(program: Program, eq: Equation) -> bool:
    """Whether a step has equal bits in all correct kernels, and a row-major result for row-major operands.

    Sums and products may round by the memory layout of their operands.
    """
    if eq.op.primitive is catalog.broadcast_in_dim:
        return list(eq.op.params["dims"]) == sorted(eq.op.params["dims"])
    return eq.op.primitive.elementwise and _keeps(program, eq)


def _keeps(program: Program, eq: Equation) -> bool:
    p = eq.op.primitive
    kinds = {kind_of(program.specs[v].dtype) for v in (*eq.variables, *eq.results)}
    if kinds.isdisjoint("fc"):
        return True
    if p.elementwise:
        return p in EXACT or (p in EXACT_REAL and "c" not in kinds)
    return p not in ROUNDING and REGISTRY.find("loops", p) is None
