"""Sparse derivatives: sparsity patterns derived from programs, compressed by coloring.

In pipeline order: `_read` and `_loops` interpret a program on relations between indices (`_relation`, composed by
`_compose`) with the rules of `rules`; `_entries` expands a relation to a sparse matrix; `_plan` colors it (`_coloring`,
`_star`, `_lattice`); `_products` computes the products, and `_derivatives` assembles their entries.
"""

from tenferro_ad.sparse._derivatives import SparseDerivative, sparse_hessian, sparse_jacobian
from tenferro_ad.sparse._plan import Compression
from tenferro_ad.sparse._sparsity import Sparsity, program_sparsity, sparsity

__all__ = [
    "Compression",
    "Sparsity",
    "SparseDerivative",
    "program_sparsity",
    "sparse_hessian",
    "sparse_jacobian",
    "sparsity",
]


def __dir__() -> list[str]:
    return __all__.copy()
