"""The lowering of each primitive; docs/reference/xla-primitives.md lists the primitives without one."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

import numpy as np

from tenferro_linalg import (
    _cholesky,
    _det,
    _divided,
    _eig,
    _eigh,
    _pinv,
    _qr,
    _solve,
    _spectral,
    _svd,
    _tridiagonal,
)
from tenferro_linalg.equations import _riccati, _schur_factors, _stein, _sylvester
from tenferro_linalg.factors import _lu, _polar, _reflections, _subspaces
from tenferro_linalg.functions import _terms
from tenferro_linalg.similarity import _hessenberg, _rotations, _schur
from tenferro_linalg.sparse import _primitives as _sparse
from tenferro_linalg.stablehlo import (
    _equations,
    _factors,
    _further,
    _groups,
    _regular,
    _roots,
    _similarity,
    _spectra,
    _structured,
    _truncated,
)
from tenferro_linalg.structured import _banded, _toeplitz
from tenferro_linalg.truncation import _ranks, _sketch
from tenferro_runtime.extension import Primitive, Registry, Spec

FLAG = Spec((), np.dtype(np.bool_))


def _lowered(function: Callable[..., Any], e: Any, xs: Any, outs: Any, **static: Any) -> Any:
    return e.traced(function, xs, outs, **static)


def _tested(function: Callable[..., Any], e: Any, xs: Any, outs: Any, **static: Any) -> Any:
    *found, failed = e.traced(function, xs, (*outs, FLAG), **static)
    e.fail(failed)
    return found


def _optimistic(
    regular: Callable[..., Any], whole: Callable[..., Any], e: Any, xs: Any, outs: Any, **static: Any
) -> Any:
    found = regular(e, xs, outs, **static) if e.optimistic else None
    return whole(e, xs, outs, **static) if found is None else found


def _term(e: Any, xs: Any, outs: Any, *, order: int, captured: int, **_: Any) -> Any:
    return e.traced(_groups.spectral_term, xs, outs, order=order, captured=captured)


def _unnamed(function: Callable[..., Any], e: Any, xs: Any, outs: Any, *, what: str = "", **static: Any) -> Any:
    """Lower a step whose result does not depend on its name in errors."""
    return _tested(function, e, xs, outs, **static)


def _matrix_function(e: Any, xs: Any, outs: Any, *, function: str, order: int) -> Any:
    if function == "exp":
        return _tested(_further.exponential, e, xs, outs)
    return _tested(_roots.matrix_function, e, xs, outs, kind=function)


def _at_places(function: Callable[..., Any], e: Any, xs: Any, outs: Any, *, structure: Any, **static: Any) -> Any:
    """Lower a step on the entries of a sparse matrix, whose positions are constants of the module."""
    places = [np.asarray(i, np.int64) for i in (structure.rows, structure.columns)]
    constants = [e.constant(i, Spec(i.shape, i.dtype)) for i in places]
    return e.traced(function, (*xs, *constants), outs, **static)


def _sparse_product(e: Any, xs: Any, outs: Any, *, structure: Any) -> Any:
    return _at_places(_structured.sparse_product, e, xs, outs, structure=structure, height=structure.shape[0])


PLAIN: Final[dict[Primitive, Callable[..., Any]]] = {
    _det.det_: _factors.det, _det.slogdet_: _factors.slogdet, _solve.lu_solve_: _factors.lu_solve,
    _lu.permutation_: _further.permutation, _divided.groups_: _groups.groups,
    _toeplitz.circulant_product_: _structured.circulant_product,
}  # fmt: skip

TESTED: Final[dict[Primitive, Callable[..., Any]]] = {
    _cholesky.cholesky_: _factors.cholesky, _solve.solve_: _factors.solve, _solve.lu_factor_: _factors.lu_factor,
    _solve.solve_triangular_: _factors.solve_triangular, _solve.inv_: _factors.inv,
    _eigh.eigh_: _spectra.eigh, _eigh.eigvalsh_: _spectra.eigvalsh, _eigh.eigh_adapted_: _spectra.eigh_adapted,
    _svd.svd_: _spectra.svd, _svd.svdvals_: _spectra.svdvals, _svd.svd_adapted_: _spectra.svd_adapted,
    _qr.qr_: _spectra.qr, _qr.qr_r_: _spectra.qr_r, _eig.eig_: _spectra.eig, _eig.eigvals_: _spectra.eigvals,
    _pinv.pinv_: _spectra.pinv, _det.adjugate_change_: _spectra.adjugate_change,
    _lu.lu_: _further.lu, _polar.unitary_factor_: _further.unitary_factor,
    _polar.anticommutator_: _further.anticommutator,
    _schur.schur_: _similarity.schur,
    _hessenberg.hessenberg_: _similarity.hessenberg, _rotations.schur_rotation_: _similarity.schur_rotation,
    _rotations.hessenberg_rotation_: _similarity.hessenberg_rotation,
    _riccati.continuous_are_: _equations.continuous_are, _riccati.discrete_are_: _equations.discrete_are,
    _reflections.column_order_: _truncated.column_order,
    _banded.banded_solve_: _structured.banded_solve, _toeplitz.toeplitz_solve_: _structured.toeplitz_solve,
    _toeplitz.circulant_solve_: _structured.circulant_solve,
    _tridiagonal.eigvalsh_tridiagonal_: _structured.eigvalsh_tridiagonal,
    _sketch.svd_sketched_: _truncated.svd_sketched,
}  # fmt: skip

UNNAMED: Final[dict[Primitive, Callable[..., Any]]] = {
    _schur_factors.schur_factors_: _similarity.schur_factors, _sylvester.sylvester_: _equations.sylvester,
    _stein.stein_: _equations.stein, _ranks.rank_: _truncated.rank, _subspaces.frame_: _truncated.frame,
}  # fmt: skip

WRITTEN: Final[dict[Primitive, Callable[..., Any]]] = {
    _spectral.spectral_term_: _term, _terms.matrix_function_: _matrix_function,
    _sparse.product_: _sparse_product,
    _sparse.sampled_: partial(_at_places, _structured.sparse_sampled),
}  # fmt: skip


def register(registry: Registry) -> None:
    """Register the lowerings, for ``tenferro_xla``.

    Args:
        registry: the registry.
    """
    for primitive, function in PLAIN.items():
        registry.lowering(primitive, partial(_lowered, function))
    for primitive, function in TESTED.items():
        whole = partial(_tested, function)
        regular = _regular.REGULAR.get(primitive)
        registry.lowering(primitive, whole if regular is None else partial(_optimistic, regular, whole))
    for primitive, function in UNNAMED.items():
        registry.lowering(primitive, partial(_unnamed, function))
    for primitive, function in WRITTEN.items():
        registry.lowering(primitive, function)
