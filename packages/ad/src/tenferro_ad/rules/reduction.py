"""Rules of the reductions.

Elements that attain a maximum or minimum share its derivative equally. The rules of products never divide, so they are
exact at zeros, to any order.
"""

from __future__ import annotations

from typing import Any, Final

from tenferro_ad.rules._conjugate import conjugate
from tenferro_ad.rules._scans import exclusive_product
from tenferro_runtime.extension import General, Inactive, Linear
from tenferro_tensor import Primitive, Spec
from tenferro_tensor import catalog as c


def spread(v: Any, spec: Spec, axes: tuple[int, ...]) -> Any:
    """A reduced value repeated along the reduced `axes` of an operand of the given spec."""
    return c.broadcast_in_dim(v, shape=spec.shape, dims=tuple([i for i in range(spec.ndim) if i not in axes]))


# -- extrema -------------------------------------------------------------------------------------------------------


def _attaining(x: Any, out: Any, axes: tuple[int, ...]) -> Any:
    """The elements that attain the extremum, and their number (at least 1, even if NaN leaves none)."""
    winners = c.eq(x, spread(out, x.spec, axes))
    return winners, c.maximum(c.reduce_sum(c.convert(winners, dtype=x.spec.dtype), axes=axes), 1)


def _extreme_jvp(primals: Any, tangents: Any, outs: Any, axes: tuple[int, ...]) -> Any:
    winners, count = _attaining(primals[0], outs[0], axes)
    return (c.reduce_sum(c.select(winners, tangents[0], 0), axes=axes) / count,)


def _extreme_vjp(primals: Any, outs: Any, cotangents: Any, axes: tuple[int, ...]) -> Any:
    winners, count = _attaining(primals[0], outs[0], axes)
    return (c.select(winners, spread(cotangents[0] / count, primals[0].spec, axes), 0),)


# -- products ------------------------------------------------------------------------------------------------------


def _others(x: Any, axes: tuple[int, ...]) -> Any:
    """For each element, the product over `axes` of all the other elements."""
    axis, *rest = axes
    along = exclusive_product(x, axis, reverse=False) * exclusive_product(x, axis, reverse=True)
    if not rest:
        return along
    beyond = _others(c.reduce_prod(x, axes=(axis,)), tuple([a - (a > axis) for a in rest]))
    return along * spread(beyond, x.spec, (axis,))


def _prod_jvp(primals: Any, tangents: Any, outs: Any, axes: tuple[int, ...]) -> Any:
    return (c.reduce_sum(tangents[0] * _others(primals[0], axes), axes=axes) if axes else tangents[0],)


def _prod_vjp(primals: Any, outs: Any, cotangents: Any, axes: tuple[int, ...]) -> Any:
    (x,), (g,) = primals, cotangents
    return (spread(g, x.spec, axes) * conjugate(_others(x, axes)) if axes else g,)


RULES: Final[dict[Primitive, Any]] = {
    c.reduce_sum: Linear(x=lambda g, x_spec, axes: spread(g, x_spec, axes)),
    c.reduce_prod: General(jvp=_prod_jvp, vjp=_prod_vjp),
    c.reduce_max: General(jvp=_extreme_jvp, vjp=_extreme_vjp),
    c.reduce_min: General(jvp=_extreme_jvp, vjp=_extreme_vjp),
    **dict.fromkeys((c.reduce_all, c.reduce_any, c.argmax, c.argmin), Inactive()),
}
