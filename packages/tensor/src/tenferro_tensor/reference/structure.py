"""Kernels of broadcasting, reshaping, transposing, padding, joining and slices; views where possible."""

import math
from functools import partial
from typing import Any

from tenferro_tensor._primitive import is_open
from tenferro_tensor._spec import Spec
from tenferro_tensor.calls import REPEATED_MAX_SIZE
from tenferro_tensor.catalog import structure as ops
from tenferro_tensor.reference._table import (
    Ints,
    Kernel,
    Special,
    Table,
    any_size,
    extents,
    unchanged,
    with_sizes,
)
from tenferro_tensor_core import DimLike


def _aligned(shape: tuple[DimLike, ...], dims: Ints) -> Any:
    """The shape of the result with 1 for its new axes."""
    return tuple([n if i in dims else 1 for i, n in enumerate(shape)])


def _broadcast_sizes(
    ins: tuple[Spec, ...], outs: tuple[Spec, ...], *, shape: tuple[DimLike, ...], dims: Ints
) -> tuple[Any, ...]:
    return _aligned(shape, dims), shape


def kernels(xp: Any, special: Special) -> Table:
    """Kernels over the array module `xp`."""

    @with_sizes(_broadcast_sizes)
    def broadcast_in_dim(ins: tuple[Spec, ...], outs: tuple[Spec, ...], *, shape: Ints, dims: Ints) -> Kernel:
        order = tuple(sorted(range(len(dims)), key=dims.__getitem__))
        moved = order != tuple(range(len(dims)))
        aligned = _aligned(shape, dims)
        if ins[0].symbolic or outs[0].symbolic:
            return lambda x, aligned, shape: repeated(x.transpose(order) if moved else x, aligned, shape)
        if aligned == shape:
            return (lambda x: x.transpose(order).reshape(shape)) if moved else (lambda x: x.reshape(shape))
        return lambda x: repeated(x.transpose(order) if moved else x, aligned, shape)

    def repeated(x: Any, aligned: Ints, shape: Ints) -> Any:
        x = x.reshape(aligned)
        if aligned == shape:
            return x
        if math.prod(shape) > REPEATED_MAX_SIZE:
            return xp.broadcast_to(x, shape)
        out = xp.empty(shape, x.dtype)
        out[...] = x
        return out

    @with_sizes(lambda ins, outs, shape: (shape,))
    def reshape(ins: tuple[Spec, ...], outs: tuple[Spec, ...], *, shape: Ints) -> Kernel:
        if ins[0].symbolic or outs[0].symbolic:
            return lambda x, shape: x.reshape(shape)
        return lambda x: x.reshape(shape)

    @any_size
    def transpose(ins: tuple[Spec, ...], outs: tuple[Spec, ...], *, permutation: Ints) -> Kernel:
        return unchanged if permutation == tuple(range(len(permutation))) else lambda x: x.transpose(permutation)

    @with_sizes(lambda ins, outs, low, high, interior: (ins[0].shape, outs[0].shape, low))
    def pad(ins: tuple[Spec, ...], outs: tuple[Spec, ...], *, low: Ints, high: Ints, interior: Ints) -> Kernel:
        shape, dtype = outs[0].shape, outs[0].dtype
        if any(map(is_open, (ins[0].shape, shape, low, high))):
            return partial(padded, interior=interior)
        places = list(map(_landing, extents(ins[0]), extents(outs[0]), low, interior))
        source = tuple([a for a, _ in places])
        target = tuple([b for _, b in places])
        if all(lo <= 0 and hi <= 0 and not gap for lo, hi, gap in zip(low, high, interior, strict=True)):
            return lambda x, value: x[source]

        def run(x: Any, value: Any) -> Any:
            out = xp.empty(shape, dtype)
            out[...] = value
            out[target] = x[source]
            return out

        return run

    def padded(x: Any, value: Any, shape: Ints, out: Ints, low: Ints, interior: Ints) -> Any:
        places = list(map(_landing, shape, out, low, interior))
        made = xp.empty(out, x.dtype)
        made[...] = value
        made[tuple([b for _, b in places])] = x[tuple([a for a, _ in places])]
        return made

    @any_size
    def concatenate(ins: tuple[Spec, ...], outs: tuple[Spec, ...], *, axis: int) -> Kernel:
        return unchanged if len(ins) == 1 else lambda *xs: xp.concatenate(xs, axis)

    @any_size
    def reverse(ins: tuple[Spec, ...], outs: tuple[Spec, ...], *, axes: Ints) -> Kernel:
        if not axes:
            return unchanged
        if ins[0].ndim == 1:
            # For a negative stride NumPy rounds single numbers differently, and passes omit reversals of one element.
            return lambda x: x if len(x) == 1 else x[::-1]
        index = tuple([slice(None, None, -1 if i in axes else None) for i in range(ins[0].ndim)])
        return lambda x: x[index]

    @with_sizes(lambda ins, outs, start, limit, stride: (start, limit))
    def slice_(ins: tuple[Spec, ...], outs: tuple[Spec, ...], *, start: Ints, limit: Ints, stride: Ints) -> Kernel:
        if any(map(is_open, (ins[0].shape, outs[0].shape, start, limit))):
            return lambda x, start, limit: x[tuple(map(slice, start, limit, stride))]
        if outs[0].shape == ins[0].shape:
            return unchanged
        index = tuple(map(slice, start, limit, stride))
        return lambda x: x[index]

    @with_sizes(lambda ins, outs, start, stride, mode: (start,))
    def update_slice(ins: tuple[Spec, ...], outs: tuple[Spec, ...], *, start: Ints, stride: Ints, mode: str) -> Kernel:
        fixed = (
            None if any(map(is_open, (ins[0].shape, ins[1].shape, start))) else _taken(start, extents(ins[1]), stride)
        )

        def run(x: Any, update: Any, *more: Any) -> Any:
            over, at = (more[:-1], _taken(more[-1], update.shape, stride)) if fixed is None else (more, fixed)
            out = x if over and x.flags.carray else xp.array(x, order="C")  # a 0-d raw array may be a scalar
            out[at] = out[at] + update if mode == "add" else update
            return out

        return run

    return {
        ops.broadcast_in_dim: broadcast_in_dim,
        ops.reshape: reshape,
        ops.transpose: transpose,
        ops.pad: pad,
        ops.concatenate: concatenate,
        ops.reverse: reverse,
        ops.slice_: slice_,
        ops.update_slice: update_slice,
    }


def _landing(n: int, out: int, low: int, interior: int) -> tuple[slice, slice]:
    """The slice of `n` elements that remains after padding, and the slice of their positions in the extent `out`.

    Element ``j`` goes to ``low + j * (interior + 1)``.
    """
    step = interior + 1
    first = max(0, -(low // step))
    last = min(n - 1, (out - 1 - low) // step)
    if last < first:
        return slice(0, 0), slice(0, 0)
    return slice(first, last + 1), slice(low + first * step, low + last * step + 1, step)


def _taken(start: Ints, shape: Ints, stride: Ints) -> tuple[slice, ...]:
    """The slices from `start` with the extents `shape`."""
    return tuple([slice(a, a + n * s, s) for a, n, s in zip(start, shape, stride, strict=True)])
