"""The entry point ``tenferro.extensions``: adds kernels, rules and prunings of every module to a registry."""

from functools import partial
from typing import Any

from tenferro_linalg import (
    _algebra,
    _apart,
    _batching,
    _cholesky,
    _costs,
    _degeneracy,
    _det,
    _divided,
    _eig,
    _eigh,
    _fallible,
    _nonnormal,
    _norms,
    _pinv,
    _prefixes,
    _qr,
    _solve,
    _sparsity,
    _spectral,
    _svd,
    _tridiagonal,
)
from tenferro_linalg.equations import _riccati, _schur_factors, _stein, _sylvester
from tenferro_linalg.factors import _lstsq, _lu
from tenferro_linalg.factors import _register as _factors
from tenferro_linalg.functions import _general, _terms
from tenferro_linalg.krylov import _convergence
from tenferro_linalg.similarity import _hessenberg, _rotations, _schur
from tenferro_linalg.sparse import _primitives as _sparse_products
from tenferro_linalg.structured import _register as _structured
from tenferro_linalg.truncation import _register as _truncation
from tenferro_runtime.extension import Registry
from tenferro_tensor_core.forks import importing


def register(registry: Registry) -> None:
    """Register the family; called once, when one of its primitives is first used."""
    _register_loops(registry)
    _register_lowerings(registry)
    _batching.register(registry)
    _sparsity.register(registry)
    pages = (
        _algebra,
        _fallible,
        _degeneracy,
        _svd,
        _nonnormal,
        _eig,
        _eigh,
        _qr,
        _prefixes,
        _cholesky,
        _solve,
        _det,
        _pinv,
        _norms,
        _divided,
        _spectral,
        _apart,
        _costs,
        _terms,
        _general,
        _schur_factors,
        _sylvester,
        _stein,
        _riccati,
        _factors,
        _convergence,
        _sparse_products,
        _tridiagonal,
        _rotations,
        _schur,
        _hessenberg,
        _structured,
        _truncation,
    )
    for page in pages:
        page.register(registry)


def _register_loops(registry: Registry) -> None:
    """Register how primitives become loops; the rules are loaded when a program first needs one."""
    for primitive, name in (
        (_cholesky.cholesky_, "cholesky"), (_solve.solve_, "solve"), (_solve.lu_factor_, "factors"),
        (_solve.lu_solve_, "solve_by_factors"), (_solve.solve_triangular_, "solve_triangular"),
        (_solve.inv_, "inverse"), (_det.det_, "determinant"), (_det.slogdet_, "sign_and_logarithm"),
        (_eigh.eigh_, "eigenpairs"), (_eigh.eigvalsh_, "eigenvalues"),
        (_svd.svd_, "singular_triplets"), (_svd.svdvals_, "singular_values"), (_qr.qr_, "orthogonal"),
        (_qr.qr_r_, "triangle"),


        (_eigh.eigh_adapted_, "eigenpairs"), (_svd.svd_adapted_, "singular_triplets"), (_pinv.pinv_, "pseudo_inverse"),
        (_lu.lu_, "exchanged"),
        (_lu.rows_taken_, "taken"), (_eig.eig_, "general_eigenpairs"), (_eig.eigvals_, "general_eigenvalues"),
        (_terms.matrix_function_, "exponential"), (_lu.plu_, "by_expansion"),
        (_lstsq.least_squares_, "least_squares"),
    ):  # fmt: skip
        registry.loops(primitive, partial(_by_rule, name))


def _by_rule(name: str, step: Any) -> Any:
    with importing():
        from tenferro_linalg.loops import RULES
    return RULES[name](step)


def _register_lowerings(registry: Registry) -> None:
    """StableHLO lowerings."""
    from tenferro_linalg import stablehlo

    stablehlo.register(registry)
