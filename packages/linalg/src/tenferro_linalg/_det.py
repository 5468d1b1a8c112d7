"""Determinants.

``d det = tr(adj(A) dA)`` with the adjugate, which exists for every matrix: no division, so singular matrices
have exact derivatives of every order. With ``A = U diag(s) V*`` and ``phi = det(U) det(V*)``::

    adj(A) = phi V diag(prod_{l != i} s_l) U*

The k-th derivative of the adjugate is symmetric and linear in its k directions, and so is the next one of `det`,
``tr(D_0 d^k adj(A)[D_1, ..., D_k])``. One primitive therefore serves all orders, and is closed under both modes. With
``B_j = U* D_j V``, rows ``i_0, ..., i_k`` and permutations ``p`` of ``0, ..., k``::

    tr(D_0 d^k adj(A)[D_1, ...]) = phi sum_i E_i sum_p sign(p) prod_j B_j[i_j, i_p(j)],   E_i = prod_{l not in i} s_l

where ``E_i`` is 0 if two of the rows are equal. The sum over rows has ``n^(k + 1)`` terms, the cost of order k + 1.

For ``(sign, log|det|)`` with ``t = tr(A^-1 dA)``: ``d log|det| = Re t``, ``d sign = i sign Im t``.
"""

from functools import partial
from itertools import permutations
from typing import Any, NamedTuple

from tenferro_linalg._algebra import adjoint, cj, diagonal, im, re, swap, to, total
from tenferro_linalg._fallible import register_formula
from tenferro_linalg._operands import matrices, require_inexact, require_square
from tenferro_linalg._small import small_first
from tenferro_linalg._solve import inv_, solve_
from tenferro_linalg._svd import svd_
from tenferro_runtime.extension import General, Registry, Spec, primitive
from tenferro_tensor import Array
from tenferro_tensor.catalog import broadcast_in_dim, mul, reduce_sum
from tenferro_tensor_core import real_of
from tenferro_tensor_core.tracebacks import boundary


class SlogdetResult(NamedTuple):
    """Determinant as sign and logarithm.

    Attributes:
        sign: the sign; a phase for complex matrices.
        logabsdet: logarithm of the absolute value.
    """

    sign: Array
    logabsdet: Array


@boundary
def det(x: Any, /) -> Array:
    """Determinants of square matrices.

    Derivatives of every order are exact, for singular matrices too. The first two cost a singular value decomposition;
    order k from the third on costs about ``k! n^k`` operations.

    Args:
        x: matrices (..., n, n), real or complex.

    Returns:
        Numbers (...) of the dtype of `x`.

    Raises:
        NumericalError: (gradient) an entry is not finite.
        ShapeError: the matrices are not square.

    See also: `slogdet`, which does not overflow.

    >>> det([[1.0, 2.0], [2.0, 3.0]])
    Tensor(-1.)
    """
    return det_(matrices("det", x, square=True))


@boundary
def slogdet(x: Any, /) -> SlogdetResult:
    """Sign and ``log|det|`` of square matrices, computed without overflow.

    Singular matrices yield 0 and -inf, and have no gradient.

    Args:
        x: matrices (..., n, n), real or complex.

    Returns:
        ``sign`` (...) of the dtype of `x`, a phase for complex matrices, and ``logabsdet`` (...), real.

    Raises:
        NumericalError: (gradient) the matrix is singular.
        ShapeError: the matrices are not square.

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
    """Adjugate, the transposed matrix of cofactors: ``x @ adj(x) = det(x) I`` at every rank."""
    det_.infer(x)
    return x


@primitive(family="tenferro-linalg.adjugate_change.v1", extension="linalg")
def adjugate_change_(x: Spec, *directions: Spec) -> Spec:
    """Derivative of the adjugate along one direction, or of higher order along several."""
    det_.infer(x)
    return x


def _excluded(xp: Any, s: Any) -> Any:
    """Products of all values but one, without division."""
    place = xp.arange(s.shape[-1])

    def before(products: Any) -> Any:
        return xp.where(place == 0, s.dtype.type(1), xp.take(products, xp.maximum(place - 1, 0), axis=-1))

    return before(xp.cumprod(s, axis=-1)) * before(xp.cumprod(s[..., ::-1], axis=-1))[..., ::-1]


def _excluded_sets(xp: Any, s: Any, count: int) -> Any:
    """Products of all values but `count`; zero where two of the excluded ones coincide."""
    if count == 1:
        return _excluded(xp, s)
    n = s.shape[-1]
    rows = []
    for i in range(n):
        here = xp.arange(n) == i
        row = _excluded_sets(xp, xp.where(here, s.dtype.type(1), s), count - 1)
        for axis in range(count - 1):
            row = xp.where(here.reshape(n, *(1,) * (count - 2 - axis)), s.dtype.type(0), row)
        rows.append(row)
    return xp.stack(rows, axis=s.ndim - 1) if n else xp.zeros(s.shape + (n,) * (count - 1), s.dtype)


def _factors(la: Any, x: Any) -> tuple[Any, Any, Any, Any]:
    u, s, vh = la.svd(la.finite("det", x), False)
    phase = la.xp.asarray(la.det(u) * la.det(vh))[..., None, None]
    return u.conj().swapaxes(-1, -2), s, vh.conj().swapaxes(-1, -2), phase


def adjugate_of(la: Any, x: Any) -> Any:
    """Adjugate of raw matrices."""
    uh, s, v, phase = _factors(la, x)
    return phase * ((v * _excluded(la.xp, s)[..., None, :]) @ uh)


class _Program:
    """The provider methods of `_factors` on traced values."""

    def __init__(self, xp: Any) -> None:
        self.xp, self.det = xp, det_

    def finite(self, what: str, x: Any) -> Any:
        """`x`, which the formula has tested."""
        return x

    def svd(self, x: Any, full: bool) -> Any:
        """U, S, Vh."""
        return svd_(x, full=full, basis="plain", cut=None)


def _adjugate(xp: Any, x: Any) -> tuple[Any, Any]:
    finite, found = xp.isfinite(x).all(), partial(adjugate_of, _Program(xp), x)
    return xp.cond(finite, found, lambda: x) if xp.branching else found(), ~finite


def adjugate_change_of(la: Any, x: Any, *directions: Any) -> Any:
    """Derivative of the adjugate along directions, of raw matrices."""
    xp, order = la.xp, len(directions)
    rows = "abcdefghijklmnopqrstuvwxyz"[: order + 1]
    uh, s, v, phase = _factors(la, x)
    bases = [uh @ d @ v for d in directions]
    products = _excluded_sets(xp, s, order + 1)
    inner, on = xp.zeros(x.shape, x.dtype), xp.zeros(s.shape, x.dtype)
    for p in permutations(range(order + 1)):
        terms = ",".join(["..." + rows, *[f"...{rows[j]}{rows[p[j]]}" for j in range(1, order + 1)]])
        fixed = p[0] == 0
        found = xp.einsum(f"{terms}->...{'' if fixed else rows[p[0]]}a", products, *bases)
        found = found if _even(p) else -found
        if fixed:
            on = on + found
        else:
            inner = inner + found
    inner = inner + on[..., None] * xp.eye(x.shape[-1], dtype=x.dtype)
    return phase * (v @ inner @ uh)


def _even(permutation: tuple[int, ...]) -> bool:
    swaps = [a > b for i, a in enumerate(permutation) for b in permutation[i + 1 :]]
    return sum(swaps) % 2 == 0


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
    return (adjugate_change_(primals[0], tangents[0]),)


def _adjugate_vjp(primals: Any, outs: Any, cotangents: Any) -> tuple[Any]:
    return (adjoint(adjugate_change_(primals[0], adjoint(cotangents[0]))),)


def _change_jvp(primals: Any, tangents: Any, outs: Any) -> tuple[Any]:
    x, *along = primals
    parts = [None if tangents[0] is None else adjugate_change_(x, *along, tangents[0])]
    for i, t in enumerate(tangents[1:]):
        parts.append(None if t is None else adjugate_change_(x, *along[:i], t, *along[i + 1 :]))
    return (total(*parts),)


def _change_vjp(primals: Any, outs: Any, cotangents: Any) -> tuple[Any, ...]:
    x, *along = primals
    g = adjoint(cotangents[0])
    others = [[*along[:i], g, *along[i + 1 :]] for i in range(len(along))]
    return tuple([adjoint(adjugate_change_(x, *directions)) for directions in ([*along, g], *others)])


def register(registry: Registry) -> None:
    """Kernels and rules of the primitives of this module."""
    from tenferro_linalg._providers import kernels

    kernels(registry, det_, lambda la, ins, outs: small_first(la, "det", ins, la.det))
    kernels(registry, slogdet_, lambda la, ins, outs: small_first(la, "slogdet", ins, la.slogdet))
    kernels(registry, adjugate_, lambda la, ins, outs: partial(adjugate_of, la))
    kernels(registry, adjugate_change_, lambda la, ins, outs: partial(adjugate_change_of, la))
    register_formula(registry, adjugate_, _adjugate)
    registry.rule(det_, General(jvp=_det_jvp, vjp=_det_vjp))
    registry.rule(slogdet_, General(jvp=_slogdet_jvp, vjp=_slogdet_vjp))
    registry.rule(adjugate_, General(jvp=_adjugate_jvp, vjp=_adjugate_vjp))
    registry.rule(adjugate_change_, General(jvp=_change_jvp, vjp=_change_vjp))
