"""Batching: the matrices of all lanes form one stack; right-hand sides of a shared matrix become columns."""

from typing import Any

from tenferro_linalg import (
    _algebra,
    _apart,
    _cholesky,
    _degeneracy,
    _det,
    _divided,
    _eig,
    _eigh,
    _nonnormal,
    _norms,
    _pinv,
    _prefixes,
    _qr,
    _solve,
    _svd,
    _tridiagonal,
)
from tenferro_linalg.equations import _riccati, _schur_factors, _stein, _sylvester
from tenferro_linalg.functions import _general, _terms
from tenferro_linalg.similarity import _hessenberg, _rotations, _schur
from tenferro_runtime.batching import all_with_lanes, on_stacks, shifting
from tenferro_runtime.extension import DimLike, Primitive, Registry
from tenferro_tensor.catalog import reshape, transpose

STACKS = (
    _algebra.part_, _algebra.hermitian_, _algebra.identity_like_,
    _cholesky.cholesky_, _solve.lu_factor_, _solve.inv_, _det.det_,
    _det.slogdet_, _det.adjugate_, _det.adjugate_change_, _eigh.eigh_, _eigh.eigvalsh_, _eigh.eigh_adapted_,
    _svd.svd_, _svd.svdvals_, _svd.svd_adapted_, _qr.qr_, _qr.qr_r_, _qr.qr_prefix_, _qr.qr_full_rank_,
    _qr.qr_rows_, _qr.qr_frame_, _prefixes.masked_, _prefixes.leading_, _prefixes.kept_, _prefixes.across_,
    _prefixes.beyond_, _pinv.pinv_, _pinv.pinv_ranked_, _divided.groups_, _degeneracy.cotangent_scale_,
    _degeneracy.checked_, _degeneracy.quotient_, _degeneracy.certified_, _degeneracy.unrotated_,
    _degeneracy.unsigned_, _apart.eigh_apart_, _apart.svd_apart_, _apart.eig_apart_, _eig.eig_, _eig.eigvals_,
    _nonnormal.eig_inverse_, _nonnormal.eig_checked_, _nonnormal.eig_quotient_, _nonnormal.eig_certified_,
    _terms.matrix_function_, _general.funm_points_,
    _schur_factors.schur_factors_, _sylvester.sylvester_, _stein.stein_,
    _riccati.continuous_are_, _riccati.discrete_are_,
    _tridiagonal.eigvalsh_tridiagonal_,
    _rotations.schur_rotation_, _rotations.hessenberg_rotation_, _schur.schur_, _schur.schur_phases_,
    _hessenberg.hessenberg_,
)  # fmt: skip
"""Primitives on stacks of matrices, all operands with the same leading axes."""


def _solving(primitive: Primitive) -> Any:
    """The rule of a solver whose last operand is the right-hand side; the other operands describe the matrix."""

    def rule(size: DimLike, values: tuple[Any, ...], batched: tuple[bool, ...], /, **metadata: Any) -> Any:
        *matrix, b = values
        if any(batched[:-1]):
            return primitive(*all_with_lanes(size, values, batched), **metadata)
        *batch, n, k = b.spec.shape[1:]
        last = len(batch)
        wide = transpose(b, permutation=(*range(1, last + 2), 0, last + 2))
        x = primitive(*matrix, reshape(wide, shape=(*batch, n, size * k)), **metadata)
        apart = reshape(x, shape=(*batch, n, size, k))
        return transpose(apart, permutation=(last + 1, *range(last + 1), last + 2))

    return rule


def register(registry: Registry) -> None:
    """Register the rules."""
    for p in STACKS:
        registry.batching(p, on_stacks(p))
    for p in (_solve.solve_, _solve.lu_solve_, _solve.solve_triangular_):
        registry.batching(p, _solving(p))
    registry.batching(_norms.power_norm_, shifting(_norms.power_norm_, "axes"))
