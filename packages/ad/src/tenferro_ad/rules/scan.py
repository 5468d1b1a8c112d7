"""Rules of the cumulative operations.

If a running maximum or minimum is attained several times, the first element in the direction of the scan receives the
derivative. The rules of cumulative products never divide, so they are exact at zeros, to any order.
"""

from __future__ import annotations

from typing import Any, Final

from tenferro_ad.rules._along import put, take
from tenferro_ad.rules._conjugate import conjugate
from tenferro_ad.rules._constants import positions
from tenferro_ad.rules._scans import recurrence, shifted
from tenferro_runtime.extension import General, Linear
from tenferro_tensor import Primitive
from tenferro_tensor import catalog as c


def _next(reverse: bool) -> int:
    return -1 if reverse else 1


# -- products: y[i] = x[i] * y[i-1] ----------------------------------------------------------------------------------


def _prod_jvp(primals: Any, tangents: Any, outs: Any, axis: int, reverse: bool) -> Any:
    (x,), (t,), (y,) = primals, tangents, outs
    return (recurrence(x, shifted(y, axis, _next(reverse), 1) * t, axis, reverse),)


def _prod_vjp(primals: Any, outs: Any, cotangents: Any, axis: int, reverse: bool) -> Any:
    (x,), (y,), (g,) = primals, outs, cotangents
    following = conjugate(shifted(x, axis, -_next(reverse), 0))
    return (conjugate(shifted(y, axis, _next(reverse), 1)) * recurrence(following, g, axis, not reverse),)


# -- logarithms of sums of exponentials: weights exp(x[i] - y[i]) and exp(y[i-1] - y[i]), which never exceed 1 --------


def _weight(p: Any, y: Any) -> Any:
    """``exp(p - y)`` for ``p <= y``; 1 where both are the same infinity."""
    same = c.bitwise_and(c.eq(p, y), c.is_inf(p))
    return c.exp(c.select(same, 0, p) - c.select(same, 0, y))


def _lse_jvp(primals: Any, tangents: Any, outs: Any, axis: int, reverse: bool) -> Any:
    (x,), (t,), (y,) = primals, tangents, outs
    kept = _weight(shifted(y, axis, _next(reverse), float("-inf")), y)
    return (recurrence(kept, t * _weight(x, y), axis, reverse),)


def _lse_vjp(primals: Any, outs: Any, cotangents: Any, axis: int, reverse: bool) -> Any:
    (x,), (y,), (g,) = primals, outs, cotangents
    kept = _weight(y, shifted(y, axis, -_next(reverse), float("inf")))
    return (_weight(x, y) * recurrence(kept, g, axis, not reverse),)


# -- running extrema ---------------------------------------------------------------------------------------------------


def _record_holders(y: Any, axis: int) -> Any:
    """For each element of a running extremum (from the start), the index at which its value first appeared."""
    at = positions(y.spec, axis)
    fresh = c.ne(y, shifted(y, axis, 1, 0))
    return c.cummax(c.select(fresh, at, 0), axis=axis, reverse=False)


def _oriented(x: Any, axis: int, reverse: bool) -> Any:
    return c.reverse(x, axes=(axis,)) if reverse else x


def _record_jvp(primals: Any, tangents: Any, outs: Any, axis: int, reverse: bool) -> Any:
    holders = _record_holders(_oriented(outs[0], axis, reverse), axis)
    return (_oriented(take(_oriented(tangents[0], axis, reverse), holders, axis), axis, reverse),)


def _record_vjp(primals: Any, outs: Any, cotangents: Any, axis: int, reverse: bool) -> Any:
    holders = _record_holders(_oriented(outs[0], axis, reverse), axis)
    return (_oriented(put(_oriented(cotangents[0], axis, reverse), holders, axis), axis, reverse),)


RULES: Final[dict[Primitive, Any]] = {
    c.cumsum: Linear(x=lambda g, axis, reverse: c.cumsum(g, axis=axis, reverse=not reverse)),
    c.cumprod: General(jvp=_prod_jvp, vjp=_prod_vjp),
    c.cumlogsumexp: General(jvp=_lse_jvp, vjp=_lse_vjp),
    **dict.fromkeys((c.cummax, c.cummin), General(jvp=_record_jvp, vjp=_record_vjp)),
}
