"""Singular value decomposition, thin, full and truncated.

For ``A = U diag(s) V*`` with k = min(m, n) triplets, ``P = U* dA V``, ``X = U* dU``, ``Y = V* dV``::

    ds = Re diag P      X + Y = 2 sym(P)_ij / (s_j - s_i)      X - Y = 2 skew(P)_ij / (s_i + s_j)
    dU = U X + (1 - U U*) dA V / s            dV = V Y + (1 - V V*) dA* U / s

    A' = U Q V* + [(1 - U U*) U' / s] V* + U [(1 - V V*) V' / s]*
    Q  = diag(s') + (a + b)_ij / (s_j - s_i) + (a - b)_ij / (s_i + s_j),   a = skew(U* U'), b = skew(V* V')

(primes are cotangents). Sums and differences instead of squares avoid overflow and cancellation; repeated values
affect only the first quotient, zero values only the others. With ``full_matrices`` the extra columns ``U2`` enter as
``(1 - U U*) U' - U2 (U2'* U)``. A truncated decomposition is the full one with zero cotangents for the discarded
triplets, which includes the term that couples kept and discarded vectors (cf. arXiv 2311.11894).
"""

from typing import Any, Literal, NamedTuple, overload

from tenferro_linalg._algebra import (
    adjoint,
    block,
    diagonal,
    from_diagonal,
    mm,
    part,
    re,
    skew,
    sym,
    to,
    total,
)
from tenferro_linalg._apart import svd_apart_
from tenferro_linalg._bases import adapted_svd, follows, generic_svd
from tenferro_linalg._degeneracy import certified, checked, cotangent_scale, quotient, unrotated, unsigned
from tenferro_linalg._operands import basis, differentiated, in_generic_basis, matrices, require_inexact
from tenferro_linalg._small import small_first
from tenferro_runtime.extension import General, GradientError, Op, Registry, Spec, primitive
from tenferro_tensor import Array
from tenferro_tensor.catalog import concatenate
from tenferro_tensor_core import DimLike, decide, dim_max, dim_min, real_of
from tenferro_tensor_core.tracebacks import boundary


class SVDResult(NamedTuple):
    """Singular value decomposition.

    Attributes:
        U: left singular vectors in columns.
        S: singular values, descending.
        Vh: right singular vectors in rows, conjugated.
    """

    U: Array
    S: Array
    Vh: Array


@overload
def svd(x: Any, /, full_matrices: bool = True, compute_uv: Literal[True] = True) -> SVDResult: ...
@overload
def svd(x: Any, /, full_matrices: bool = True, *, compute_uv: Literal[False]) -> Array: ...
@boundary
def svd(x: Any, /, full_matrices: bool = True, compute_uv: bool = True) -> SVDResult | Array:
    """Singular value decomposition ``A = U @ diag(S) @ Vh``.

    Differentiable where the loss does not depend on phases, nor on the choice of vectors of equal or zero singular
    values. Where these do not determine the derivative, the transforms compute it as a limit; `y.backward()` cannot. In
    forward mode those vectors are chosen to follow the perturbation. Among the vectors of equal or zero values, plain
    calls return LAPACK's choice; recorded or traced calls return a fixed rotation of it, which exposes a loss that
    depends on the choice.

    Args:
        x: matrices (..., m, n), real or complex.
        full_matrices: complete U and Vh to square matrices, as NumPy and the standard do. The thin form, ``False``, is
            cheaper and sufficient for most losses.
        compute_uv: False for the values alone, which are those of `svdvals`.

    Returns:
        U (..., m, m) and Vh (..., n, n) of the dtype of `x`, in the thin form U (..., m, k) and Vh (..., k, n) with
        k = min(m, n); S (..., k), real and descending.

    Raises:
        NumericalError: an entry is not finite, or none of three LAPACK drivers converges.
        GaugeError: (gradient) the loss depends on an arbitrary choice of vectors.
        DegenerateError: (gradient) the loss has a kink at equal or zero values, or they leave a bare backward pass
            undetermined.

    See also: `svdvals`, `svd_trunc`, `svd_random`, `svds`.

    >>> svd([[3.0, 0.0], [0.0, 4.0]]).S
    Tensor([4., 3.])
    """
    if not compute_uv:
        return svdvals(x)
    x = matrices("svd", x)
    return SVDResult(*svd_(x, full=bool(full_matrices), basis=basis(x), cut=None))


@boundary
def svdvals(x: Any, /) -> Array:
    """Singular values of matrices, descending.

    The gradient exists where the loss treats equal values equally and does not increase linearly from a zero value.

    Args:
        x: matrices (..., m, n), real or complex.

    Returns:
        Real values (..., min(m, n)) of the precision of `x`.

    Raises:
        NumericalError: an entry is not finite, or none of three LAPACK drivers converges.
        DegenerateError: (gradient) the loss has a kink at equal or zero values.

    >>> svdvals([[3.0, 0.0], [0.0, 4.0]])
    Tensor([4., 3.])
    """
    x = matrices("svdvals", x)
    # A differentiated call keeps the vectors for its derivative.
    return svd_(x, full=False, basis="generic", cut=None)[1] if differentiated(x) else svdvals_(x)


def _values(x: Spec) -> Spec:
    require_inexact("svd", x)
    return x.with_(shape=(*x.shape[:-2], dim_min(*x.shape[-2:])), dtype=real_of(x.dtype))


def _vectors(x: Spec, full: bool) -> tuple[Spec, Spec, Spec]:
    s, (*batch, m, n) = _values(x), x.shape
    k = s.shape[-1]
    return x.with_(shape=(*batch, m, m if full else k)), s, x.with_(shape=(*batch, n if full else k, n))


@primitive(family="tenferro-linalg.svd.v1", extension="linalg")
def svd_(x: Spec, *, full: bool, basis: str, cut: DimLike | None) -> tuple[Spec, Spec, Spec]:
    """U, S, Vh; `basis` of equal values is ``"plain"`` or ``"generic"``; `cut` is where the caller truncates."""
    return _vectors(x, full)


@primitive(family="tenferro-linalg.svdvals.v1", extension="linalg")
def svdvals_(x: Spec) -> Spec:
    """Singular values."""
    return _values(x)


@primitive(family="tenferro-linalg.svd_adapted.v1", extension="linalg")
def svd_adapted_(x: Spec, dx: Spec, *, full: bool) -> tuple[Spec, Spec, Spec]:
    """U, S, Vh; the bases of equal and zero values diagonalise the perturbation `dx`."""
    return _vectors(x, full)


def _svd_kernel(la: Any, ins: Any, outs: Any, *, full: bool, basis: str = "plain", cut: Any = None) -> Any:
    fits = (lambda x: x.shape[-2] == x.shape[-1]) if full else None
    plain = small_first(la, "svd", ins, lambda x: tuple(la.svd(la.finite("svd", x), full)), fits=fits)
    if basis == "plain":
        return plain
    return lambda x: generic_svd(la, *plain(x))


def _adapted_kernel(la: Any, ins: Any, outs: Any, *, full: bool) -> Any:
    plain = _svd_kernel(la, ins, outs, full=full)

    def adapted(x: Any, dx: Any) -> Any:
        u, s, vh = plain(x)
        return adapted_svd(la, x, u, s, vh, dx)

    return adapted


def _values_kernel(la: Any, ins: Any, outs: Any) -> Any:
    return small_first(la, "svdvals", ins, lambda x: la.svdvals(la.finite("svdvals", x)))


def _split(u: Any, vh: Any, k: DimLike) -> tuple[Any, Any, Any, Any]:
    """U1 and V1 of the k values, and the extra columns U2 and V2 if there may be any."""
    v = adjoint(vh)
    (u1, u2), (v1, v2) = _parts(u, k), _parts(v, k)
    return u1, v1, u2, v2


def _parts(g: Any, k: DimLike) -> tuple[Any, Any]:
    """The first k columns and the others, or ``None``."""
    if g is None or g.spec.shape[-1] == k:
        return g, None
    return block(g, column=(0, k)), block(g, column=(k, g.spec.shape[-1]))


def _size(x: Any) -> DimLike:
    return dim_max(*x.spec.shape[-2:])


def _side(da: Any, u: Any, u2: Any, v: Any, x: Any, s: Any, scale: Any, size: DimLike) -> Any:
    """dU of one side: rotated inside the space by `x`, tilted out of it, and the extra columns following."""
    moved = mm(u, x)
    if u.spec.shape[-2] == u.spec.shape[-1]:
        return moved
    out = mm(da, v)
    out = out - mm(u, mm(adjoint(u), out))
    tilt = quotient(checked(out, s, scale, "column", "tangent", "svd", size), s, "column", "svd", size)
    if u2 is None:
        return moved + tilt
    return concatenate(moved + tilt, -mm(u, adjoint(mm(adjoint(u2), tilt))), axis=u.ndim - 1)


def _jvp(primals: Any, tangents: Any, outs: Any, *, cut: Any = None, **_: Any) -> tuple[Any, Any, Any]:
    (da,), (u, s, vh) = tangents, outs
    size = _size(da)
    u, v, u2, v2 = _split(u, vh, s.spec.shape[-1])
    p = mm(adjoint(u), da, v)
    scale = cotangent_scale(s, da)
    even = checked(sym(p), s, scale, "difference", "tangent", "svd", size, cut)
    odd = checked(skew(p), s, scale, "sum", "tangent", "svd", size, cut)
    plus = quotient(part(even, "off_diagonal"), s, "difference", "svd", size)
    minus = quotient(odd, s, "sum", "svd", size)
    du = _side(da, u, u2, v, plus + minus, s, scale, size)
    dv = _side(adjoint(da), v, v2, u, plus - minus, s, scale, size)
    return du, re(diagonal(even)), adjoint(dv)


def _forward(primals: Any, tangents: Any, *, full: bool, cut: Any, **_: Any) -> tuple[Any, Any]:
    if follows(*primals, *tangents):
        outs = svd_adapted_(*primals, *tangents, full=full)
    else:
        outs = svd_(*primals, full=full, basis="generic", cut=cut)
    return outs, _jvp(primals, tangents, outs, cut=cut)


def _outer(g: Any, g2: Any, u: Any, u2: Any, s: Any, scale: Any, size: DimLike, cut: Any) -> Any:
    """Cotangent of the out-of-space part of one side's vectors, over s; ``None`` where there is none."""
    if (g is None and g2 is None) or u.spec.shape[-2] == u.spec.shape[-1]:
        return None
    out = None if g is None else g - mm(u, mm(adjoint(u), g))  # never the large square u @ adjoint(u)
    if g2 is not None:
        g2 = unrotated(g2, u2, scale, "svd", size)
        out = total(out, -mm(u2, adjoint(g2), u))
    out = checked(out, s, scale, "column", "cotangent", "svd", size, cut)
    return quotient(out, s, "column", "svd", size)


def _vjp(primals: Any, outs: Any, cotangents: Any, *, basis: str = "generic", cut: Any = None, **_: Any) -> tuple[Any]:
    (u, s, vh), (gu, gs, gvh) = outs, cotangents
    if basis != "generic":
        raise GradientError(
            "svd in a plain basis is not differentiable in reverse; call svd on the differentiated value itself"
        )
    size, k = _size(primals[0]), s.spec.shape[-1]
    u, v, u2, v2 = _split(u, vh, k)
    gv = None if gvh is None else adjoint(gvh)
    scale = cotangent_scale(s, gu, gv, gs)
    gs = None if gs is None else to(from_diagonal(certified(gs, s, (gu, gv), "svd", size, cut)), u.dtype)
    gu, gu2 = _parts(gu, k)
    gv, gv2 = _parts(gv, k)
    if gu is not None and gv is not None and not u.spec.cplx and _may_be_square(u, v):
        gu = unsigned(gu, gv, s, scale, size)
    a = None if gu is None else skew(mm(adjoint(u), gu))
    b = None if gv is None else skew(mm(adjoint(v), gv))
    q = gs
    if a is not None or b is not None:
        plus, minus = total(a, b), total(a, None if b is None else -b)
        plus = checked(plus, s, scale, "difference", "cotangent", "svd", size, cut)
        minus = checked(minus, s, scale, "sum", "cotangent", "svd", size, cut)
        q = total(q, quotient(plus, s, "difference", "svd", size), quotient(minus, s, "sum", "svd", size))
    left = _outer(gu, gu2, u, u2, s, scale, size, cut)
    right = _outer(gv, gv2, v, v2, s, scale, size, cut)
    inner = total(None if q is None else mm(u, q), left)
    return (total(None if inner is None else mm(inner, adjoint(v)), None if right is None else mm(u, adjoint(right))),)


def _may_be_square(u: Any, v: Any) -> bool:
    """Whether matrices with these vectors may be square at some sizes."""
    return decide(u.spec.shape[-2], "==", v.spec.shape[-2]) is not False


def _values_jvp(primals: Any, tangents: Any, outs: Any) -> tuple[Any]:
    return (_jvp(primals, tangents, svd_(primals[0], full=False, basis="generic", cut=None))[1],)


def _values_forward(primals: Any, tangents: Any) -> tuple[Any, Any]:
    outs, changes = _forward(primals, tangents, full=False, cut=None)
    return (outs[1],), (changes[1],)


def _values_vjp(primals: Any, outs: Any, cotangents: Any) -> tuple[Any]:
    outs = svd_(primals[0], full=False, basis="generic", cut=None)
    return _vjp(primals, outs, (None, cotangents[0], None))


def _adapted_jvp(primals: Any, tangents: Any, outs: Any, **_: Any) -> tuple[Any, Any, Any]:
    if tangents[0] is None:
        return None, None, None
    return _jvp(primals, tangents[:1], outs)


def _adapted_vjp(primals: Any, outs: Any, cotangents: Any, **_: Any) -> tuple[Any, None]:
    return (*_vjp(primals, outs, cotangents), None)


def _prune(op: Op, used: tuple[bool, ...]) -> tuple[Op, tuple[int | None, ...]] | None:
    """Singular vectors without users are not computed."""
    return (svdvals_.op(), (None, 0, None)) if used == (False, True, False) else None


def _apart(primals: Any, side: int, **_: Any) -> Any:
    return svd_apart_(primals[0], side=side)


def register(registry: Registry) -> None:
    """Kernels, rules and pruning of the primitives of this module."""
    from tenferro_linalg._providers import kernels

    kernels(registry, svd_, _svd_kernel)
    kernels(registry, svdvals_, _values_kernel)
    kernels(registry, svd_adapted_, _adapted_kernel)
    registry.rule(svd_, General(jvp=_jvp, vjp=_vjp, forward=_forward, apart=_apart, recorded=in_generic_basis))
    registry.rule(svdvals_, General(jvp=_values_jvp, vjp=_values_vjp, forward=_values_forward, apart=_apart))
    registry.rule(svd_adapted_, General(jvp=_adapted_jvp, vjp=_adapted_vjp, apart=_apart))
    registry.pruning(svd_, _prune)
