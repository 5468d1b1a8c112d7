"""Moore-Penrose pseudo-inverse.

For ``Y = pinv(A)`` and the cotangent G of Y (Golub and Pereyra 1973)::

    dY = -Y dA Y + Y Y* dA* (1 - A Y) + (1 - Y A) dA* Y* Y
    A' = -Y* G Y* + [Y Y* G (1 - A Y)]* + [(1 - Y A) G Y* Y]*

Exact at full rank. Across ranks the pseudo-inverse jumps; below full rank the formula is the derivative along
matrices of the same rank, which an explicit `rtol` requests.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from tenferro_linalg._algebra import adjoint, mm
from tenferro_linalg._errors import RankError
from tenferro_linalg._fallible import extent, register_formula
from tenferro_linalg._multiplets import largest
from tenferro_linalg._operands import matrices, require_inexact, stacked, value
from tenferro_linalg._svd import svdvals_
from tenferro_runtime.extension import ArgumentError, DTypeError, General, Registry, Spec, primitive
from tenferro_tensor import Array, broadcast_shapes
from tenferro_tensor.catalog import stop_gradient
from tenferro_tensor.promotion import brought
from tenferro_tensor_core import dim_max, real_of
from tenferro_tensor_core.tracebacks import boundary


@boundary
def pinv(x: Any, /, *, rtol: float | Any | None = None) -> Array:
    """Moore-Penrose pseudo-inverse.

    Args:
        x: matrices (..., m, n), real or complex.
        rtol: singular values up to `rtol` times the largest count as zero; a number, or an array that broadcasts with
            the batch axes; by default max(m, n) times the machine epsilon. Below full rank a gradient requires an
            explicit value: it is the derivative at constant rank.

    Returns:
        Matrices (..., n, m) of the dtype of `x`.

    Raises:
        NumericalError: an entry is not finite, or LAPACK does not converge.
        RankError: (gradient) the matrix loses rank and `rtol` was not given, or a singular value lies within a
            factor of 10 of the cutoff.

    See also: `lstsq`.

    >>> pinv([[2.0, 0.0], [0.0, 0.0]])
    Tensor([[0.5, 0. ],
            [0. , 0. ]])
    """
    x, cut = cut_of("pinv", matrices("pinv", x), "rtol", rtol)
    return pinv_(x, *cut)


def cut_of(what: str, x: Any, name: str, rtol: Any) -> tuple[Any, tuple[Any, ...]]:
    """Matrices, and the relative cutoffs that `pinv_` takes: nothing, or one number for each matrix."""
    if rtol is None:
        return x, ()
    if isinstance(rtol, (int, float)) and not 0 <= rtol < float("inf"):
        raise ArgumentError(f"{what}: {name}={rtol!r} is not a finite non-negative number", **{name: repr(rtol)})
    cut = value(rtol)
    if cut.spec.cplx:
        raise DTypeError(f"{what}: {name} is a real number or an array of them, got {cut.spec!r}", **{name: cut.spec})
    batch = broadcast_shapes(x.spec.shape[:-2], cut.spec.shape)
    limits = x.spec.with_(shape=batch, dtype=real_of(x.dtype))
    return stacked(x, batch), (stop_gradient(brought(cut, limits)),)


@primitive(family="tenferro-linalg.pinv.v1", extension="linalg")
def pinv_(x: Spec, *rtol: Spec) -> Spec:
    """Pseudo-inverse; `rtol` is one number for each matrix."""
    require_inexact("pinv", x)
    *batch, m, n = x.shape
    return x.with_(shape=(*batch, n, m))


@primitive(family="tenferro-linalg.pinv_ranked.v1", extension="linalg")
def pinv_ranked_(y: Spec, s: Spec, *rtol: Spec, what: str) -> Spec:
    """Return `y` after testing that the rank of the matrix is certain; `s` are its singular values, `what` names the
    caller.
    """
    return y


def _cut(xp: Any, s: Any, rtol: tuple[Any, ...], extent: int) -> Any:
    """Cutoff (..., 1): larger singular values count."""
    factor = xp.asarray(rtol[0]) if rtol else extent * float(np.finfo(s.dtype).eps)
    return (factor * largest(xp, s))[..., None]


def uncertain(xp: Any, s: Any, rtol: tuple[Any, ...], extent: int) -> tuple[Any, Any]:
    """Singular values that make the derivative at constant rank unsafe, and the cutoff."""
    cut = _cut(xp, s, rtol, extent)
    return ((s > cut / 10) & (s < cut * 10) & (s > 0) if rtol else s <= cut), cut


def pseudo_inverse(la: Any, x: Any, rtol: tuple[Any, ...]) -> Any:
    """Pseudo-inverses of raw matrices by their singular values."""
    xp = la.xp
    u, s, vh = la.svd(x, False)
    kept = s > _cut(xp, s, rtol, max(x.shape[-2:]))
    inverse = xp.where(kept, 1 / xp.where(kept, s, 1), 0).astype(s.dtype)
    return (vh.conj().swapaxes(-1, -2) * inverse[..., None, :]) @ u.conj().swapaxes(-1, -2)


def limit(x: Any, rtol: tuple[Any, ...]) -> Any:
    """Ratio to the largest singular value up to which one of a raw matrix counts as zero."""
    return rtol[0] if rtol else max(x.shape[-2:]) * float(np.finfo(x.dtype).eps)


def _kernel(la: Any, ins: Any, outs: Any) -> Any:
    def run(x: Any, *rtol: Any) -> Any:
        x = la.finite("pinv", x)
        found = la.full_rank_inverse(x, limit(x, rtol))
        return pseudo_inverse(la, x, rtol) if found is None else found

    return run


def _certain(xp: Any, y: Any, s: Any, *rtol: Any, what: str) -> tuple[Any, Any]:
    return y, uncertain(xp, s, rtol, extent(dim_max(*y.shape[-2:]), s))[0]


def _ranked_kernel(la: Any, ins: Any, outs: Any, *, what: str) -> Any:
    name = "rtol" if what == "pinv" else "rcond"

    def run(y: Any, s: Any, *rtol: Any) -> Any:
        bad, cut = uncertain(la.xp, s, rtol, max(y.shape[-2:]))
        if bool(bad.any()):
            *batch, i = (int(k) for k in np.argwhere(la.local(bad))[0])
            of = f" of matrix {tuple(batch)} of the stack" if batch else ""
            value, limit = float(la.local(s)[(*batch, i)]), float(la.local(cut)[(*batch, 0)])
            if not rtol:
                seen = f"the singular value S[{i}] = {value:.2e}{of} counts as zero (the cut is {limit:.2e})"
                advice = (
                    f"{what} jumps where the rank changes; pass {name}= for the derivative at constant rank"
                    f"{', or use solve' if what == 'pinv' else ''}"
                )
            else:
                seen = f"the singular value S[{i}] = {value:.2e}{of} lies within a factor of 10 of the cut {limit:.2e}"
                advice = f"the rank is not certain; choose {name}= inside a gap of the singular values"
            raise RankError(f"{what}: {seen}; {advice}", index=i, batch=tuple(batch), value=value, cut=limit)
        return y

    return run


def _ranked(y: Any, a: Any, rtol: Sequence[Any]) -> Any:
    return pinv_ranked_(y, svdvals_(stop_gradient(a)), *rtol, what="pinv")


def _jvp(primals: Any, tangents: Any, outs: Any) -> tuple[Any]:
    (a, *rtol), (da, *_) = primals, tangents
    y = _ranked(outs[0], a, rtol)
    dh, yh = adjoint(da), adjoint(y)
    left, right = mm(y, yh, dh), mm(dh, yh, y)
    return (-mm(y, da, y) + left - mm(left, a, y) + right - mm(y, mm(a, right)),)


def _vjp(primals: Any, outs: Any, cotangents: Any) -> tuple[Any, ...]:
    (a, *rtol), g = primals, cotangents[0]
    y = _ranked(outs[0], a, rtol)
    yh = adjoint(y)
    left, right = mm(y, mm(yh, g)), mm(mm(g, yh), y)
    inner = left - mm(left, a, y) + right - mm(y, mm(a, right))
    return (-mm(yh, g, yh) + adjoint(inner), *[None] * len(rtol))


def register(registry: Registry) -> None:
    """Kernels and rules of the primitives of this module."""
    from tenferro_linalg._providers import kernels

    kernels(registry, pinv_, _kernel)
    kernels(registry, pinv_ranked_, _ranked_kernel)
    register_formula(registry, pinv_ranked_, _certain)
    registry.rule(pinv_, General(jvp=_jvp, vjp=_vjp))
    registry.rule(pinv_ranked_, General(
        jvp=lambda primals, tangents, outs, **_: (tangents[0],),
        vjp=lambda primals, outs, cotangents, **_: (cotangents[0], *[None] * (len(primals) - 1)),
    ))  # fmt: skip
