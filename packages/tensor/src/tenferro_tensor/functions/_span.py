"""A run of elements along one axis."""

from typing import Any

from tenferro_tensor import catalog
from tenferro_tensor._primitive import Op
from tenferro_tensor._steps import Step
from tenferro_tensor.views import linked


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


def put_span(x: Any, part: Any, axis: int, start: Any, limit: Any) -> Any:
    """`x` with this run of elements replaced."""
    n = x.spec.ndim
    starts = tuple([start if a == axis else 0 for a in range(n)])
    return catalog.update_slice(x, part, start=starts, stride=(1,) * n, mode="set")


def _raw_span(raw: Any, axis: int, start: Any, limit: Any) -> Any:
    return raw[(slice(None),) * axis + (slice(start, limit),)]


def _raw_layer(raw: Any, axis: int, i: int) -> Any:
    return raw[(slice(None),) * axis + (i,)]


def span_view(x: Any, axis: int, start: Any, limit: Any) -> Any:
    """`span`, as a view of `x`."""
    return linked(x, span(x, axis, start, limit), Step(span, put_span, _raw_span, (axis, start, limit)))


def _layer(x: Any, axis: int, i: int) -> Any:
    shape = x.spec.shape
    return catalog.reshape(span(x, axis, i, i + 1), shape=(*shape[:axis], *shape[axis + 1 :]))


def _put_layer(x: Any, part: Any, axis: int, i: int) -> Any:
    shape = part.spec.shape
    return put_span(x, catalog.reshape(part, shape=(*shape[:axis], 1, *shape[axis:])), axis, i, i + 1)


def layer_view(x: Any, axis: int, i: int) -> Any:
    """The elements at one index of an axis, as a view of `x`."""
    return linked(x, _layer(x, axis, i), Step(_layer, _put_layer, _raw_layer, (axis, i)))
