"""Scans used by the rules of products and cumulative operations; none of them divides."""

from __future__ import annotations

from typing import Any

from tenferro_ad.rules._constants import positions
from tenferro_tensor import catalog as c


def shifted(x: Any, axis: int, by: int, fill: complex) -> Any:
    """Elements shifted to higher (``by > 0``) or lower indices along an axis, with `fill` in the vacated positions."""
    if x.spec.shape[axis] == 0:
        return x
    low = tuple([by if i == axis else 0 for i in range(x.ndim)])
    high = tuple([-by if i == axis else 0 for i in range(x.ndim)])
    return c.pad(x, fill, low=low, high=high, interior=(0,) * x.ndim)


def exclusive_product(x: Any, axis: int, reverse: bool) -> Any:
    """For each element, the product of those before it along an axis (after it, if `reverse`)."""
    return c.cumprod(shifted(x, axis, -1 if reverse else 1, 1), axis=axis, reverse=reverse)


def recurrence(a: Any, b: Any, axis: int, reverse: bool) -> Any:
    """The solution of ``s[i] = a[i] * s[i-1] + b[i]`` with 0 before the first element; from the end, if `reverse`.

    Uses recursive doubling (Kogge and Stone 1973), with logarithmically many steps. For a symbolic extent, whose
    number of steps is unknown, it forms the products of all intervals, which takes quadratic memory.
    """
    n = b.spec.shape[axis]
    if not isinstance(n, int):
        return _by_intervals(a, b, axis, reverse)
    step = 1
    while step < n:
        by = -step if reverse else step
        b = b + a * shifted(b, axis, by, 0)
        a = a * shifted(a, axis, by, 0)
        step *= 2
    return b


def _by_intervals(a: Any, b: Any, axis: int, reverse: bool) -> Any:
    n, last = b.spec.shape[axis], b.ndim
    shape = (*b.spec.shape, n)
    across = (*range(axis), last, *range(axis + 1, last))  # destinations of b's axes; `axis` goes last

    def rows(v: Any) -> Any:
        return c.broadcast_in_dim(v, shape=shape, dims=tuple(range(last)))

    def columns(v: Any) -> Any:
        return c.broadcast_in_dim(v, shape=shape, dims=across)

    at = positions(b.spec, axis)
    i, j = rows(at), columns(at)
    later, before = (c.lt, c.gt) if reverse else (c.gt, c.lt)
    products = c.cumprod(c.select(later(i, j), rows(a), 1), axis=axis, reverse=reverse)
    return c.reduce_sum(c.select(before(i, j), 0, products * columns(b)), axes=(last,))
