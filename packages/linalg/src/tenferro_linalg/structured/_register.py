"""Kernels, rules and batching of the primitives of this folder."""

from tenferro_linalg import _sparsity
from tenferro_linalg.structured import _banded, _toeplitz
from tenferro_runtime.batching import on_stacks
from tenferro_runtime.extension import Registry

STACKS = (_banded.banded_solve_, _toeplitz.toeplitz_solve_, _toeplitz.circulant_solve_, _toeplitz.circulant_product_)
"""Primitives on stacks of matrices, all operands with the same leading axes."""


def register(registry: Registry) -> None:
    """Register the primitives of this folder."""
    for page in (_banded, _toeplitz):
        page.register(registry)
    for p in STACKS:
        registry.batching(p, on_stacks(p))
        registry.sparsity(p, _sparsity.on_stacks)
