"""Diagonals as primitives: taking one is a view, embedding one is its transpose."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tenferro_runtime.batching import shifting
from tenferro_runtime.extension import DimLike, Linear, Registry, Spec, get_backend, primitive, sized
from tenferro_tensor import catalog
from tenferro_tensor.functions.creation import zeros
from tenferro_tensor_core import AxisError, require_equal


@primitive(family="tenferro-einsum.take_diagonal.v1", extension="einsum")
def take_diagonal(x: Spec, *, axes: tuple[int, ...]) -> Spec:
    """The elements of `x` with equal indices along all of `axes`; the joint axis is at the first of them.

    `axes` must ascend and have equal extents.
    """
    first, *rest = _ascending("take_diagonal", axes, x.ndim)
    for a in rest:
        require_equal(x.shape[a], x.shape[first], f"take_diagonal extents of axes {first} and {a}")
    return x.with_(shape=tuple(d for a, d in enumerate(x.shape) if a not in rest))


@primitive(family="tenferro-einsum.embed_diagonal.v1", extension="einsum")
def embed_diagonal(x: Spec, *, axes: tuple[int, ...]) -> Spec:
    """`x` on the joint diagonal of `axes` of the result, zeros elsewhere; the transpose of `take_diagonal`."""
    first, *rest = _ascending("embed_diagonal", axes, x.ndim + len(axes) - 1)
    shape = list(x.shape)
    for a in rest:
        shape.insert(a, x.shape[first])
    return x.with_(shape=tuple(shape))


def _ascending(what: str, axes: tuple[int, ...], ndim: int) -> tuple[int, ...]:
    if not axes or list(axes) != sorted(set(axes)) or axes[0] < 0 or axes[-1] >= ndim:
        raise AxisError(f"{what} needs ascending, distinct axes below {ndim}, got {axes}", axes=axes, ndim=ndim)
    return axes


def _diagonal_view(x: Any, axes: tuple[int, ...], xp: Any) -> Any:
    first, *rest = axes
    shape = tuple(d for a, d in enumerate(x.shape) if a not in rest)
    strides = list(x.strides)
    strides[first] = sum(x.strides[a] for a in axes)
    strides = [s for a, s in enumerate(strides) if a not in rest]
    return xp.lib.stride_tricks.as_strided(x, shape, strides)


def _kernels(backend: str) -> tuple[Callable[..., Any], Callable[..., Any]]:
    @sized(lambda ins, outs, *, axes: ())
    def take(ins: Any, outs: Any, *, axes: tuple[int, ...]) -> Callable[..., Any]:
        xp = get_backend(backend).library("numpy")
        return lambda x: _diagonal_view(x, axes, xp)

    @sized(lambda ins, outs, *, axes: (outs[0].shape,))
    def embed(ins: Any, outs: Any, *, axes: tuple[int, ...]) -> Callable[..., Any]:
        xp, dtype = get_backend(backend).library("numpy"), outs[0].dtype

        def run(x: Any, shape: tuple[int, ...]) -> Any:
            z = xp.zeros(shape, dtype)
            _diagonal_view(z, axes, xp)[...] = x
            return z

        return run

    return take, embed


def _on_diagonal(e: Any, spec: Any, axes: tuple[int, ...]) -> Any:
    """A mask that is true where the indices along all of `axes` are equal."""
    index = spec.with_(dtype=np.dtype("int64"))
    first, *rest = (e.iota(index, a) for a in axes)
    mask = e.constant(True, spec.with_(dtype=np.dtype(bool)))
    for other in rest:
        mask = e.op("and", (mask, e.compare("EQ", first, other)), mask.spec)
    return mask


def _lower_take(e: Any, xs: Any, outs: Any, *, axes: tuple[int, ...]) -> Any:
    (x,) = xs
    masked = e.select(_on_diagonal(e, x.spec, axes), x, e.constant(0, x.spec))
    return e.reduce("add", masked, 0, axes[1:])


def _lower_embed(e: Any, xs: Any, outs: Any, *, axes: tuple[int, ...]) -> Any:
    (out,) = outs
    spread = e.broadcast(xs[0], out.shape, [a for a in range(out.ndim) if a not in axes[1:]])
    return e.select(_on_diagonal(e, out, axes), spread, e.constant(0, out))


def _places(x: Any, n: DimLike, count: int) -> Any:
    """Index vectors of a diagonal, one row for each of its elements."""
    return catalog.iota(shape=(n, count), dtype=np.dtype("int64"), axis=0, place=x.spec.place)


def _gathered(x: Any, *, axes: tuple[int, ...]) -> Any:
    first, others = axes[0], tuple([d for d in range(x.spec.ndim - len(axes) + 1) if d != axes[0]])
    sizes = tuple([1 if a in axes else n for a, n in enumerate(x.spec.shape)])
    where = _places(x, x.spec.shape[first], len(axes))
    return catalog.gather(
        x, where, offset_dims=others, collapsed_dims=axes, start_index_map=axes, slice_sizes=sizes
    )  # fmt: skip


def _scattered(x: Any, *, axes: tuple[int, ...]) -> Any:
    out, others = embed_diagonal.infer(x.spec, axes=axes), tuple([d for d in range(x.spec.ndim) if d != axes[0]])
    assert isinstance(out, Spec)
    none = zeros(out.shape, dtype=out.dtype, device=out.place.device)
    where = _places(x, x.spec.shape[axes[0]], len(axes))
    return catalog.scatter(
        none, where, x, update_window_dims=others, inserted_dims=axes, scatter_dims=axes, mode="set"
    )  # fmt: skip


def register(registry: Registry) -> None:
    """Register kernels for arrays with NumPy's interface, lowerings, and rules: each is the other's transpose."""
    for backend in ("cpu", "cuda", "rocm"):
        take, embed = _kernels(backend)
        registry.kernel(take_diagonal, backend, take)
        registry.kernel(embed_diagonal, backend, embed)
    registry.expansion(take_diagonal, _gathered, keep=True)
    registry.expansion(embed_diagonal, _scattered, keep=True)
    registry.lowering(take_diagonal, _lower_take)
    registry.lowering(embed_diagonal, _lower_embed)
    registry.rule(take_diagonal, Linear(x=lambda g, axes: embed_diagonal(g, axes=axes)))
    registry.rule(embed_diagonal, Linear(x=lambda g, axes: take_diagonal(g, axes=axes)))
    for p in (take_diagonal, embed_diagonal):
        registry.batching(p, shifting(p, "axes"))
