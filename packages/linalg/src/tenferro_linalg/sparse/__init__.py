"""Sparse matrices: entries that are differentiated, at places that are fixed.

`SparseArray` is the one kind; `coo_array`, `csr_array` and `sparse_array` make it of lists of places, of compressed
rows and of matrices of SciPy. Iterative solvers and `eigsh` take it as an operator.
"""

from tenferro_linalg.sparse._array import SparseArray, coo_array, csr_array, sparse_array, spsolve
from tenferro_linalg.sparse._structure import RowStructure

__all__ = ["RowStructure", "SparseArray", "coo_array", "csr_array", "sparse_array", "spsolve"]
