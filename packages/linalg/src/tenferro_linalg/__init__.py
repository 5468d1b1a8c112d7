"""Differentiable linear algebra on stacks of matrices: the Array API functions, and more for tensor networks.

Every function accepts concrete, differentiated and traced values. Leading axes are batch axes. Integers and booleans
are converted to float64. A gradient that does not exist, or that depends on an arbitrary choice of basis, raises a
typed error that names the values responsible; it is never NaN.
"""

import tenferro_runtime.extension  # noqa: F401 - the code of programs, before anything imports a part of it

# isort: split
from typing import TYPE_CHECKING

from tenferro_linalg._cholesky import cholesky
from tenferro_linalg._compositions import cross, matrix_power, matrix_rank
from tenferro_linalg._det import SlogdetResult, det, slogdet
from tenferro_linalg._eig import EigResult, eig, eigvals
from tenferro_linalg._eigh import EighResult, eigh, eigvalsh
from tenferro_linalg._errors import ConvergenceError, DefectiveError, DegenerateError, GaugeError, RankError
from tenferro_linalg._norms import matrix_norm, norm, vector_norm
from tenferro_linalg._pinv import pinv
from tenferro_linalg._qr import QRResult, qr
from tenferro_linalg._solve import inv, solve, solve_triangular
from tenferro_linalg._spectral import singular_function, spectral_function
from tenferro_linalg._svd import SVDResult, svd, svdvals
from tenferro_tensor.functions import diagonal, matmul, matrix_transpose, outer, tensordot, vecdot
from tenferro_tensor.functions import matrix_trace as trace
from tenferro_tensor_core.absent import absent_from
from tenferro_tensor_core.deferred import deferred

if TYPE_CHECKING:
    from tenferro_linalg._condition import cond
    from tenferro_linalg._products import multi_dot, tensorinv, tensorsolve
    from tenferro_linalg._tridiagonal import eigh_tridiagonal, eigvalsh_tridiagonal
    from tenferro_linalg.equations._riccati import solve_continuous_are, solve_discrete_are
    from tenferro_linalg.equations._stein import solve_discrete_lyapunov
    from tenferro_linalg.equations._sylvester import solve_continuous_lyapunov, solve_lyapunov, solve_sylvester
    from tenferro_linalg.factors._ldl import LDLResult, ldl
    from tenferro_linalg.factors._lstsq import LstsqResult, lstsq
    from tenferro_linalg.factors._lu import LUFactors, LUResult, lu, lu_factor, lu_solve
    from tenferro_linalg.factors._polar import PolarResult, polar
    from tenferro_linalg.factors._positive import (
        CholeskyFactor,
        cho_factor,
        cho_solve,
        cholesky_inverse,
        cholesky_solve,
    )
    from tenferro_linalg.factors._reflections import PivotedQRResult, householder_product, rank_revealing_qr
    from tenferro_linalg.factors._subspaces import null_space, orth, subspace_angles
    from tenferro_linalg.functions._exponentials import (
        ExpmFrechetResult,
        coshm,
        cosm,
        expm,
        expm_frechet,
        matrix_exp,
        sinhm,
        sinm,
        tanhm,
        tanm,
    )
    from tenferro_linalg.functions._general import funm
    from tenferro_linalg.functions._powers import fractional_matrix_power, logm, signm, sqrtm
    from tenferro_linalg.krylov import (
        ArnoldiResult,
        KrylovInfo,
        KrylovResult,
        LanczosResult,
        LinearOperator,
        arnoldi,
        bicgstab,
        cg,
        eigs,
        eigsh,
        expm_multiply,
        gmres,
        lanczos,
        lsmr,
        lsqr,
        minres,
        svds,
    )
    from tenferro_linalg.similarity._hessenberg import HessenbergResult, hessenberg
    from tenferro_linalg.similarity._schur import SchurResult, rsf2csf, schur
    from tenferro_linalg.sparse import RowStructure, SparseArray, coo_array, csr_array, sparse_array, spsolve
    from tenferro_linalg.structured._banded import solve_banded, solveh_banded
    from tenferro_linalg.structured._constants import dft, hadamard, helmert, hilbert, invhilbert, invpascal, pascal
    from tenferro_linalg.structured._matrices import (
        block_diag,
        circulant,
        companion,
        convolution_matrix,
        hankel,
        toeplitz,
    )
    from tenferro_linalg.structured._toeplitz import solve_circulant, solve_toeplitz
    from tenferro_linalg.truncation._eigh import eigh_trunc
    from tenferro_linalg.truncation._qr import qr_trunc
    from tenferro_linalg.truncation._sketch import svd_random
    from tenferro_linalg.truncation._svd import svd_trunc
    from tenferro_tensor.functions.polynomials import vander

__all__ = [
    "ArnoldiResult",
    "CholeskyFactor",
    "ConvergenceError",
    "DefectiveError",
    "DegenerateError",
    "EigResult",
    "EighResult",
    "ExpmFrechetResult",
    "GaugeError",
    "HessenbergResult",
    "KrylovInfo",
    "KrylovResult",
    "LDLResult",
    "LUFactors",
    "LUResult",
    "LanczosResult",
    "LinearOperator",
    "LstsqResult",
    "PivotedQRResult",
    "PolarResult",
    "QRResult",
    "RankError",
    "RowStructure",
    "SVDResult",
    "SchurResult",
    "SlogdetResult",
    "SparseArray",
    "arnoldi",
    "bicgstab",
    "block_diag",
    "cg",
    "cho_factor",
    "cho_solve",
    "cholesky",
    "cholesky_inverse",
    "cholesky_solve",
    "circulant",
    "companion",
    "cond",
    "convolution_matrix",
    "coo_array",
    "coshm",
    "cosm",
    "cross",
    "csr_array",
    "det",
    "dft",
    "diagonal",
    "eig",
    "eigh",
    "eigh_tridiagonal",
    "eigh_trunc",
    "eigs",
    "eigsh",
    "eigvals",
    "eigvalsh",
    "eigvalsh_tridiagonal",
    "expm",
    "expm_frechet",
    "expm_multiply",
    "fractional_matrix_power",
    "funm",
    "gmres",
    "hadamard",
    "hankel",
    "helmert",
    "hessenberg",
    "hilbert",
    "householder_product",
    "inv",
    "invhilbert",
    "invpascal",
    "lanczos",
    "ldl",
    "logm",
    "lsmr",
    "lsqr",
    "lstsq",
    "lu",
    "lu_factor",
    "lu_solve",
    "matmul",
    "matrix_exp",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "matrix_transpose",
    "minres",
    "multi_dot",
    "norm",
    "null_space",
    "orth",
    "outer",
    "pascal",
    "pinv",
    "polar",
    "qr",
    "qr_trunc",
    "rank_revealing_qr",
    "rsf2csf",
    "schur",
    "signm",
    "singular_function",
    "sinhm",
    "sinm",
    "slogdet",
    "solve",
    "solve_banded",
    "solve_circulant",
    "solve_continuous_are",
    "solve_continuous_lyapunov",
    "solve_discrete_are",
    "solve_discrete_lyapunov",
    "solve_lyapunov",
    "solve_sylvester",
    "solve_toeplitz",
    "solve_triangular",
    "solveh_banded",
    "sparse_array",
    "spectral_function",
    "spsolve",
    "sqrtm",
    "subspace_angles",
    "svd",
    "svd_random",
    "svd_trunc",
    "svds",
    "svdvals",
    "tanhm",
    "tanm",
    "tensordot",
    "tensorinv",
    "tensorsolve",
    "toeplitz",
    "trace",
    "vander",
    "vecdot",
    "vector_norm",
]


def __dir__() -> list[str]:
    return __all__.copy()


_DEFERRED = {
    "_condition": "cond",
    "_products": "multi_dot tensorinv tensorsolve",
    "_tridiagonal": "eigh_tridiagonal eigvalsh_tridiagonal",
    "equations._riccati": "solve_continuous_are solve_discrete_are",
    "equations._stein": "solve_discrete_lyapunov",
    "equations._sylvester": "solve_continuous_lyapunov solve_lyapunov solve_sylvester",
    "factors._ldl": "LDLResult ldl",
    "factors._lstsq": "LstsqResult lstsq",
    "factors._lu": "LUFactors LUResult lu lu_factor lu_solve",
    "factors._polar": "PolarResult polar",
    "factors._positive": "CholeskyFactor cho_factor cho_solve cholesky_inverse cholesky_solve",
    "factors._reflections": "PivotedQRResult householder_product rank_revealing_qr",
    "factors._subspaces": "null_space orth subspace_angles",
    "functions._exponentials": "ExpmFrechetResult coshm cosm expm expm_frechet matrix_exp sinhm sinm tanhm tanm",
    "functions._general": "funm",
    "functions._powers": "fractional_matrix_power logm signm sqrtm",
    "krylov": "ArnoldiResult KrylovInfo KrylovResult LanczosResult LinearOperator arnoldi bicgstab "
    "cg eigs eigsh expm_multiply gmres lanczos lsmr lsqr minres svds",
    "similarity._hessenberg": "HessenbergResult hessenberg",
    "similarity._schur": "SchurResult rsf2csf schur",
    "sparse": "RowStructure SparseArray coo_array csr_array sparse_array spsolve",
    "structured._banded": "solve_banded solveh_banded",
    "structured._constants": "dft hadamard helmert hilbert invhilbert invpascal pascal",
    "structured._matrices": "block_diag circulant companion convolution_matrix hankel toeplitz vander",
    "structured._toeplitz": "solve_circulant solve_toeplitz",
    "truncation._eigh": "eigh_trunc",
    "truncation._qr": "qr_trunc",
    "truncation._sketch": "svd_random",
    "truncation._svd": "svd_trunc",
}
"""Names whose modules are imported on first access."""

_INSTEAD = {
    "LinAlgError": "tenferro_tensor_core.NumericalError",
    "coo_matrix": "tr.linalg.coo_array",
    "csr_matrix": "tr.linalg.csr_array",
    "dot": "tr.dot",
    "einsum": "tr.einsum",
    "kron": "tr.kron",
    "lu_unpack": "tr.linalg.lu",
    "pinvh": "tr.linalg.pinv(x, hermitian=True)",
    "randomized_svd": "tr.linalg.svd_random",
    "rsvd": "tr.linalg.svd_random",
    "svd_lowrank": "tr.linalg.svd_random, or tr.linalg.svd_trunc",
    "svd_truncate": "tr.linalg.svd_trunc",
    "symeig": "tr.linalg.eigh",
    "tril": "tr.tril",
    "triu": "tr.triu",
    "truncated_svd": "tr.linalg.svd_trunc",
    "tsvd": "tr.linalg.svd_trunc",
}
"""Replacements of names of other libraries."""

if not TYPE_CHECKING:
    __getattr__ = deferred(__name__, _DEFERRED, absent_from(__name__, _INSTEAD))
