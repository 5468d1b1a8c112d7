"""`take` and `put` at computed indices along one axis; each is the transpose of the other."""

from __future__ import annotations

from typing import Any

from tenferro_ad._zeros import zeros_like
from tenferro_ad.rules._constants import positions
from tenferro_tensor import catalog as c


def _vectors(index: Any, axis: int) -> Any:
    """Index vectors from indices along one axis; their other entries are the element's own indices."""
    columns = [index if i == axis else positions(index.spec, i) for i in range(index.ndim)]
    shape = (*index.spec.shape, 1)
    return c.concatenate(*[c.reshape(v, shape=shape) for v in columns], axis=index.ndim)


def take(x: Any, index: Any, axis: int) -> Any:
    """``out[.., i, ..] = x[.., index[.., i, ..], ..]``."""
    if 0 in x.spec.shape:
        return x
    every = tuple(range(x.ndim))
    return c.gather(
        x,
        _vectors(index, axis),
        offset_dims=(),
        collapsed_dims=every,
        start_index_map=every,
        slice_sizes=(1,) * x.ndim,
    )


def put(g: Any, index: Any, axis: int) -> Any:
    """Zeros to which ``g[.., i, ..]`` is added at ``index[.., i, ..]``."""
    if 0 in g.spec.shape:
        return g
    every = tuple(range(g.ndim))
    return c.scatter(
        zeros_like(g),
        _vectors(index, axis),
        g,
        update_window_dims=(),
        inserted_dims=every,
        scatter_dims=every,
        mode="add",
    )
