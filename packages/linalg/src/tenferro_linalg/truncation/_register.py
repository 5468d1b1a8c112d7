"""Kernels, rules and batching of the primitives of this folder."""

from tenferro_linalg import _sparsity
from tenferro_linalg.truncation import _coupling, _eigh, _ranks, _sketch
from tenferro_runtime.batching import on_stacks
from tenferro_runtime.extension import Registry

STACKS = (
    _ranks.rank_,
    _eigh.one_sided_,
    _eigh.one_sided_change_,
    _coupling.coupled_,
    _sketch.svd_sketched_,
)
"""Primitives on stacks of matrices, all operands with the same leading axes."""


def register(registry: Registry) -> None:
    """Register the primitives of this folder."""
    for page in (_ranks, _eigh, _coupling, _sketch):
        page.register(registry)
    for p in STACKS:
        registry.batching(p, on_stacks(p))
        registry.sparsity(p, _sparsity.on_stacks)
