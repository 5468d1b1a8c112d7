"""Rules of the primitives that rearrange, move or create data; all are linear."""

from __future__ import annotations

from typing import Any, Final

from tenferro_ad._zeros import full, zeros_like
from tenferro_ad.rules._constants import falses_like
from tenferro_runtime.extension import General, Inactive, Linear
from tenferro_tensor import Op, Primitive, Spec
from tenferro_tensor import catalog as c
from tenferro_tensor_core import DimLike, dim_max, floordiv


def inverse(permutation: Any) -> tuple[int, ...]:
    """The permutation that undoes another."""
    return tuple(sorted(range(len(permutation)), key=permutation.__getitem__))


def arranged(x: Any, permutation: tuple[int, ...]) -> Any:
    """Transpose, unless the permutation is the identity."""
    return x if permutation == tuple(range(len(permutation))) else c.transpose(x, permutation=permutation)


def _unbroadcast(g: Any, dims: tuple[int, ...]) -> Any:
    new = tuple([i for i in range(g.ndim) if i not in dims])
    # The remaining axes are in the order of the result; axis i of the operand became axis dims[i].
    kept = sorted(dims)
    return arranged(c.reduce_sum(g, axes=new) if new else g, tuple([kept.index(d) for d in dims]))


def _unpad(g: Any, x_spec: Spec, low: Any, high: Any, interior: Any) -> Any:
    """Extract the operand's elements from a padded array; cropped elements become zeros."""
    n = g.ndim
    # Put a gap after each element, also the last, so that the extent divides evenly even if it is symbolic.
    whole = tuple([d * (k + 1) for d, k in zip(x_spec.shape, interior, strict=True)])
    rest = tuple([d - e + a for d, e, a in zip(whole, g.spec.shape, low, strict=True)])
    grown = c.pad(g, 0, low=tuple([-a for a in low]), high=rest, interior=(0,) * n)
    if not any(interior):
        return grown
    return c.slice_(grown, start=(0,) * n, limit=whole, stride=tuple([k + 1 for k in interior]))


def _padding(g: Any, x_spec: Spec, low: Any, high: Any, interior: Any) -> Any:
    """Sum of the cotangents of the padding, by selection: a difference of two sums would lose digits."""
    inside = falses_like(_unpad(g, x_spec, low, high, interior))
    outside = c.pad(inside, True, low=low, high=high, interior=interior)
    return c.reduce_sum(c.select(outside, g, 0), axes=tuple(range(g.ndim)))


def covered(m: DimLike, step: int) -> DimLike:
    """The extent from the first to the last element of a slice with `m` elements."""
    return m if step == 1 else dim_max(m * step - (step - 1), 0)


def slice_of(shape: Any, start: Any, stride: Any) -> tuple[Op, tuple[DimLike, ...]]:
    """The op that slices `shape` elements, and its output shape, which equals `shape` up to symbolic notation."""
    counts = [covered(m, s) for m, s in zip(shape, stride, strict=True)]
    limit = tuple([a + n for a, n in zip(start, counts, strict=True)])
    found = tuple([n if s == 1 else floordiv(n + (s - 1), s) for n, s in zip(counts, stride, strict=True)])
    return c.slice_.op(start=start, limit=limit, stride=stride), found


def _unslice(g: Any, x_spec: Spec, start: Any, stride: Any) -> Any:
    ends = [a + covered(m, s) for a, m, s in zip(start, g.spec.shape, stride, strict=True)]
    return c.pad(
        g,
        0,
        low=start,
        high=tuple([n - end for n, end in zip(x_spec.shape, ends, strict=True)]),
        interior=tuple([s - 1 for s in stride]),
    )


def _updated_slice(g: Any, update_spec: Spec, start: Any, stride: Any) -> Any:
    """The elements that an update of a slice was written to."""
    taken, _ = slice_of(update_spec.shape, start, stride)
    found = taken(g)
    if found.spec.shape == update_spec.shape:
        return found
    return c.broadcast_in_dim(found, shape=update_spec.shape, dims=tuple(range(g.ndim)))  # renames symbolic sizes


def _outside_slice(g: Any, update_spec: Spec, start: Any, stride: Any, mode: str) -> Any:
    return g if mode == "add" else c.update_slice(g, full(update_spec, 0), start=start, stride=stride, mode="set")


def _concatenate_jvp(primals: Any, tangents: Any, outs: Any, axis: int) -> Any:
    if all(t is None for t in tangents):
        return (None,)
    filled = [zeros_like(x) if t is None else t for x, t in zip(primals, tangents, strict=True)]
    return (c.concatenate(*filled, axis=axis),)


def _concatenate_vjp(primals: Any, outs: Any, cotangents: Any, axis: int) -> Any:
    (g,) = cotangents
    shape, parts = g.spec.shape, []
    at: DimLike = 0
    for x in primals:
        end = at + x.spec.shape[axis]
        start = tuple([at if i == axis else 0 for i in range(g.ndim)])
        limit = (*shape[:axis], end, *shape[axis + 1 :])
        parts.append(c.slice_(g, start=start, limit=limit, stride=(1,) * g.ndim))
        at = end
    return tuple(parts)


RULES: Final[dict[Primitive, Any]] = {
    c.broadcast_in_dim: Linear(x=lambda g, dims: _unbroadcast(g, dims)),
    c.reshape: Linear(x=lambda g, x_spec: c.reshape(g, shape=x_spec.shape)),
    c.transpose: Linear(x=lambda g, permutation: c.transpose(g, permutation=inverse(permutation))),
    c.reverse: Linear(x=lambda g, axes: c.reverse(g, axes=axes)),
    c.slice_: Linear(x=_unslice),
    c.pad: Linear(joint=True, x=_unpad, value=_padding),
    c.update_slice: Linear(joint=True, x=_outside_slice, update=_updated_slice),
    c.concatenate: General(jvp=_concatenate_jvp, vjp=_concatenate_vjp),
    c.transfer: Linear(x=lambda g, x_spec: c.transfer(g, place=x_spec.place)),
    **dict.fromkeys((c.iota, c.dim_value, c.define_size), Inactive()),
}
