"""Which function lowers which primitive."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

import numpy as np

from tenferro_linalg import (
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
)
from tenferro_linalg.factors import _lu, _polar, _subspaces
from tenferro_linalg.functions import _terms
from tenferro_linalg.stablehlo import _checks, _factors, _further, _groups, _spectra
from tenferro_runtime.extension import Primitive, Registry, Spec, UnsupportedError

FLAG = Spec((), np.dtype(np.bool_))


def _lowered(function: Callable[..., Any], e: Any, xs: Any, outs: Any, **static: Any) -> Any:
    return e.traced(function, xs, outs, **static)


def _tested(function: Callable[..., Any], e: Any, xs: Any, outs: Any, **static: Any) -> Any:
    *found, failed = e.traced(function, xs, (*outs, FLAG), **static)
    e.fail(failed)
    return found


def _term(e: Any, xs: Any, outs: Any, *, order: int, captured: int, **_: Any) -> Any:
    return e.traced(_groups.spectral_term, xs, outs, order=order, captured=captured)


def _matrix_function(e: Any, xs: Any, outs: Any, *, function: str, order: int) -> Any:
    if function != "exp":
        raise UnsupportedError(
            f"{_terms.NAMES[function]} has no StableHLO lowering; run the program on the CPU backend", function=function
        )
    return _tested(_further.exponential, e, xs, outs)


def _power_norm(library: Any, x: Any, *, axes: tuple[int, ...], p: float) -> Any:
    provider = _spectra.TracedProvider(library)
    return _norms.power_kernel(provider, (x,), (provider.xp.abs(x),), axes=axes, p=p)(x)


def _cotangent_scale(library: Any, values: Any, *others: Any) -> Any:
    return _degeneracy.scale_kernel(_spectra.TracedProvider(library), (), ())(values, *others)


PLAIN: Final[dict[Primitive, Callable[..., Any]]] = {
    _det.det_: _factors.det, _det.slogdet_: _factors.slogdet, _solve.lu_solve_: _factors.lu_solve,
    _lu.permutation_: _further.permutation, _qr.qr_prefix_: _spectra.qr_prefix, _norms.power_norm_: _power_norm,
    _degeneracy.cotangent_scale_: _cotangent_scale, _divided.groups_: _groups.groups,
}  # fmt: skip

TESTED: Final[dict[Primitive, Callable[..., Any]]] = {
    _cholesky.cholesky_: _factors.cholesky, _solve.solve_: _factors.solve, _solve.lu_factor_: _factors.lu_factor,
    _solve.solve_triangular_: _factors.solve_triangular, _solve.inv_: _factors.inv,
    _eigh.eigh_: _spectra.eigh, _eigh.eigvalsh_: _spectra.eigvalsh, _eigh.eigh_adapted_: _spectra.eigh_adapted,
    _svd.svd_: _spectra.svd, _svd.svdvals_: _spectra.svdvals, _svd.svd_adapted_: _spectra.svd_adapted,
    _qr.qr_: _spectra.qr, _qr.qr_r_: _spectra.qr_r, _eig.eig_: _spectra.eig, _eig.eigvals_: _spectra.eigvals,
    _pinv.pinv_: _spectra.pinv, _det.adjugate_: _spectra.adjugate, _det.adjugate_change_: _spectra.adjugate_change,
    _degeneracy.checked_: _checks.checked, _degeneracy.quotient_: _checks.quotient,
    _degeneracy.certified_: _checks.certified, _degeneracy.unrotated_: _checks.unrotated,
    _degeneracy.unsigned_: _checks.unsigned, _nonnormal.eig_inverse_: _checks.eig_inverse,
    _nonnormal.eig_checked_: _checks.eig_checked, _nonnormal.eig_quotient_: _checks.eig_quotient,
    _nonnormal.eig_certified_: _checks.eig_certified, _pinv.pinv_ranked_: _checks.pinv_ranked,
    _lu.lu_: _further.lu, _lu.lu_pivoted_: _further.lu_pivoted, _polar.unitary_factor_: _further.unitary_factor,
    _polar.anticommutator_: _further.anticommutator,
    _subspaces.independent_: _further.independent,
    _qr.qr_full_rank_: _checks.qr_full_rank, _qr.qr_rows_: _checks.qr_rows, _qr.qr_frame_: _checks.qr_frame,
}  # fmt: skip


def register(registry: Registry) -> None:
    """The lowerings, read by ``tenferro_xla``."""
    for primitive, function in PLAIN.items():
        registry.lowering(primitive, partial(_lowered, function))
    for primitive, function in TESTED.items():
        registry.lowering(primitive, partial(_tested, function))
    registry.lowering(_spectral.spectral_term_, _term)
    registry.lowering(_terms.matrix_function_, _matrix_function)
