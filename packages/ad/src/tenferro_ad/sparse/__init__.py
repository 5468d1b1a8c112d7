"""Sparse derivatives: patterns read off programs, compressed by coloring.

In the order of the work: `_read` and `_loops` interpret a program on relations between indices (`_relation`, composed
by `_compose`), with the rules of `rules`; `_entries` writes a relation out as a sparse matrix; `_plan` colors it
(`_coloring`, `_star`, `_lattice`); `_products` runs the products, and `_derivatives` puts their entries in place.
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
