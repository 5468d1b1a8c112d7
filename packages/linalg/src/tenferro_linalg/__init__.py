"""Differentiable linear algebra with leading batch axes: the Array API names and what tensor networks need beside them.

Every function takes concrete, differentiated and traced values alike. A gradient that does not exist, or that
depends on an arbitrary choice of basis, is a typed error that names the values at fault; never NaN.
"""

from typing import TYPE_CHECKING

from tenferro_linalg._cholesky import cholesky
from tenferro_linalg._compositions import cross, matrix_power, matrix_rank
from tenferro_linalg._det import SlogdetResult, det, slogdet
from tenferro_linalg._eig import EigResult, eig, eigvals
from tenferro_linalg._eigh import EighResult, eigh, eigvalsh
from tenferro_linalg._errors import DefectiveError, DegenerateError, GaugeError, RankError
from tenferro_linalg._norms import matrix_norm, norm, vector_norm
from tenferro_linalg._pinv import pinv
from tenferro_linalg._qr import QRResult, qr
from tenferro_linalg._solve import inv, solve, solve_triangular
from tenferro_linalg._spectral import singular_function, spectral_function
from tenferro_linalg._svd import SVDResult, svd, svd_trunc, svdvals
from tenferro_linalg.equations._stein import solve_discrete_lyapunov
from tenferro_linalg.equations._sylvester import solve_continuous_lyapunov, solve_lyapunov, solve_sylvester
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
from tenferro_linalg.functions._powers import fractional_matrix_power, logm, signm, sqrtm
from tenferro_tensor.functions import diagonal, matmul, matrix_transpose, outer, tensordot, vecdot
from tenferro_tensor.functions import matrix_trace as trace
from tenferro_tensor_core.absent import absent_from

__all__ = [
    "DefectiveError",
    "DegenerateError",
    "EigResult",
    "EighResult",
    "ExpmFrechetResult",
    "GaugeError",
    "QRResult",
    "RankError",
    "SVDResult",
    "SlogdetResult",
    "cholesky",
    "coshm",
    "cosm",
    "cross",
    "det",
    "diagonal",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "expm",
    "expm_frechet",
    "fractional_matrix_power",
    "inv",
    "logm",
    "matmul",
    "matrix_exp",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "matrix_transpose",
    "norm",
    "outer",
    "pinv",
    "qr",
    "signm",
    "singular_function",
    "sinhm",
    "sinm",
    "slogdet",
    "solve",
    "solve_continuous_lyapunov",
    "solve_discrete_lyapunov",
    "solve_lyapunov",
    "solve_sylvester",
    "solve_triangular",
    "spectral_function",
    "sqrtm",
    "svd",
    "svd_trunc",
    "svdvals",
    "tanhm",
    "tanm",
    "tensordot",
    "trace",
    "vecdot",
    "vector_norm",
]

if not TYPE_CHECKING:
    __getattr__ = absent_from(__name__)
