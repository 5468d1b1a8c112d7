"""Arrays made from nothing but a shape, for use in rules.

Extents may be symbolic, and then belong to a trace: such arrays are computed from a value of that trace. With plain
integers they are concrete constants.
"""

from __future__ import annotations

from typing import Any

from tenferro_tensor import Spec, tensor
from tenferro_tensor import catalog as c
from tenferro_tensor_core import DimLike, int64


def falses_like(x: Any) -> Any:
    """Booleans of the shape of `x`, all false."""
    return c.bitwise_and(c.is_nan(x), False)


def scalar(number: complex, spec: Spec, like: Any) -> Any:
    """A number without axes, of the dtype and place of `spec`, that joins the trace of `like` if there is one."""
    if not spec.symbolic:
        return tensor(number, dtype=spec.dtype, device=spec.place.device)
    falses = falses_like(like)
    zero = c.convert(c.reduce_any(falses, axes=tuple(range(falses.ndim))), dtype=spec.dtype)
    return zero + number if number else zero


def full(number: complex, spec: Spec, like: Any) -> Any:
    """`number` everywhere."""
    return c.broadcast_in_dim(scalar(number, spec, like), shape=spec.shape, dims=())


def zeros_like(x: Any) -> Any:
    """Zeros with the spec of a value."""
    return full(0, x.spec, x)


def positions(spec: Spec, axis: int, like: Any) -> Any:
    """The index of each element along an axis, as int64."""
    if not spec.symbolic:
        return c.iota(shape=spec.shape, dtype=int64, axis=axis, place=spec.place)
    return c.cumsum(full(1, spec.with_(dtype=int64), like), axis=axis, reverse=False) - 1


def extent(n: DimLike, like: Any) -> Any:
    """An extent as a number: an ``int`` as it is, a symbolic one as a value without axes."""
    if isinstance(n, int):
        return n
    return c.reduce_sum(full(1, Spec((n,), int64, like.spec.place), like), axes=(0,))
