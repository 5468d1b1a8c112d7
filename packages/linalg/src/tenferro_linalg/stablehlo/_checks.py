"""The tests of derivatives, and quotients by gaps."""

from __future__ import annotations

from typing import Any

from tenferro_linalg import _degeneracy, _nonnormal, _pinv, _qr
from tenferro_linalg.stablehlo._factors import inv
from tenferro_linalg.stablehlo._spectra import TracedProvider


def checked(
    library: Any, numerator: Any, values: Any, scale: Any, *, kind: str, role: str, what: str, size: int, cut: Any
) -> Any:
    """The numerator, and whether it does not vanish although its gap does."""
    xp = library("numpy")
    bad = _degeneracy.not_vanishing(xp, numerator, values, scale, kind, role, size)
    if kind == "difference" and role == "cotangent" and numerator.dtype.kind == "c":
        bad = bad & _degeneracy.beyond_noise(xp, numerator, values, scale, size)
    return numerator, bad.any()


def quotient(library: Any, numerator: Any, values: Any, *, kind: str, what: str, size: int, strict: bool) -> Any:
    """The numerator over its gaps."""
    xp = library("numpy")
    failed = _degeneracy.too_close(xp, values, kind).any() if strict else xp.asarray(False)
    return _degeneracy.divided(xp, numerator, values, kind, size), failed


def certified(library: Any, cotangent: Any, values: Any, *others: Any, what: str, size: int, cut: Any) -> Any:
    """The cotangent, and whether equal values have different ones."""
    bad, zero = _degeneracy.unequal(library("numpy"), cotangent, values, others, what, size)
    return cotangent, bad.any() if zero is None else bad.any() | zero.any()


def unrotated(library: Any, cotangent: Any, basis: Any, scale: Any, *, what: str, size: int) -> Any:
    """The cotangent, and whether a rotation of the basis changes the loss."""
    turn, limit = _degeneracy.rotation(library("numpy"), cotangent, basis, scale, size)
    return cotangent, (turn > limit[..., None, None]).any()


def unsigned(library: Any, cotangent: Any, other: Any, values: Any, scale: Any, *, size: int) -> Any:
    """The cotangent, and whether the loss uses single null vectors of both sides."""
    return cotangent, _degeneracy.both_signs(library("numpy"), cotangent, other, values, scale, size).any()


def eig_inverse(library: Any, v: Any) -> Any:
    """The inverse of eigenvectors, and whether these are dependent."""
    xp = library("numpy")
    y, failed = inv(library, v, what="eig")
    return y, failed | (~(xp.linalg.norm(y, axis=-1) <= _nonnormal.eps(v) ** -0.5)).any()


def eig_checked(library: Any, numerator: Any, w: Any, kappa: Any, scale: Any, *, role: str) -> Any:
    """The numerator, and whether it does not vanish although its gap does."""
    return numerator, _nonnormal.not_vanishing(library("numpy"), numerator, w, kappa, scale, role).any()


def eig_quotient(library: Any, numerator: Any, w: Any, kappa: Any, *, strict: bool) -> Any:
    """The numerator over its gaps."""
    xp = library("numpy")
    out, close = _nonnormal.divided(xp, numerator, w, kappa)
    return out, close.any() if strict else xp.asarray(False)


def eig_certified(library: Any, cotangent: Any, w: Any, kappa: Any, scale: Any, *, vectors: bool) -> Any:
    """The cotangent, and whether equal values have different ones."""
    return cotangent, _nonnormal.unequal(library("numpy"), cotangent, w, kappa, scale, vectors).any()


def pinv_ranked(library: Any, y: Any, s: Any, *rtol: Any, what: str) -> Any:
    """The pseudo-inverse, and whether its rank is uncertain."""
    return y, _pinv.uncertain(library("numpy"), s, rtol, max(y.shape[-2:]))[0].any()


def qr_full_rank(library: Any, r: Any, *, size: int) -> Any:
    """R, and whether its leading square part loses rank."""
    k = min(r.shape[-2:])
    return r, (_qr.prefix_of(TracedProvider(library), r, size, traced=True)[..., :k] == 0).any()


def qr_rows(library: Any, gr: Any, r: Any, prefix: Any, *, size: int) -> Any:
    """The upper triangle of a cotangent of R, and whether it uses rows beyond the prefix."""
    xp = library("numpy")
    gr = xp.triu(gr)
    return gr, _qr.used_rows(xp, gr, r, prefix, size).any()


def qr_frame(library: Any, gq: Any, q: Any, prefix: Any, *, size: int, k: int) -> Any:
    """A cotangent of Q, and whether it uses single columns beyond the prefix."""
    bad = _qr.used_columns(library("numpy"), gq, q, prefix, size).any()
    return gq, bad if q.shape[-1] > k else bad & ~prefix.all()
