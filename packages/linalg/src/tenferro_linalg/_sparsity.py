"""Which elements a result depends on: those of the same matrix of a stack, and of the same right-hand side."""

from typing import Any

from tenferro_linalg import (
    _algebra,
    _cholesky,
    _degeneracy,
    _det,
    _divided,
    _eig,
    _eigh,
    _nonnormal,
    _norms,
    _pinv,
    _qr,
    _solve,
    _spectral,
    _svd,
    _tridiagonal,
)
from tenferro_linalg.equations import _riccati, _schur_factors, _stein, _sylvester
from tenferro_linalg.functions import _general, _terms
from tenferro_linalg.similarity import _hessenberg, _rotations, _schur
from tenferro_runtime.extension import IndexMap, Registry, SparsityStep, Spec, index_map

Parts = tuple[tuple[tuple[IndexMap], ...], ...]

STACKS = (
    _algebra.part_, _algebra.hermitian_, _cholesky.cholesky_,
    _solve.lu_factor_, _solve.inv_, _det.det_, _det.slogdet_, _det.adjugate_,
    _det.adjugate_change_, _eigh.eigh_, _eigh.eigvalsh_, _eigh.eigh_adapted_, _svd.svd_, _svd.svdvals_,
    _svd.svd_adapted_, _qr.qr_, _qr.qr_r_, _pinv.pinv_, _spectral.spectral_value_, _spectral.spectral_term_,
    _degeneracy.unrotated_, _eig.eig_, _eig.eigvals_, _nonnormal.eig_inverse_, _nonnormal.eig_checked_,
    _nonnormal.eig_quotient_, _terms.matrix_function_, _general.funm_term_,
    _schur_factors.schur_factors_, _sylvester.sylvester_, _stein.stein_,
    _riccati.continuous_are_, _riccati.discrete_are_,
    _rotations.schur_rotation_, _rotations.hessenberg_rotation_, _schur.schur_, _schur.schur_phases_,
    _hessenberg.hessenberg_,
)  # fmt: skip
"""Primitives whose first operand is a stack of matrices."""

SPECTRA = {
    _degeneracy.checked_: 1, _degeneracy.quotient_: 1, _degeneracy.certified_: 1, _degeneracy.unsigned_: 2,
    _degeneracy.cotangent_scale_: 0, _divided.groups_: 0, _nonnormal.eig_certified_: 1,
    _tridiagonal.eigvalsh_tridiagonal_: 0,
}  # fmt: skip
"""Primitives with a stack of eigenvalues or singular values among their operands, and its index."""


def on_stacks(step: SparsityStep) -> Parts:
    """Results of one matrix depend on the operands that belong to it."""
    return _each(step, step.ins[0].ndim - 2)


def _on_spectra(step: SparsityStep) -> Parts:
    return _each(step, step.ins[SPECTRA[step.op.primitive]].ndim - 1)


def _each(step: SparsityStep, batch: int) -> Parts:
    """Results of a stack depend on the operands at the same index of theirs."""
    return tuple([tuple([(_tied(out, x, range(batch), batch),) for x in step.ins]) for out in step.outs])


def _solving(step: SparsityStep) -> Parts:
    """The last operand is the right-hand side: a column of the result depends on one of its columns."""
    (out,) = step.outs
    *matrix, b = step.ins
    batch = step.ins[0].ndim - 2
    of_matrix = [(_tied(out, x, range(batch), batch),) for x in matrix]
    return ((*of_matrix, (_tied(out, b, (*range(batch), out.ndim - 1), batch),)),)


def _power_norm(step: SparsityStep) -> Parts:
    (x,), (out,) = step.ins, step.outs
    kept = [a for a in range(x.ndim) if a not in step.op.params["axes"]]
    return (((index_map(kept, range(x.ndim), out, x),),),)


def _tied(out: Spec, x: Spec, axes: Any, batch: int) -> IndexMap:
    """All elements with the same index along some axes."""
    same = axes if min(out.ndim, x.ndim) >= batch and out.shape[:batch] == x.shape[:batch] else ()
    names = [a if a in same else ("operand", a) for a in range(x.ndim)]
    return index_map(range(out.ndim), names, out, x)


def register(registry: Registry) -> None:
    """Register the rules."""
    for p in STACKS:
        registry.sparsity(p, on_stacks)
    for p in SPECTRA:
        registry.sparsity(p, _on_spectra)
    for p in (_solve.solve_, _solve.lu_solve_, _solve.solve_triangular_):
        registry.sparsity(p, _solving)
    registry.sparsity(_norms.power_norm_, _power_norm)
