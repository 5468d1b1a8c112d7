"""Kernels of broadcasting, reshaping, transposing, padding, joining and slicing; views wherever they can be."""

import math
from typing import Any, Final

from tenferro_tensor._spec import Spec
from tenferro_tensor.catalog import structure as ops
from tenferro_tensor.reference._table import Ints, Kernel, Special, Table, extents, unchanged

COPIED: Final = 2048
"""Broadcasts up to so many elements are copied: for them a view costs more than the elements."""


def kernels(xp: Any, special: Special) -> Table:
    """Kernels over the array module `xp`."""

    def broadcast_in_dim(ins: tuple[Spec, ...], outs: tuple[Spec, ...], *, shape: Ints, dims: Ints) -> Kernel:
        order = tuple(sorted(range(len(dims)), key=dims.__getitem__))
        moved = order != tuple(range(len(dims)))
        aligned = tuple([n if i in dims else 1 for i, n in enumerate(shape)])
        if aligned == shape:
            return (lambda x: x.transpose(order).reshape(shape)) if moved else (lambda x: x.reshape(shape))
        dtype = outs[0].dtype
        if math.prod(shape) <= COPIED:

            def run(x: Any) -> Any:
                out = xp.empty(shape, dtype)
                out[...] = (x.transpose(order) if moved else x).reshape(aligned)
                return out

            return run
        return lambda x: xp.broadcast_to((x.transpose(order) if moved else x).reshape(aligned), shape)

    def reshape(ins: tuple[Spec, ...], outs: tuple[Spec, ...], *, shape: Ints) -> Kernel:
        return lambda x: x.reshape(shape)

    def transpose(ins: tuple[Spec, ...], outs: tuple[Spec, ...], *, permutation: Ints) -> Kernel:
        return unchanged if permutation == tuple(range(len(permutation))) else lambda x: x.transpose(permutation)

    def pad(ins: tuple[Spec, ...], outs: tuple[Spec, ...], *, low: Ints, high: Ints, interior: Ints) -> Kernel:
        shape, dtype = outs[0].shape, outs[0].dtype
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

    def concatenate(ins: tuple[Spec, ...], outs: tuple[Spec, ...], *, axis: int) -> Kernel:
        return unchanged if len(ins) == 1 else lambda *xs: xp.concatenate(xs, axis)

    def reverse(ins: tuple[Spec, ...], outs: tuple[Spec, ...], *, axes: Ints) -> Kernel:
        if not axes:
            return unchanged
        index = tuple([slice(None, None, -1 if i in axes else None) for i in range(ins[0].ndim)])
        return lambda x: x[index]

    def slice_(ins: tuple[Spec, ...], outs: tuple[Spec, ...], *, start: Ints, limit: Ints, stride: Ints) -> Kernel:
        if outs[0].shape == ins[0].shape:
            return unchanged
        index = tuple(map(slice, start, limit, stride))
        return lambda x: x[index]

    return {
        ops.broadcast_in_dim: broadcast_in_dim,
        ops.reshape: reshape,
        ops.transpose: transpose,
        ops.pad: pad,
        ops.concatenate: concatenate,
        ops.reverse: reverse,
        ops.slice_: slice_,
    }


def _landing(n: int, out: int, low: int, interior: int) -> tuple[slice, slice]:
    """Which of `n` elements stay when padding begins at `low`, and where in `out` places they go.

    Element ``j`` goes to ``low + j * (interior + 1)``.
    """
    step = interior + 1
    first = max(0, -(low // step))
    last = min(n - 1, (out - 1 - low) // step)
    if last < first:
        return slice(0, 0), slice(0, 0)
    return slice(first, last + 1), slice(low + first * step, low + last * step + 1, step)
