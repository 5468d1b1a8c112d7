"""Iterative methods that access an operator only through its products with vectors: linear equations, eigenvalues,
exponentials.

Each iterates on one flat vector, whatever containers the unknowns have. Derivatives are those of the equation that the
result solves, by the operations of `tenferro_runtime.equations`; no iteration is differentiated.
"""

from typing import TYPE_CHECKING

from tenferro_tensor_core.deferred import deferred

if TYPE_CHECKING:
    from tenferro_linalg.krylov._convergence import KrylovInfo
    from tenferro_linalg.krylov._eigs import eigs
    from tenferro_linalg.krylov._eigsh import eigsh
    from tenferro_linalg.krylov._exponential_actions import expm_multiply
    from tenferro_linalg.krylov._least_squares import lsmr, lsqr
    from tenferro_linalg.krylov._linear import KrylovResult
    from tenferro_linalg.krylov._operators import LinearOperator
    from tenferro_linalg.krylov._projections import ArnoldiResult, LanczosResult, arnoldi, lanczos
    from tenferro_linalg.krylov._solvers import bicgstab, cg, gmres, minres
    from tenferro_linalg.krylov._svds import svds
else:
    __getattr__ = deferred(
        __name__,
        {
            "_convergence": "KrylovInfo",
            "_eigs": "eigs",
            "_eigsh": "eigsh",
            "_exponential_actions": "expm_multiply",
            "_least_squares": "lsmr lsqr",
            "_linear": "KrylovResult",
            "_operators": "LinearOperator",
            "_projections": "ArnoldiResult LanczosResult arnoldi lanczos",
            "_svds": "svds",
            "_solvers": "bicgstab cg gmres minres",
        },
    )

__all__ = [
    "ArnoldiResult",
    "KrylovInfo",
    "KrylovResult",
    "LanczosResult",
    "LinearOperator",
    "arnoldi",
    "bicgstab",
    "cg",
    "eigs",
    "eigsh",
    "expm_multiply",
    "gmres",
    "lanczos",
    "lsmr",
    "lsqr",
    "minres",
    "svds",
]


def __dir__() -> list[str]:
    return __all__.copy()
