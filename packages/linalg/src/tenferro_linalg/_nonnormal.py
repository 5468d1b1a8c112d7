"""Derivatives of non-orthogonal eigenvectors: their inverse, gaps of complex values, and tests.

Rounding moves an eigenvalue by the norm of the matrix times its condition, the product of the norms of its right and
left vectors. If one exceeds ``eps^-1/2`` the vectors count as dependent. All limits carry the factor ``kappa``, the
root of the sum of squares of the conditions. Values closer than ``8 n eps kappa max|w|`` count as equal. Unlike in
`tenferro_linalg._degeneracy` they have no order and no generic basis: a loss that uses their vectors is refused.
"""

from typing import Any

import numpy as np

from tenferro_linalg._algebra import adjoint, cj, columns, mm, re, rows
from tenferro_linalg._degeneracy import PASSING, TOLERANCE, frobenius
from tenferro_linalg._fallible import register_formula
from tenferro_linalg._operands import require_square
from tenferro_linalg._reports import report_defective, report_eigenvalues, report_eigenvectors
from tenferro_linalg._solve import inv_
from tenferro_runtime.extension import General, NumericalError, Registry, Spec, primitive
from tenferro_tensor import Array
from tenferro_tensor.catalog import reduce_sum, sqrt, stop_gradient


@primitive(family="tenferro-linalg.eig_inverse.v1", extension="linalg")
def eig_inverse_(v: Spec) -> Spec:
    """The inverse of eigenvectors, after testing that they are independent."""
    require_square("eig", v)
    return v


@primitive(family="tenferro-linalg.eig_checked.v1", extension="linalg")
def eig_checked_(numerator: Spec, w: Spec, kappa: Spec, scale: Spec, *, role: str) -> Spec:
    """`numerator`, after testing that it vanishes between equal eigenvalues, and for cotangents on the diagonal."""
    return numerator


@primitive(family="tenferro-linalg.eig_quotient.v1", extension="linalg")
def eig_quotient_(numerator: Spec, w: Spec, kappa: Spec, *, strict: bool) -> Spec:
    """`numerator` over ``w_j - w_i``, and 0 where these are equal; if `strict`, only the diagonal may be."""
    return numerator


@primitive(family="tenferro-linalg.eig_certified.v1", extension="linalg")
def eig_certified_(cotangent: Spec, w: Spec, kappa: Spec, scale: Spec, *, vectors: bool) -> Spec:
    """Return `cotangent` of eigenvalues after testing that equal ones have equal cotangents or, with `vectors`, that no
    eigenvalues are equal.
    """
    return cotangent


def inverse(v: Any) -> Any:
    """The inverse of eigenvectors."""
    return eig_inverse_(v)


def condition(y: Any) -> Any:
    """The conditions of all eigenvalues combined: each is the norm of a row of the inverse, as columns have norm 1."""
    return norm(y, 2)


def norm(g: Any, axes: int) -> Array:
    """Root of the sum of squares over the last `axes` axes, a constant in derivatives."""
    g = stop_gradient(g)
    return sqrt(reduce_sum(re(g * cj(g)), axes=tuple(range(g.ndim - axes, g.ndim))))


def checked(numerator: Any, w: Any, kappa: Any, scale: Any, role: str) -> Any:
    """See `eig_checked_`."""
    return eig_checked_(numerator, w, kappa, scale, role=role)


def quotient(numerator: Any, w: Any, kappa: Any) -> Any:
    """See `eig_quotient_`."""
    return eig_quotient_(numerator, w, kappa, strict=False)


def certified(cotangent: Any, w: Any, kappa: Any, scale: Any, vectors: bool) -> Any:
    """See `eig_certified_`."""
    return eig_certified_(cotangent, w, kappa, scale, vectors=vectors)


def eps(x: Any) -> float:
    """Machine epsilon of a spec or an array."""
    return float(np.finfo(x.dtype).eps)


def _largest(xp: Any, w: Any) -> Any:
    return xp.asarray(xp.abs(w).max(axis=-1)) if w.shape[-1] else xp.zeros(w.shape[:-1], w.real.dtype)


def _gaps(xp: Any, w: Any, kappa: Any, unit: float) -> tuple[Any, Any, Any]:
    """``w_j - w_i``, a mask of those that count as zero, including the diagonal, and the mask of the diagonal."""
    n = w.shape[-1]
    gaps = w[..., None, :] - w[..., :, None]
    limit = 8 * n * unit * _largest(xp, w) * xp.asarray(kappa)
    return gaps, xp.abs(gaps) <= limit[..., None, None], xp.eye(n, dtype=bool)


def _inverse(xp: Any, v: Any) -> tuple[Any, Any]:
    y = inv_(v, what="eig")
    return y, ~(frobenius(xp, y, (-1,)) <= eps(v) ** -0.5)


def _inverse_kernel(la: Any, ins: Any, outs: Any) -> Any:
    limit = eps(ins[0]) ** -0.5

    def run(v: Any) -> Any:
        xp = la.xp
        try:
            y = la.inv(v, "eig")
        except NumericalError as cause:
            raise report_defective(getattr(cause, "index", ()), float("inf"), limit) from cause
        with np.errstate(over="ignore"):
            kappa = xp.linalg.norm(y, axis=-1)
        bad = ~(kappa <= limit)
        if bool(bad.any()):
            *batch, i = (int(k) for k in np.argwhere(la.local(bad))[0])
            raise report_defective(tuple(batch), float(la.local(kappa)[(*batch, i)]), limit)
        return y

    return run


def _checked(xp: Any, numerator: Any, w: Any, kappa: Any, scale: Any, *, role: str) -> tuple[Any, Any]:
    return numerator, not_vanishing(xp, numerator, w, kappa, scale, role)


def _checked_kernel(la: Any, ins: Any, outs: Any, *, role: str) -> Any:
    def run(numerator: Any, w: Any, kappa: Any, scale: Any) -> Any:
        bad = not_vanishing(la.xp, numerator, w, kappa, scale, role)
        if bool(bad.any()):
            raise report_eigenvectors(la, numerator, w, bad, role)
        return numerator

    return run


def not_vanishing(xp: Any, numerator: Any, w: Any, kappa: Any, scale: Any, role: str) -> Any:
    """Where a numerator does not vanish between equal eigenvalues, and for cotangents on the diagonal."""
    n, unit = w.shape[-1], eps(w)
    gaps, equal, diagonal = _gaps(xp, w, kappa, unit)
    allowed = (TOLERANCE * n * unit * xp.asarray(kappa) * xp.asarray(scale))[..., None, None]
    bad = equal & ~diagonal & (xp.abs(numerator) > allowed)
    if role == "cotangent" and n:
        # Cotangents of second order hold quotients by the smallest gap; their noise counts like that of phases.
        least = xp.where(equal, xp.inf, xp.abs(gaps)).min(axis=(-2, -1))
        noise = (1 + _largest(xp, w) / least)[..., None, None] * allowed
        bad = bad | diagonal & (xp.abs(numerator) > noise)
    return bad


def _quotient_kernel(la: Any, ins: Any, outs: Any, *, strict: bool) -> Any:
    def run(numerator: Any, w: Any, kappa: Any) -> Any:
        out, close = divided(la.xp, numerator, w, kappa)
        if strict and bool(close.any()):
            raise report_eigenvalues(la, w, close, None, True)
        return out

    return run


def _quotient(xp: Any, *operands: Any, strict: bool) -> tuple[Any, Any]:
    out, close = divided(xp, *operands)
    return out, close if strict else xp.asarray(False)


def divided(xp: Any, numerator: Any, w: Any, kappa: Any) -> tuple[Any, Any]:
    """`numerator` over its gaps, 0 where they vanish, and the gaps too small for a quotient of higher order."""
    unit = eps(w)
    gaps, equal, diagonal = _gaps(xp, w, kappa, unit)
    # The noise of a quotient is divided by the gap once more: below sqrt(eps) no digit is left.
    close = ~diagonal & (equal | (xp.abs(gaps) <= unit**0.5 * _largest(xp, w)[..., None, None]))
    equal = equal | diagonal
    # Mask both sides: an inf of a dropped pair would reappear as NaN at second order.
    out = xp.where(equal, numerator.dtype.type(0), numerator / xp.where(equal, gaps.dtype.type(1), gaps))
    return out, close


def _certified_kernel(la: Any, ins: Any, outs: Any, *, vectors: bool) -> Any:
    def run(cotangent: Any, w: Any, kappa: Any, scale: Any) -> Any:
        bad = unequal(la.xp, cotangent, w, kappa, scale, vectors)
        if bool(bad.any()):
            raise report_eigenvalues(la, w, bad, cotangent, vectors)
        return cotangent

    return run


def _certified(xp: Any, cotangent: Any, w: Any, kappa: Any, scale: Any, *, vectors: bool) -> tuple[Any, Any]:
    return cotangent, unequal(xp, cotangent, w, kappa, scale, vectors)


def unequal(xp: Any, cotangent: Any, w: Any, kappa: Any, scale: Any, vectors: bool) -> Any:
    """Pairs of equal eigenvalues with different cotangents; with `vectors`, all pairs of equal ones."""
    unit = eps(w)
    _, equal, diagonal = _gaps(xp, w, kappa, unit)
    bad = equal & ~diagonal
    if vectors:
        return bad
    allowed = TOLERANCE * w.shape[-1] * unit * xp.asarray(kappa) * xp.asarray(scale)
    spread = xp.abs(cotangent[..., :, None] - cotangent[..., None, :])
    return bad & (spread > allowed[..., None, None])


def _inverse_jvp(primals: Any, tangents: Any, outs: Any) -> tuple[Any]:
    (y,) = outs
    return (-mm(y, tangents[0], y),)


def _inverse_vjp(primals: Any, outs: Any, cotangents: Any) -> tuple[Any]:
    yh = adjoint(outs[0])
    return (-mm(yh, cotangents[0], yh),)


def _quotient_jvp(primals: Any, tangents: Any, outs: Any, *, strict: bool) -> tuple[Any]:
    (_, w, kappa), (change, dw, _), (q,) = primals, tangents, outs
    if dw is not None:
        moved = -(q * (columns(dw, q) - rows(dw, q)))
        change = moved if change is None else change + moved
    return (None if change is None else eig_quotient_(change, w, kappa, strict=True),)


def _quotient_vjp(primals: Any, outs: Any, cotangents: Any, *, strict: bool) -> tuple[Any, Any, None]:
    (_, w, kappa), (q,) = primals, outs
    numerator = eig_quotient_(cotangents[0], cj(w), kappa, strict=True)
    pull = -(cj(q) * numerator)
    return numerator, reduce_sum(pull, axes=(pull.ndim - 2,)) - reduce_sum(pull, axes=(pull.ndim - 1,)), None


def register(registry: Registry) -> None:
    """Kernels and rules of the primitives of this module."""
    from tenferro_linalg._providers import kernels

    kernels(registry, eig_inverse_, _inverse_kernel)
    kernels(registry, eig_checked_, _checked_kernel, blas=False)
    kernels(registry, eig_quotient_, _quotient_kernel, blas=False)
    kernels(registry, eig_certified_, _certified_kernel, blas=False)
    for p, formula in (
        (eig_inverse_, _inverse),
        (eig_checked_, _checked),
        (eig_quotient_, _quotient),
        (eig_certified_, _certified),
    ):
        register_formula(registry, p, formula, loops=False)
    registry.rule(eig_inverse_, General(jvp=_inverse_jvp, vjp=_inverse_vjp))
    registry.rule(eig_checked_, PASSING)
    registry.rule(eig_certified_, PASSING)
    registry.rule(eig_quotient_, General(jvp=_quotient_jvp, vjp=_quotient_vjp))
