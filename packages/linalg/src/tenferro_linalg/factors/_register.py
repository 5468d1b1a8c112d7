"""Kernels, rules and batching of the primitives of this folder."""

from typing import Any

from tenferro_linalg import _sparsity
from tenferro_linalg.factors import _ldl, _lstsq, _lu, _polar, _reflections, _subspaces
from tenferro_runtime.batching import on_stacks
from tenferro_runtime.extension import Registry

PAGES: tuple[Any, ...] = (_lu, _lstsq, _ldl, _polar, _reflections, _subspaces)

STACKS = (
    _lu.lu_, _lu.plu_, _lu.permutation_, _lu.lu_pivoted_, _lu.rows_taken_,
    _lstsq.lstsq_, _lstsq.least_squares_, _ldl.ldl_, _ldl.ldl_regular_, _polar.unitary_factor_,
    _polar.anticommutator_, _reflections.column_order_, _subspaces.independent_, _subspaces.basis_, _subspaces.frame_,
)  # fmt: skip
"""Primitives on stacks of matrices, all operands with the same leading axes."""


def register(registry: Registry) -> None:
    """Register the primitives of this folder."""
    for page in PAGES:
        page.register(registry)
    for p in STACKS:
        registry.batching(p, on_stacks(p))
        registry.sparsity(p, _sparsity.on_stacks)
