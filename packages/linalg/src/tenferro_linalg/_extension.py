"""The entry point ``tenferro.extensions``: brings kernels, rules and prunings of every page to a registry."""

from tenferro_linalg import (
    _algebra,
    _cholesky,
    _costs,
    _degeneracy,
    _det,
    _eigh,
    _norms,
    _pinv,
    _qr,
    _solve,
    _spectral,
    _svd,
)
from tenferro_runtime.extension import Registry


def register(registry: Registry) -> None:
    """Register the family; called once, when one of its primitives first needs something."""
    for page in (_algebra, _degeneracy, _svd, _eigh, _qr, _cholesky, _solve, _det, _pinv, _norms, _spectral, _costs):
        page.register(registry)
