"""Kernels of reading and writing at computed positions; no loop over elements."""

import math
from functools import partial
from typing import Any

from tenferro_tensor._spec import Spec
from tenferro_tensor.catalog import indexing as ops
from tenferro_tensor.reference._table import Ints, Kernel, Special, Table, extents


def kernels(xp: Any, special: Special) -> Table:
    """Kernels over the array module `xp`."""
    return {
        ops.gather: partial(_gather, xp),
        ops.scatter: partial(_scatter, xp),
        ops.dynamic_slice: _dynamic_slice,
        ops.dynamic_update_slice: _dynamic_update_slice,
    }


def _at_most(xp: Any, positions: Any, limit: int) -> Any:
    """Positions limited from above, as int64; large unsigned ones do not become negative."""
    if positions.dtype.kind == "u":
        bound = min(limit, 2 ** (8 * positions.dtype.itemsize) - 1)
        return xp.minimum(positions, bound).astype("int64")
    return xp.minimum(positions.astype("int64"), limit)


def _gather(
    xp: Any,
    ins: tuple[Spec, ...],
    outs: tuple[Spec, ...],
    *,
    offset_dims: Ints,
    collapsed_dims: Ints,
    start_index_map: Ints,
    slice_sizes: Ints,
) -> Kernel:
    x, batch_shape, shape = ins[0], extents(ins[1])[:-1], extents(outs[0])
    if 0 in shape:
        return lambda x, indices: xp.empty(shape, x.dtype)
    # Axes that no index names start at 0: a static slice, or element 0 where the axis is dropped.
    static = tuple(
        slice(None) if d in start_index_map else 0 if d in collapsed_dims else slice(0, n)
        for d, n in enumerate(slice_sizes)
    )
    left = [d for d in range(x.ndim) if static[d].__class__ is slice]
    whole = [d for d in left if d not in start_index_map]
    wide = [d for d in start_index_map if slice_sizes[d] != 1]
    front = tuple([left.index(d) for d in (*start_index_map, *whole)])
    limits = [extents(x)[d] - slice_sizes[d] for d in start_index_map]

    # The fancy index yields the axes batch (negative here), wide, whole; the result has windows where offset_dims says.
    batch = range(-len(batch_shape), 0)
    yielded = [*batch, *wide, *whole]
    batches, windows = iter(batch), iter([d for d in range(x.ndim) if d not in collapsed_dims])
    wanted = [next(windows if i in offset_dims else batches) for i in range(len(shape))]
    arrange = tuple([yielded.index(a) for a in wanted if a in yielded])

    def index(indices: Any, k: int) -> Any:
        start, d = xp.maximum(_at_most(xp, indices[..., k], limits[k]), 0), start_index_map[k]
        if wide:
            start = start.reshape(batch_shape + (1,) * len(wide))
        if d in wide:
            start = start + xp.arange(slice_sizes[d]).reshape([slice_sizes[d] if e == d else 1 for e in wide])
        return start

    def run(x: Any, indices: Any) -> Any:
        block = x[static].transpose(front)
        if start_index_map:
            block = block[tuple([index(indices, k) for k in range(len(start_index_map))])]
        else:
            block = xp.broadcast_to(block, batch_shape + tuple([slice_sizes[d] for d in whole]))
        return block.transpose(arrange).reshape(shape)

    if len(start_index_map) == 1 and not wide and len(left) == x.ndim:
        axis = start_index_map[0]
        order = [*range(axis), *batch, *range(axis + 1, x.ndim)]
        if order == [a for a in wanted if a != axis] and all(slice_sizes[d] == x.shape[d] for d in whole):
            return lambda x, indices: x.take(index(indices, 0), axis).reshape(shape)
    return run


def _scatter(
    xp: Any,
    ins: tuple[Spec, ...],
    outs: tuple[Spec, ...],
    *,
    update_window_dims: Ints,
    inserted_dims: Ints,
    scatter_dims: Ints,
    mode: str,
) -> Kernel:
    x, indices, updates = ins
    shape, batch_shape = extents(x), extents(indices)[:-1]
    if 0 in shape:
        return lambda x, indices, updates: x
    kept = [d for d in range(x.ndim) if d not in inserted_dims]
    window = dict(zip(kept, [extents(updates)[a] for a in update_window_dims], strict=True))
    limits = [shape[d] - window.get(d, 1) for d in scatter_dims]
    order = (*[a for a in range(updates.ndim) if a not in update_window_dims], *update_window_dims)

    # The result is seen as rows: the last axes, as far as a window spans them whole.
    split = x.ndim
    while split and window.get(split - 1) == shape[split - 1]:
        split -= 1
    row, rows = math.prod(shape[split:]), math.prod(shape[:split])
    stacked = [d for d in kept if d < split]
    aligned = batch_shape + (1,) * len(stacked)
    combine = {"add": xp.add, "mul": xp.multiply, "min": xp.minimum, "max": xp.maximum}.get(mode)

    def targets(indices: Any) -> Any:
        """The row of the result that each row of the updates goes to.

        Windows that do not fit go to one row behind it: no step depends on how many there are.
        """
        first, inside = xp.zeros(batch_shape, "int64"), xp.ones(batch_shape, bool)
        for k, d in enumerate(scatter_dims):
            start = _at_most(xp, indices[..., k], limits[k] + 1)
            inside = inside & (start >= 0) & (start <= limits[k])
            first = first + xp.maximum(start, 0) * math.prod(shape[d + 1 : split])
        out = first.reshape(aligned)
        for i, d in enumerate(stacked):
            along = [window[d] if j == i else 1 for j in range(len(stacked))]
            out = out + (xp.arange(window[d]) * math.prod(shape[d + 1 : split])).reshape(along)
        return xp.where(inside.reshape(aligned), out, rows).reshape(-1)

    def run(x: Any, indices: Any, updates: Any) -> Any:
        out = xp.empty((rows + 1, row), x.dtype)
        out[:rows] = x.reshape(rows, row)
        out[rows:] = 0
        at, values = targets(indices), updates.transpose(order).reshape(-1, row)
        if combine is None:
            out[at] = values
        else:
            # Twice as fast as whole rows: NumPy's fast loop wants flat operands.
            at = (at.reshape(-1, 1) * row + xp.arange(row)).reshape(-1)
            combine.at(out.reshape(-1), at, values.reshape(-1))
        return out[:rows].reshape(shape)

    return run


def _block(starts: Any, sizes: Ints, shape: Ints) -> tuple[slice, ...]:
    """The block of extents `sizes` at `starts`, moved where it would leave an array of the given shape."""
    corner = [max(0, min(a, n - size)) for a, size, n in zip(starts.tolist(), sizes, shape, strict=True)]
    return tuple([slice(a, a + size) for a, size in zip(corner, sizes, strict=True)])


def _dynamic_slice(ins: tuple[Spec, ...], outs: tuple[Spec, ...], *, sizes: Ints) -> Kernel:
    shape = extents(ins[0])
    return lambda x, starts: x[_block(starts, sizes, shape)]


def _dynamic_update_slice(ins: tuple[Spec, ...], outs: tuple[Spec, ...]) -> Kernel:
    shape, sizes = extents(ins[0]), extents(ins[1])

    def run(x: Any, update: Any, starts: Any) -> Any:
        out = x.copy()
        out[_block(starts, sizes, shape)] = update
        return out

    return run if shape else lambda x, update, starts: update
