"""QR decomposition, reduced and complete, of tall, square and wide matrices.

Write ``A = [X Y]`` with X the first k = min(m, n) columns, ``X = Q R_X``. For full rank::

    C = dX R_X^-1,  S = Q* C,  L = strict lower(S),  Om = L - L* + i Im diag S
    dQ = C - Q S + Q Om,   dR_X = (S - Om) R_X,   dR_Y = dQ* Y + Q* dY
    G = Q' + Y R_Y'*,   M = R_X R_X'* - G* Q,   X' = (G + Q herm(M)) R_X^-*,   Y' = Q R_Y'

(primes are cotangents; herm is the Hermitian matrix with the lower part of M; Liao et al., arXiv 2009.10071, for the
wide case). The extra columns Q2 of the complete form enter as ``G - Q2 (Q2'* Q)``.

If column j is the first to depend on earlier ones, the first j columns of Q and the first j rows of R remain
differentiable. The rule then is the wide one for these j columns, with the other columns of Q treated as Q2; any other
use is a `RankError`.
"""

from typing import Any, NamedTuple

import numpy as np

from tenferro_linalg import _multiplets as multiplets
from tenferro_linalg._algebra import (
    adjoint,
    block,
    hermitian_from_lower,
    im,
    mm,
    part,
    part_kernel,
    to,
    total,
)
from tenferro_linalg._bases import unitary
from tenferro_linalg._degeneracy import frobenius
from tenferro_linalg._errors import GaugeError, RankError
from tenferro_linalg._fallible import Namespace, extent, register_formula
from tenferro_linalg._operands import basis, flag, in_generic_basis, leading, matrices, require_inexact
from tenferro_linalg._prefixes import beyond_, kept_, leading_, masked_
from tenferro_linalg._small import small_first
from tenferro_linalg._solve import solve_triangular_
from tenferro_runtime.extension import Array, General, Inactive, Op, Registry, Spec, primitive
from tenferro_tensor.catalog import concatenate, pad
from tenferro_tensor_core import DimLike, decide, dim_max, dim_min, real_of
from tenferro_tensor_core.tracebacks import boundary

ZERO_TOLERANCE = 64
"""An entry of a cotangent counts as zero up to this multiple of ``size eps`` times the norm of the cotangent."""


class QRResult(NamedTuple):
    """QR decomposition.

    Attributes:
        Q: orthonormal columns.
        R: upper triangular (or trapezoidal) factor.
    """

    Q: Array
    R: Array


@boundary
def qr(x: Any, /, mode: str = "reduced") -> QRResult:
    """QR decomposition ``A = Q @ R`` with orthonormal columns in Q and upper triangular R.

    Differentiable in every shape and mode at full rank. Where a column depends on earlier ones, the factors that
    precede it remain differentiable.

    Args:
        x: matrices (..., m, n), real or complex.
        mode: ``"reduced"`` or ``"complete"``.

    Returns:
        Q (..., m, k) and R (..., k, n) with k = min(m, n), of the dtype of `x`; in the complete form k = m.

    Raises:
        ArgumentError: `mode` is neither of the two.
        NumericalError: an entry is not finite.
        RankError: (gradient) the loss uses a factor beyond the rank of the leading columns.
        GaugeError: (gradient) the loss depends on the choice of the extra columns of Q.

    See also: `rank_revealing_qr`, `qr_trunc`.

    >>> qr([[3.0, 1.0], [4.0, 2.0]]).R
    Tensor([[-5. , -2.2],
            [ 0. ,  0.4]])
    """
    flag("qr", "mode", mode, ("reduced", "complete"))
    x = matrices("qr", x)
    return QRResult(*qr_(x, mode=mode, basis=basis(x)))


@primitive(family="tenferro-linalg.qr.v1", extension="linalg")
def qr_(x: Spec, *, mode: str, basis: str) -> tuple[Spec, Spec]:
    """Q and R; the extra columns of the complete form in a ``"plain"`` or a ``"generic"`` basis."""
    require_inexact("qr", x)
    *batch, m, n = x.shape
    k = m if mode == "complete" else dim_min(m, n)
    return x.with_(shape=(*batch, m, k)), x.with_(shape=(*batch, k, n))


@primitive(family="tenferro-linalg.qr_r.v1", extension="linalg")
def qr_r_(x: Spec) -> Spec:
    """R of the reduced form, without Q."""
    return qr_.infer(x, mode="reduced", basis="plain")[1]  # type: ignore[index]


@primitive(family="tenferro-linalg.qr_prefix.v1", extension="linalg")
def qr_prefix_(r: Spec, *, size: DimLike) -> Spec:
    """1 for the columns of Q before the first one that depends on the others, 0 for the rest."""
    return r.with_(shape=r.shape[:-1], dtype=real_of(r.dtype))


@primitive(family="tenferro-linalg.qr_full_rank.v1", extension="linalg")
def qr_full_rank_(r: Spec, *, size: DimLike) -> Spec:
    """Return `r` after testing that its leading square part has full rank."""
    return r


@primitive(family="tenferro-linalg.qr_rows.v1", extension="linalg")
def qr_rows_(gr: Spec, r: Spec, prefix: Spec, *, size: DimLike) -> Spec:
    """Cotangent of R, upper triangular, after testing that it vanishes beyond the prefix."""
    return gr


@primitive(family="tenferro-linalg.qr_frame.v1", extension="linalg")
def qr_frame_(gq: Spec, q: Spec, prefix: Spec, *, size: DimLike, k: DimLike) -> Spec:
    """Cotangent of Q, after testing that columns beyond the prefix enter only through their projector."""
    return gq


def _qr_kernel(la: Any, ins: Any, outs: Any, *, mode: str, basis: str) -> Any:
    def run(x: Any) -> Any:
        q, r = la.qr(la.finite("qr", x), mode)
        k = min(x.shape[-2:])
        extra = q.shape[-1] - k
        if basis == "generic" and extra:
            q[..., k:] = q[..., k:] @ unitary(la, extra, q.dtype)
        return q, r

    fits = None if mode == "reduced" else lambda x: x.shape[-2] <= x.shape[-1]
    return small_first(la, "qr", ins, run, fits=fits)


def _qr_r_kernel(la: Any, ins: Any, outs: Any) -> Any:
    return small_first(la, "qr_r", ins, lambda x: la.qr_r(la.finite("qr", x)))


def _independent(xp: Any, r: Any, size: Any) -> Any:
    """Which pivots are not zero."""
    pivots, every = xp.abs(xp.diagonal(r, axis1=-2, axis2=-1)), (-2, -1)
    most = multiplets.most(xp, r, every) if isinstance(r, Array) else xp.abs(r).max(axis=every)
    return pivots > xp.asarray(8 * size * float(np.finfo(r.dtype).eps) * most)[..., None]


def _prefix(xp: Any, r: Any, found: Any) -> Any:
    flags = xp.cumsum(~found, axis=-1) == 0
    rest = xp.zeros((*r.shape[:-2], r.shape[-2] - dim_min(*r.shape[-2:])), flags.dtype)
    return xp.concatenate([flags, rest], axis=-1).astype(real_of(r.dtype))


def prefix_of(la: Any, r: Any, size: int) -> Any:
    """The flags of `qr_prefix_` as a raw array."""
    xp, k = la.xp, min(r.shape[-2:])
    found = _independent(xp, r, size) if k else xp.zeros((*r.shape[:-2], 0), bool)
    if k == r.shape[-2] and bool(found.all()):
        return xp.ones(r.shape[:-1], real_of(r.dtype))
    return _prefix(xp, r, found)


def _prefix_traced(r: Any, *, size: DimLike) -> Any:
    xp = Namespace(False)
    return _prefix(xp, r, _independent(xp, r, extent(size, r)))


def _of_full_rank(xp: Any, r: Any, *, size: Any) -> tuple[Any, Any]:
    return r, ~_independent(xp, r, size)


# At full rank native functions need no test, and leave other ranks to the kernels.


def _in_rows(xp: Any, gr: Any, r: Any, prefix: Any, *, size: Any) -> tuple[Any, Any]:
    gr = part(gr, "upper")
    if xp.branching:
        return gr, prefix[..., : dim_min(*r.shape[-2:])] == 0
    return gr, used_rows(xp, gr, r, prefix, size)


def _in_frame(xp: Any, gq: Any, q: Any, prefix: Any, *, size: Any, k: DimLike) -> tuple[Any, Any]:
    if xp.branching:
        return gq, prefix == 0 if decide(q.spec.shape[-1], "==", k) else xp.asarray(True)
    return gq, used_columns(xp, gq, q, prefix, size)


def _rank_error(r: Any, index: tuple[int, ...], seen: str) -> RankError:
    *batch, j = index
    of = f" of matrix {tuple(batch)} of the stack" if batch else ""
    return RankError(
        f"qr: column {j}{of} {'depends on the columns before it' if j else 'is zero'} "
        f"(|R[{j}, {j}]| = {abs(r[(*batch, j, j)]):.1e}), and {seen}; use the original matrix in place of Q @ R, "
        f"{f'only Q[:, :{j}] and R[:{j}, :], ' if j else ''}or move dependent columns to the end",
        column=j,
        batch=tuple(batch),
    )


def _full_rank_kernel(la: Any, ins: Any, outs: Any, **_: Any) -> Any:
    def run(r: Any, size: int) -> Any:
        missing = prefix_of(la, r, size)[..., : min(r.shape[-2:])] == 0
        if bool(missing.any()):
            index = tuple(int(i) for i in np.argwhere(la.local(missing))[0])
            raise _rank_error(la.local(r), index, "Q and R have no derivative along a general perturbation")
        return r

    return run


def _rows_kernel(la: Any, ins: Any, outs: Any, **_: Any) -> Any:
    upper = part_kernel(la, ins, outs, keep="upper")

    def run(gr: Any, r: Any, prefix: Any, size: int) -> Any:
        gr = upper(gr)
        if bool(prefix[..., : min(r.shape[-2:])].all()):
            return gr
        bad = used_rows(la.xp, gr, r, prefix, size)
        if bool(bad.any()):
            batch = tuple(int(i) for i in np.argwhere(la.local(bad))[0])[:-1]
            j = int(la.local(prefix)[batch].sum())
            raise _rank_error(la.local(r), (*batch, j), f"the loss uses R[{j}:, :], which is not differentiable there")
        return gr

    return run


def used_rows(xp: Any, gr: Any, r: Any, prefix: Any, size: int) -> Any:
    """Rows of R beyond the prefix that the loss uses; `gr` is upper triangular."""
    k = dim_min(*r.shape[-2:])
    sizes = multiplets.most(xp, gr, (-1,))
    limit = xp.asarray(ZERO_TOLERANCE * float(np.finfo(gr.dtype).eps) * size * frobenius(xp, gr, (-2, -1)))
    return (sizes > limit[..., None])[..., :k] & (prefix[..., :k] == 0)


def used_columns(xp: Any, gq: Any, q: Any, prefix: Any, size: int) -> Any:
    """Columns of Q beyond the prefix that the loss uses other than through their projector."""
    rest = (1 - prefix)[..., None, :]
    free, cotangent = q * rest, gq * rest
    limit = ZERO_TOLERANCE * float(np.finfo(gq.dtype).eps) * size * frobenius(xp, gq, (-2, -1))
    limit = xp.asarray(limit)[..., None, None]
    inner = free.conj().swapaxes(-1, -2) @ cotangent
    turn = xp.abs(inner - inner.conj().swapaxes(-1, -2)) / 2
    outside = cotangent - q @ (q.conj().swapaxes(-1, -2) @ cotangent)
    return xp.any(turn > limit, axis=-2) | xp.any(xp.abs(outside) > limit, axis=-2)


def _frame_kernel(la: Any, ins: Any, outs: Any, **_: Any) -> Any:
    def run(gq: Any, q: Any, prefix: Any, size: int, k: int) -> Any:
        if q.shape[-1] == k and bool(prefix.all()):
            return gq
        bad = used_columns(la.xp, gq, q, prefix, size)
        if bool(bad.any()):
            *batch, j = (int(i) for i in np.argwhere(la.local(bad))[0])
            of = f" of matrix {tuple(batch)} of the stack" if batch else ""
            first = int(la.local(prefix)[tuple(batch)].sum())
            raise GaugeError(
                f"qr: the loss depends on column {j} of Q{of}, but the columns from {first} on are an arbitrary "
                f"orthonormal basis of the complement of the first {first}; use them only all together, as in "
                "Q2 @ Q2.conj().T of the complete form",
                output="Q",
                pair=(first, j),
                batch=tuple(batch),
            )
        return gq

    return run


def _split(a: Any, k: DimLike) -> tuple[Any, Any]:
    """X and Y; Y is ``None`` unless the matrix is wide."""
    n = a.spec.shape[-1]
    return block(a, column=(0, k)), None if n == k else block(a, column=(k, n))


def _jvp(primals: Any, tangents: Any, outs: Any, **_: Any) -> tuple[Any, Any]:
    (a,), (da,), (q, r) = primals, tangents, outs
    m, n = a.spec.shape[-2:]
    k, size = dim_min(m, n), dim_max(m, n)
    q1 = block(q, column=(0, k))
    rx, _ry = _split(block(r, row=(0, k)), k)
    (_x, y), (dx, dy) = _split(a, k), _split(da, k)
    rx = qr_full_rank_(rx, size=size)
    c = adjoint(solve_triangular_(rx, adjoint(dx), lower=False, unit=False, adjoint=True))
    s = mm(adjoint(q1), c)
    turned = part(s, "upper") + adjoint(part(s, "strict_lower"))  # S - Om
    if s.spec.cplx:
        turned = turned - to(part(im(s), "diagonal"), s.dtype) * 1j
    dq = c - mm(q1, turned)
    dr = mm(turned, rx)
    if y is not None:
        dr = concatenate(dr, mm(adjoint(dq), y) + mm(adjoint(q1), dy), axis=r.ndim - 1)
    if q.spec.shape[-1] != k:
        q2 = block(q, column=(k, m))
        dq = concatenate(dq, -mm(q1, adjoint(mm(adjoint(q2), c))), axis=q.ndim - 1)
        zero = (0,) * (r.ndim - 2)
        dr = pad(dr, 0.0, low=(*zero, 0, 0), high=(*zero, m - k, 0), interior=(0,) * r.ndim)
    return dq, dr


def _vjp(primals: Any, outs: Any, cotangents: Any, **_: Any) -> tuple[Any]:
    (a,), (q, r), (gq, gr) = primals, outs, cotangents
    m, n = a.spec.shape[-2:]
    k, size, p = dim_min(m, n), dim_max(m, n), q.spec.shape[-1]
    every = qr_prefix_(r, size=size)
    first = every if p == k else leading(every, k)
    q1 = masked_(block(q, column=(0, k)), first, along="columns")

    g = gx = gy = None
    if gq is not None:
        gq = qr_frame_(gq, q, every, size=size, k=k)
        g = block(kept_(gq, q, every), column=(0, k))
    if gr is not None:
        gr = masked_(block(qr_rows_(gr, r, every, size=size), row=(0, k)), first, along="rows")
        (x, y), (gx, gy) = _split(a, k), _split(gr, k)
        g = total(g, beyond_(x, gx, first, inner=True), None if y is None else mm(y, adjoint(gy)))
    rx = leading_(block(r, row=(0, k), column=(0, k)), first)
    inner = None if gx is None else mm(rx, adjoint(masked_(gx, first, along="columns")))
    inner = total(inner, -mm(adjoint(g), q1))
    lifted = masked_(g + mm(q1, hermitian_from_lower(inner)), first, along="columns")
    out = adjoint(solve_triangular_(rx, adjoint(lifted), lower=False, unit=False, adjoint=False))
    if gx is not None:
        out = out + beyond_(q1, adjoint(gx), first, inner=False)
    if n == k:
        return (out,)
    if gy is None:
        zero = (0,) * (out.ndim - 2)
        return (pad(out, 0.0, low=(0,) * out.ndim, high=(*zero, 0, n - k), interior=(0,) * out.ndim),)
    return (concatenate(out, mm(q1, gy), axis=out.ndim - 1),)


def _r_jvp(primals: Any, tangents: Any, outs: Any) -> tuple[Any]:
    return (_jvp(primals, tangents, qr_(primals[0], mode="reduced", basis="plain"))[1],)


def _r_vjp(primals: Any, outs: Any, cotangents: Any) -> tuple[Any]:
    return _vjp(primals, qr_(primals[0], mode="reduced", basis="plain"), (None, cotangents[0]))


def _prune(op: Op, used: tuple[bool, ...]) -> tuple[Op, tuple[int | None, ...]] | None:
    """If Q has no users it is not computed; R stays bit-equal."""
    return (qr_r_.op(), (None, 0)) if used == (False, True) and op.params["mode"] == "reduced" else None


def register(registry: Registry) -> None:
    """Kernels, rules and pruning of the primitives of this module."""
    from tenferro_linalg._providers import kernels, size_of

    kernels(registry, qr_, _qr_kernel)
    kernels(registry, qr_r_, _qr_r_kernel)
    kernels(registry, qr_prefix_, lambda la, ins, outs, **_: lambda r, size: prefix_of(la, r, size), sizes=size_of,
            blas=False)  # fmt: skip
    registry.expansion(qr_prefix_, _prefix_traced, keep=True)
    for p, formula in ((qr_full_rank_, _of_full_rank), (qr_rows_, _in_rows), (qr_frame_, _in_frame)):
        register_formula(registry, p, formula)
    kernels(registry, qr_full_rank_, _full_rank_kernel, sizes=size_of, blas=False)
    kernels(registry, qr_rows_, _rows_kernel, sizes=size_of, blas=False)
    kernels(registry, qr_frame_, _frame_kernel, sizes=lambda ins, outs, *, size, k: (size, k))
    registry.rule(qr_, General(jvp=_jvp, vjp=_vjp, recorded=in_generic_basis))
    registry.rule(qr_r_, General(jvp=_r_jvp, vjp=_r_vjp))
    registry.pruning(qr_, _prune, keeps_bits=True)
    registry.rule(qr_prefix_, Inactive())
    registry.rule(qr_full_rank_, General(jvp=lambda primals, tangents, outs, **_: tangents,
                                         vjp=lambda primals, outs, cotangents, **_: cotangents))  # fmt: skip
    registry.rule(qr_rows_, General(
        jvp=lambda primals, tangents, outs, **_: (None if tangents[0] is None else part(tangents[0], "upper"),),
        vjp=lambda primals, outs, cotangents, **_: (part(cotangents[0], "upper"), None, None),
    ))  # fmt: skip
    registry.rule(qr_frame_, General(
        jvp=lambda primals, tangents, outs, **_: (tangents[0],),
        vjp=lambda primals, outs, cotangents, **_: (cotangents[0], None, None),
    ))  # fmt: skip
