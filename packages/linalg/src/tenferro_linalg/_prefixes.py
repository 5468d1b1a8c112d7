"""Products with the columns before and after the first dependent one, for the derivative of QR.

`prefix` is 1 for the columns of Q before the first one that depends on the others, and 0 for the rest; ``P`` is its
diagonal matrix and ``R = 1 - P``. At full rank P is the identity: terms with R vanish, and kernels omit their
products. The primitives are closed under differentiation.
"""

from typing import Any

from tenferro_linalg._algebra import adjoint, columns, from_diagonal, mm, rows, to, total
from tenferro_linalg._fallible import register_formula
from tenferro_runtime.extension import General, Registry, Spec, primitive


@primitive(family="tenferro-linalg.qr_masked.v1", extension="linalg")
def masked_(x: Spec, prefix: Spec, *, along: str) -> Spec:
    """``x P``, or ``P x`` along ``"rows"``."""
    return x


@primitive(family="tenferro-linalg.qr_leading.v1", extension="linalg")
def leading_(x: Spec, prefix: Spec) -> Spec:
    """``P x P + R``."""
    return x


@primitive(family="tenferro-linalg.qr_kept.v1", extension="linalg")
def kept_(g: Spec, q: Spec, prefix: Spec) -> Spec:
    """``g P - q R (g R)* q P``: a cotangent of Q without that of the columns that merely complete the basis."""
    return g


@primitive(family="tenferro-linalg.qr_across.v1", extension="linalg")
def across_(a: Spec, b: Spec, c: Spec, prefix: Spec, *, flipped: bool) -> Spec:
    """``a R b* c P``; if `flipped`, ``a P b* c R``."""
    return a


@primitive(family="tenferro-linalg.qr_beyond.v1", extension="linalg")
def beyond_(a: Spec, b: Spec, prefix: Spec, *, inner: bool) -> Spec:
    """``a R b*``, or ``a b* R`` unless `inner`."""
    return a.with_(shape=(*a.shape[:-1], b.shape[-2]))


def _whole(prefix: Any) -> bool:
    return bool(prefix.all())


def _adjoint(x: Any) -> Any:
    return x.conj().swapaxes(-1, -2)


def _masked_kernel(la: Any, ins: Any, outs: Any, *, along: str) -> Any:
    place = (..., None, slice(None)) if along == "columns" else (..., None)
    return lambda x, prefix: x if _whole(prefix) else x * prefix[place]


def _leading_kernel(la: Any, ins: Any, outs: Any) -> Any:
    def run(x: Any, prefix: Any) -> Any:
        if _whole(prefix):
            return x
        out = x * (prefix[..., None] * prefix[..., None, :])
        i = la.xp.arange(x.shape[-1])
        out[..., i, i] += 1 - prefix
        return out

    return run


def _kept_kernel(la: Any, ins: Any, outs: Any) -> Any:
    def run(g: Any, q: Any, prefix: Any) -> Any:
        if _whole(prefix):
            return g
        kept = prefix[..., None, :]
        return g * kept - q @ (_adjoint(g * (1 - kept)) @ (q * kept))

    return run


def _across_kernel(la: Any, ins: Any, outs: Any, *, flipped: bool) -> Any:
    def run(a: Any, b: Any, c: Any, prefix: Any) -> Any:
        if _whole(prefix):
            return la.xp.zeros(a.shape, a.dtype)
        one, other = (prefix, 1 - prefix) if flipped else (1 - prefix, prefix)
        return (a * one[..., None, :]) @ (_adjoint(b) @ (c * other[..., None, :]))

    return run


def _beyond_kernel(la: Any, ins: Any, outs: Any, *, inner: bool) -> Any:
    def run(a: Any, b: Any, prefix: Any) -> Any:
        if _whole(prefix):
            return la.xp.zeros((*a.shape[:-1], b.shape[-2]), a.dtype)
        rest = (1 - prefix)[..., None, :]
        return (a * rest) @ _adjoint(b) if inner else (a @ _adjoint(b)) * rest

    return run


def _first(xp: Any, g: Any, *more: Any) -> tuple[Any, Any]:
    """`kept_` if all columns are in the prefix, and where they are not."""
    return g, more[-1] == 0


def _nothing(xp: Any, a: Any, *more: Any, inner: bool | None = None, **_: Any) -> tuple[Any, Any]:
    """`across_` and `beyond_` if all columns are in the prefix, and where they are not."""
    shape = a.shape if inner is None else (*a.shape[:-1], more[0].shape[-2])
    return xp.zeros(shape, a.dtype), more[-1] == 0


def _masked(x: Any, prefix: Any, *, along: str) -> Any:
    return x * to((columns if along == "columns" else rows)(prefix, x), x.dtype)


def _leading(x: Any, prefix: Any) -> Any:
    return _masked(_masked(x, prefix, along="rows"), prefix, along="columns") + to(from_diagonal(1.0 - prefix), x.dtype)


def _kept(g: Any, q: Any, prefix: Any) -> Any:
    return _masked(g, prefix, along="columns") - _across(q, g, q, prefix, flipped=False)


def _across(a: Any, b: Any, c: Any, prefix: Any, *, flipped: bool) -> Any:
    one, other = (prefix, 1.0 - prefix) if flipped else (1.0 - prefix, prefix)
    return mm(_masked(a, one, along="columns"), mm(adjoint(b), _masked(c, other, along="columns")))


def _beyond(a: Any, b: Any, prefix: Any, *, inner: bool) -> Any:
    rest = 1.0 - prefix
    if inner:
        return mm(_masked(a, rest, along="columns"), adjoint(b))
    return _masked(mm(a, adjoint(b)), rest, along="columns")


def _masked_vjp(primals: Any, outs: Any, cotangents: Any, *, along: str) -> tuple[Any, None]:
    return masked_(cotangents[0], primals[1], along=along), None


def _leading_change(g: Any, prefix: Any) -> Any:
    return masked_(masked_(g, prefix, along="rows"), prefix, along="columns")


def _kept_jvp(primals: Any, tangents: Any, outs: Any) -> tuple[Any]:
    (g, q, prefix), (dg, dq, _) = primals, tangents
    change = None
    if dq is not None:
        change = -(across_(dq, g, q, prefix, flipped=False) + across_(q, g, dq, prefix, flipped=False))
    return (total(None if dg is None else kept_(dg, q, prefix), change),)


def _kept_vjp(primals: Any, outs: Any, cotangents: Any) -> tuple[Any, Any, None]:
    (g, q, prefix), (h,) = primals, cotangents
    of_g = masked_(h, prefix, along="columns") - across_(q, h, q, prefix, flipped=True)
    of_q = -(across_(h, q, g, prefix, flipped=True) + across_(g, q, h, prefix, flipped=False))
    return of_g, of_q, None


def _across_jvp(primals: Any, tangents: Any, outs: Any, *, flipped: bool) -> tuple[Any]:
    *factors, prefix = primals
    terms = [
        None if t is None else across_(*factors[:i], t, *factors[i + 1 :], prefix, flipped=flipped)
        for i, t in enumerate(tangents[:3])
    ]
    return (total(*terms),)


def _across_vjp(primals: Any, outs: Any, cotangents: Any, *, flipped: bool) -> tuple[Any, Any, Any, None]:
    (a, b, c, prefix), (g,) = primals, cotangents
    return (
        across_(g, c, b, prefix, flipped=not flipped),
        across_(c, g, a, prefix, flipped=not flipped),
        across_(b, a, g, prefix, flipped=flipped),
        None,
    )


def _beyond_jvp(primals: Any, tangents: Any, outs: Any, *, inner: bool) -> tuple[Any]:
    (a, b, prefix), (da, db, _) = primals, tangents
    return (
        total(
            None if da is None else beyond_(da, b, prefix, inner=inner),
            None if db is None else beyond_(a, db, prefix, inner=inner),
        ),
    )


def _beyond_vjp(primals: Any, outs: Any, cotangents: Any, *, inner: bool) -> tuple[Any, Any, None]:
    (a, b, prefix), (g,) = primals, cotangents
    of_a = beyond_(g, adjoint(b), prefix, inner=not inner)
    if inner:
        return of_a, beyond_(adjoint(g), adjoint(a), prefix, inner=False), None
    return of_a, adjoint(beyond_(adjoint(a), adjoint(g), prefix, inner=False)), None


def register(registry: Registry) -> None:
    """Kernels and rules of the primitives of this module."""
    from tenferro_linalg._providers import kernels

    kernels(registry, masked_, _masked_kernel, blas=False)
    kernels(registry, leading_, _leading_kernel, blas=False)
    kernels(registry, kept_, _kept_kernel)
    kernels(registry, across_, _across_kernel)
    kernels(registry, beyond_, _beyond_kernel)
    # At full rank native functions omit the products, and leave other ranks to the kernels.
    for p, formula in ((kept_, _first), (across_, _nothing), (beyond_, _nothing)):
        register_formula(registry, p, formula, lowering=False)
    for p, f in ((masked_, _masked), (leading_, _leading), (kept_, _kept), (across_, _across), (beyond_, _beyond)):
        registry.expansion(p, f, keep=True)
    registry.rule(masked_, General(
        jvp=lambda primals, tangents, outs, along: (masked_(tangents[0], primals[1], along=along),), vjp=_masked_vjp,
    ))  # fmt: skip
    registry.rule(leading_, General(
        jvp=lambda primals, tangents, outs: (_leading_change(tangents[0], primals[1]),),
        vjp=lambda primals, outs, cotangents: (_leading_change(cotangents[0], primals[1]), None),
    ))  # fmt: skip
    registry.rule(kept_, General(jvp=_kept_jvp, vjp=_kept_vjp))
    registry.rule(across_, General(jvp=_across_jvp, vjp=_across_vjp))
    registry.rule(beyond_, General(jvp=_beyond_jvp, vjp=_beyond_vjp))
