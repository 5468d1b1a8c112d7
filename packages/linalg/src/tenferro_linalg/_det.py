"""Determinants.

``d det = tr(adj(A) dA)`` with the adjugate, which exists for every matrix: no division, so that singular matrices
have their exact gradient (rank n - 1) or zero (below). With ``A = U diag(s) V*`` and ``phi = det(U) det(V*)``::

    adj(A) = phi V diag(prod_{l != i} s_l) U*
    d adj  = phi V T(U* dA V) U*,   T(B)_ii = sum_k E_ik B_kk,  T(B)_ij = -E_ij B_ij,   E_ij = prod_{l != i, j} s_l

For ``(sign, log|det|)`` with ``t = tr(A^-1 dA)``: ``d log|det| = Re t``, ``d sign = i sign Im t``.
"""

from typing import Any, NamedTuple

from tenferro_linalg._algebra import adjoint, cj, diagonal, im, re, swap, to, total
from tenferro_linalg._operands import matrices, require_inexact, require_square
from tenferro_linalg._solve import inv_, solve_
from tenferro_runtime.extension import General, Registry, Spec, primitive
from tenferro_tensor.catalog import broadcast_in_dim, mul, reduce_sum
from tenferro_tensor_core import real_of


class SlogdetResult(NamedTuple):
    """Sign, or phase, and logarithm of the absolute value."""

    sign: Any
    logabsdet: Any


def det(x: Any, /) -> Any:
    """Determinants (...,) of square matrices (..., n, n).

    The gradient is exact for singular matrices too.

    >>> det([[1.0, 2.0], [2.0, 3.0]])
    Tensor(-1.)
    """
    return det_(matrices("det", x, square=True))


def slogdet(x: Any, /) -> SlogdetResult:
    """Sign and ``log|det|`` of square matrices (..., n, n), where ``det`` itself would overflow.

    The sign is a phase for complex matrices. Singular matrices give 0 and -inf; their gradient is an error.

    Raises:
        NumericalError: (gradient) the matrix is singular.

    >>> slogdet([[2.0, 0.0], [0.0, -2.0]]).sign
    Tensor(-1.)
    """
    return SlogdetResult(*slogdet_(matrices("slogdet", x, square=True)))


@primitive(family="tenferro-linalg.det.v1", extension="linalg")
def det_(x: Spec) -> Spec:
    """Determinant."""
    require_inexact("det", x)
    require_square("det", x)
    return x.with_(shape=x.shape[:-2])


@primitive(family="tenferro-linalg.slogdet.v1", extension="linalg")
def slogdet_(x: Spec) -> tuple[Spec, Spec]:
    """Sign (or phase) and logarithm of the absolute value of the determinant."""
    out = det_.infer(x)
    assert isinstance(out, Spec)
    return out, out.with_(dtype=real_of(x.dtype))


@primitive(family="tenferro-linalg.adjugate.v1", extension="linalg")
def adjugate_(x: Spec) -> Spec:
    """Adjugate: transposed matrix of cofactors, ``x @ adj(x) = det(x) I``, for every rank."""
    det_.infer(x)
    return x


@primitive(family="tenferro-linalg.adjugate_change.v1", extension="linalg")
def adjugate_change_(x: Spec, dx: Spec, *, transposed: bool) -> Spec:
    """Derivative of the adjugate along `dx`, or its transpose applied to the cotangent `dx`."""
    det_.infer(x)
    return x


def _excluded(xp: Any, s: Any) -> Any:
    """Products of all values but one, without division."""
    left, right = xp.ones_like(s), xp.ones_like(s)
    left[..., 1:] = xp.cumprod(s[..., :-1], axis=-1)
    right[..., :-1] = xp.cumprod(s[..., :0:-1], axis=-1)[..., ::-1]
    return left * right


def _excluded_pairs(xp: Any, s: Any) -> Any:
    """Products of all values but two, zero on the diagonal."""
    n = s.shape[-1]
    out = xp.zeros((*s.shape, n), s.dtype)
    for i in range(n):
        others = s.copy()
        others[..., i] = 1
        out[..., i, :] = _excluded(xp, others)
        out[..., i, i] = 0
    return out


def _factors(la: Any, x: Any) -> tuple[Any, Any, Any, Any]:
    u, s, vh = la.svd(la.finite("det", x), False)
    phase = la.xp.asarray(la.det(u) * la.det(vh))[..., None, None]
    return u.conj().swapaxes(-1, -2), s, vh.conj().swapaxes(-1, -2), phase


def _adjugate_kernel(la: Any, ins: Any, outs: Any) -> Any:
    def run(x: Any) -> Any:
        uh, s, v, phase = _factors(la, x)
        return phase * ((v * _excluded(la.xp, s)[..., None, :]) @ uh)

    return run


def _change_kernel(la: Any, ins: Any, outs: Any, *, transposed: bool) -> Any:
    def run(x: Any, dx: Any) -> Any:
        xp = la.xp
        uh, s, v, phase = _factors(la, x)
        if transposed:  # the map is self-adjoint between the two bases
            left, right, phase = uh.conj().swapaxes(-1, -2), v.conj().swapaxes(-1, -2), phase.conj()
            b = right @ dx @ left
        else:
            left, right = v, uh
            b = right @ dx @ left
        pairs = _excluded_pairs(xp, s)
        inner = -pairs * b
        on = (pairs @ xp.diagonal(b, axis1=-2, axis2=-1)[..., None])[..., 0]
        i = xp.arange(s.shape[-1])
        inner[..., i, i] = on
        return phase * (left @ inner @ right)

    return run


def _trace_product(x: Any, y: Any) -> Any:
    """``tr(x y)`` without the product."""
    from tenferro_tensor.catalog import reduce_sum

    return reduce_sum(mul(x, swap(y)), axes=(x.ndim - 2, x.ndim - 1))


def _spread(v: Any, like: Any) -> Any:
    return broadcast_in_dim(v, shape=like.spec.shape, dims=tuple(range(v.ndim)))


def _det_jvp(primals: Any, tangents: Any, outs: Any) -> tuple[Any]:
    return (_trace_product(adjugate_(primals[0]), tangents[0]),)


def _det_vjp(primals: Any, outs: Any, cotangents: Any) -> tuple[Any]:
    cofactors = adjoint(adjugate_(primals[0]))
    return (cofactors * _spread(cotangents[0], cofactors),)


def _slogdet_jvp(primals: Any, tangents: Any, outs: Any) -> tuple[Any, Any]:
    d = diagonal(solve_(primals[0], tangents[0]))
    t = reduce_sum(d, axes=(d.ndim - 1,))
    if not t.spec.cplx:
        return None, t
    return outs[0] * to(im(t), t.dtype) * 1j, re(t)


def _slogdet_vjp(primals: Any, outs: Any, cotangents: Any) -> tuple[Any]:
    (gs, gl), sign = cotangents, outs[0]
    y = adjoint(inv_(primals[0], what="the gradient of slogdet"))
    g = None if gl is None else to(gl, y.dtype)
    if gs is not None and y.spec.cplx:
        g = total(g, to(im(cj(gs) * sign), y.dtype) * -1j)
    return (None if g is None else y * _spread(g, y),)


def _adjugate_jvp(primals: Any, tangents: Any, outs: Any) -> tuple[Any]:
    return (adjugate_change_(primals[0], tangents[0], transposed=False),)


def _adjugate_vjp(primals: Any, outs: Any, cotangents: Any) -> tuple[Any]:
    return (adjugate_change_(primals[0], cotangents[0], transposed=True),)


def register(registry: Registry) -> None:
    """Kernels and rules of the primitives of this page. Third derivatives of det have no rule: a typed error."""
    from tenferro_linalg._providers import kernels

    kernels(registry, det_, lambda la, ins, outs: la.det)
    kernels(registry, slogdet_, lambda la, ins, outs: la.slogdet)
    kernels(registry, adjugate_, _adjugate_kernel)
    kernels(registry, adjugate_change_, _change_kernel)
    registry.rule(det_, General(jvp=_det_jvp, vjp=_det_vjp))
    registry.rule(slogdet_, General(jvp=_slogdet_jvp, vjp=_slogdet_vjp))
    registry.rule(adjugate_, General(jvp=_adjugate_jvp, vjp=_adjugate_vjp))
