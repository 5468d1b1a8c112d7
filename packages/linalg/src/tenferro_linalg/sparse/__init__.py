"""Sparse matrices: differentiable entries at fixed positions.

`SparseArray` is the only kind; `coo_array`, `csr_array` and `sparse_array` create it from coordinates, from compressed
rows and from SciPy's sparse matrices. Iterative solvers and `eigsh` accept it as an operator.
"""

from tenferro_linalg.sparse._array import SparseArray, coo_array, csr_array, sparse_array, spsolve
from tenferro_linalg.sparse._structure import RowStructure

__all__ = ["RowStructure", "SparseArray", "coo_array", "csr_array", "sparse_array", "spsolve"]


def __dir__() -> list[str]:
    return __all__.copy()
