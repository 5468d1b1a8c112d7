"""A run of elements along one axis."""

from typing import Any

from tenferro_tensor import catalog
from tenferro_tensor._primitive import Op


def span(x: Any, axis: int, start: Any, limit: Any) -> Any:
    """The elements from `start` up to, but excluding, `limit` along an axis."""
    return span_op(x, axis, start, limit)(x)


def span_op(x: Any, axis: int, start: Any, limit: Any) -> Op:
    """The op that takes this run from values of the shape of `x`."""
    shape = x.spec.shape
    return catalog.slice_.op(
        start=tuple([start if a == axis else 0 for a in range(len(shape))]),
        limit=tuple([limit if a == axis else d for a, d in enumerate(shape)]),
        stride=(1,) * len(shape),
    )
