"""Decompositions with vectors: eigh, svd, qr, eig, and functions derived from them."""

from __future__ import annotations

from typing import Any

from tenferro_linalg import _det, _pinv
from tenferro_linalg._bases import hermitian, unitary
from tenferro_linalg.stablehlo._factors import det, not_finite
from tenferro_linalg.stablehlo._turns import adapted_eigh, generic_eigh, rebased_svd


class TracedProvider:
    """The provider methods for kernels that need no tests of values.

    Args:
        library: maps names to modules of JAX.
    """

    def __init__(self, library: Any) -> None:
        self.library, self.xp = library, library("numpy")

    def finite(self, what: str, x: Any) -> Any:
        """`x`; the lowering tests it."""
        return x

    def svd(self, x: Any, full: bool) -> Any:
        """U, S, Vh."""
        return tuple(self.xp.linalg.svd(x, full_matrices=full))

    def det(self, x: Any) -> Any:
        """Determinants."""
        return det(self.library, x)


def plain_eigh(library: Any, x: Any) -> tuple[Any, Any]:
    """Eigenvalues, and eigenvectors in the basis of the library."""
    v, w = library("lax.linalg").eigh(hermitian(x), symmetrize_input=False)
    return w, v


def eigh(library: Any, x: Any, *, basis: str) -> Any:
    """Eigenvalues and eigenvectors."""
    w, v = plain_eigh(library, x)
    return w, generic_eigh(library, w, v) if basis == "generic" else v, not_finite(library("numpy"), x, w)


def eigvalsh(library: Any, x: Any) -> Any:
    """Eigenvalues."""
    w = library("numpy").linalg.eigvalsh(hermitian(x), symmetrize_input=False)
    return w, not_finite(library("numpy"), x, w)


def eigh_adapted(library: Any, x: Any, dx: Any) -> Any:
    """Eigenvalues, and eigenvectors that follow a perturbation."""
    w, v = plain_eigh(library, x)
    return w, adapted_eigh(library, w, v, dx), not_finite(library("numpy"), x, w)


def plain_svd(library: Any, x: Any, *, full: bool) -> Any:
    """Singular triplets in the basis of the library."""
    return tuple(library("numpy").linalg.svd(x, full_matrices=full))


def svd(library: Any, x: Any, *, full: bool, basis: str, cut: Any) -> Any:
    """Singular triplets."""
    u, s, vh = plain_svd(library, x, full=full)
    failed = not_finite(library("numpy"), x, s)
    if basis == "generic":
        u, vh = rebased_svd(library, u, s, vh, None, max(x.shape[-2:]))
    return u, s, vh, failed


def svdvals(library: Any, x: Any) -> Any:
    """Singular values."""
    s = library("numpy").linalg.svd(x, compute_uv=False)
    return s, not_finite(library("numpy"), x, s)


def svd_adapted(library: Any, x: Any, dx: Any, *, full: bool) -> Any:
    """Singular triplets whose vectors follow a perturbation."""
    xp = library("numpy")
    m, n = x.shape[-2:]
    u, s, vh = xp.linalg.svd(x, full_matrices=True)
    u, vh = rebased_svd(library, u, s, vh, dx, max(m, n))
    k = min(m, n)
    failed = not_finite(xp, x, s)
    return (u, s, vh, failed) if full else (u[..., :k], s, vh[..., :k, :], failed)


def qr(library: Any, x: Any, *, mode: str, basis: str) -> Any:
    """Q and R."""
    xp = library("numpy")
    q, r = xp.linalg.qr(x, mode=mode)
    k = min(x.shape[-2:])
    if basis == "generic" and q.shape[-1] > k:
        turn = unitary(TracedProvider(library), q.shape[-1] - k, q.dtype)
        q = xp.concatenate([q[..., :k], q[..., k:] @ turn], axis=-1)
    return q, r, not_finite(xp, x)


def qr_r(library: Any, x: Any) -> Any:
    """Only R."""
    xp = library("numpy")
    return xp.linalg.qr(x, mode="r"), not_finite(xp, x)


def eig(library: Any, x: Any) -> Any:
    """Eigenvalues and eigenvectors of general matrices."""
    w, v = library("numpy").linalg.eig(x)
    return w, v, not_finite(library("numpy"), x, w)


def eigvals(library: Any, x: Any) -> Any:
    """Eigenvalues of general matrices."""
    w = library("numpy").linalg.eigvals(x)
    return w, not_finite(library("numpy"), x, w)


def pinv(library: Any, x: Any, *rtol: Any) -> Any:
    """Pseudo-inverse."""
    y = _pinv.pseudo_inverse(TracedProvider(library), x, rtol)
    return y, not_finite(library("numpy"), x, y)


def adjugate_change(library: Any, x: Any, *directions: Any) -> Any:
    """Derivative of the adjugate."""
    y = _det.adjugate_change_of(TracedProvider(library), x, *directions)
    return y, not_finite(library("numpy"), x)
