"""Kernels of reading and writing at computed indices, without loops over elements.

On the host, a writing kernel takes one more operand if it may overwrite the memory of the first one.
"""

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from tenferro_tensor._sized import sized
from tenferro_tensor._spec import Spec
from tenferro_tensor.catalog import indexing as ops
from tenferro_tensor.reference._table import Ints, Kernel, Special, Table, any_size, extents
from tenferro_tensor_core import ShapeError


def kernels(xp: Any, special: Special) -> Table:
    """Kernels over the array module `xp`."""
    return {
        ops.gather: sized(_gather_sizes)(partial(_gather, xp)),
        ops.scatter: sized(_scatter_sizes)(partial(_scatter, xp)),
        ops.dynamic_slice: _dynamic_slice,
        ops.dynamic_update_slice: _dynamic_update_slice,
    }


def _at_most(xp: Any, positions: Any, limit: int) -> Any:
    """Positions limited from above, as int64; large unsigned integers do not become negative."""
    if positions.dtype.kind == "u":
        bound = min(limit, 2 ** (8 * positions.dtype.itemsize) - 1)
        return xp.minimum(positions, bound).astype("int64")
    return xp.minimum(positions.astype("int64"), limit)


def _gather_sizes(
    ins: tuple[Spec, ...], outs: tuple[Spec, ...], *, start_index_map: Ints, slice_sizes: Ints, **_: Any
) -> tuple[Any, ...]:
    limits = tuple([extents(ins[0])[d] - slice_sizes[d] for d in start_index_map])
    return slice_sizes, limits, extents(ins[1])[:-1], extents(outs[0])


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
    x, batch_ndim, ndim = ins[0], ins[1].ndim - 1, outs[0].ndim
    if not batch_ndim and x.place.on_host:
        return _window_read(xp, x, collapsed_dims, start_index_map)

    # Axes without an index start at 0: a static slice, or element 0 if the axis is dropped.
    left = [d for d in range(x.ndim) if d in start_index_map or d not in collapsed_dims]
    whole = [d for d in left if d not in start_index_map]
    wide = [d for d in start_index_map if slice_sizes[d] != 1]
    front = tuple([left.index(d) for d in (*start_index_map, *whole)])

    # The fancy index yields the axes batch (negative here), wide, whole; the result has its window axes at offset_dims.
    batch = range(-batch_ndim, 0)
    yielded = [*batch, *wide, *whole]
    batches, windows = iter(batch), iter([d for d in range(x.ndim) if d not in collapsed_dims])
    wanted = [next(windows if i in offset_dims else batches) for i in range(ndim)]
    arrange = tuple([yielded.index(a) for a in wanted if a in yielded])

    def index(indices: Any, k: int, sizes: Ints, limit: int, batch_shape: Ints) -> Any:
        start, d = xp.maximum(_at_most(xp, indices[..., k], limit), 0), start_index_map[k]
        if wide:
            start = start.reshape(batch_shape + (1,) * len(wide))
        if d in wide:
            start = start + xp.arange(sizes[d]).reshape([sizes[d] if e == d else 1 for e in wide])
        return start

    def run(x: Any, indices: Any, sizes: Ints, limits: Ints, batch_shape: Ints, shape: Ints) -> Any:
        if 0 in shape:
            return xp.empty(shape, x.dtype)
        _require_windows(sizes, limits, x.shape)
        static = tuple(
            slice(None) if d in start_index_map else 0 if d in collapsed_dims else slice(0, n)
            for d, n in enumerate(sizes)
        )
        block = x[static].transpose(front)
        if start_index_map:
            block = block[tuple([index(indices, k, sizes, n, batch_shape) for k, n in enumerate(limits)])]
        else:
            block = xp.broadcast_to(block, batch_shape + tuple([sizes[d] for d in whole]))
        return block.transpose(arrange).reshape(shape)

    if len(start_index_map) == 1 and not wide and len(left) == x.ndim:
        axis = start_index_map[0]
        order = [*range(axis), *batch, *range(axis + 1, x.ndim)]
        if order == [a for a in wanted if a != axis] and all(slice_sizes[d] == x.shape[d] for d in whole):

            def take(x: Any, indices: Any, sizes: Ints, limits: Ints, batch_shape: Ints, shape: Ints) -> Any:
                if 0 in shape:
                    return xp.empty(shape, x.dtype)
                _require_windows(sizes, limits, x.shape)
                if xp is np and indices.dtype.kind == "i":
                    return x.take(indices[..., 0], axis, mode="clip").reshape(shape)
                return x.take(index(indices, 0, sizes, limits[0], batch_shape), axis).reshape(shape)

            return take
    return run


def _window_read(xp: Any, x: Spec, dropped: Ints, named: Ints) -> Kernel:
    """The kernel for one window: a block of the operand, copied."""
    key = _window_key(x.ndim, dropped, named)

    def run(x: Any, indices: Any, sizes: Ints, limits: Ints, batch_shape: Ints, shape: Ints) -> Any:
        if 0 in shape:
            return xp.empty(shape, x.dtype)
        _require_windows(sizes, limits, x.shape)
        starts = [a if 0 <= a <= n else max(min(a, n), 0) for a, n in zip(indices.tolist(), limits)]
        return x[key(starts, sizes)].copy()

    return run


def _window_key(ndim: int, dropped: Ints, named: Ints) -> Callable[[Sequence[int], Ints], tuple[Any, ...]]:
    """The index of the window that starts at the given starts along the axes `named` and at 0 along others, without the
    axes `dropped`."""
    if sorted(named) == list(range(ndim)) == list(dropped):  # one element
        order = [named.index(d) for d in range(ndim)]
        return lambda starts, sizes: tuple([starts[k] for k in order])
    place = [named.index(d) if d in named else None for d in range(ndim)]

    def key(starts: Sequence[int], sizes: Ints) -> tuple[Any, ...]:
        corner = [0 if k is None else starts[k] for k in place]
        return tuple([a if d in dropped else slice(a, a + sizes[d]) for d, a in enumerate(corner)])

    return key


def _scatter_sizes(
    ins: tuple[Spec, ...],
    outs: tuple[Spec, ...],
    *,
    update_window_dims: Ints,
    inserted_dims: Ints,
    scatter_dims: Ints,
    mode: str,
) -> tuple[Any, ...]:
    shape, window = extents(ins[0]), _window(ins, update_window_dims, inserted_dims)
    split = _split(shape, window)
    limits = tuple([shape[d] - window[d] for d in scatter_dims])
    steps = tuple([math.prod(shape[d + 1 : split]) for d in range(split)])
    return shape, extents(ins[1])[:-1], window, limits, steps, math.prod(shape[:split]), math.prod(shape[split:])


def _window(ins: tuple[Spec, ...], update_window_dims: Ints, inserted_dims: Ints) -> Ints:
    """Extents of the window along each axis of the result."""
    sizes = iter([extents(ins[2])[a] for a in update_window_dims])
    return tuple([1 if d in inserted_dims else next(sizes) for d in range(ins[0].ndim)])


def _split(shape: Ints, window: Ints) -> int:
    """Number of axes before the rows; a row consists of the last axes, as many as a window spans completely."""
    split = len(shape)
    while split and window[split - 1] == shape[split - 1]:
        split -= 1
    return split


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
    x, _, updates = ins
    order = (*[a for a in range(updates.ndim) if a not in update_window_dims], *update_window_dims)
    split = _split(extents(x), _window(ins, update_window_dims, inserted_dims))
    stacked = [d for d in range(split) if d not in inserted_dims]
    combine = {"add": xp.add, "mul": xp.multiply, "min": xp.minimum, "max": xp.maximum}.get(mode)

    def targets(indices: Any, batch_shape: Ints, window: Ints, limits: Ints, steps: Ints, rows: int) -> Any:
        """The row of the result that each row of the updates goes to.

        Windows that do not fit go to an extra row after the last one, so that no shape depends on their number.
        """
        aligned = batch_shape + (1,) * len(stacked)
        first, inside = xp.zeros(batch_shape, "int64"), xp.ones(batch_shape, bool)
        for k, (d, limit) in enumerate(zip(scatter_dims, limits, strict=True)):
            start = _at_most(xp, indices[..., k], limit + 1)
            inside = inside & (start >= 0) & (start <= limit)
            if d < split:  # a window that spans an axis completely starts at 0, or does not fit
                first = first + xp.maximum(start, 0) * steps[d]
        out = first.reshape(aligned)
        for i, d in enumerate(stacked):
            along = [window[d] if j == i else 1 for j in range(len(stacked))]
            out = out + (xp.arange(window[d]) * steps[d]).reshape(along)
        return xp.where(inside.reshape(aligned), out, rows).reshape(-1)

    def run(x: Any, indices: Any, updates: Any, *more: Any) -> Any:
        *over, shape, batch_shape, window, limits, steps, rows, row = more
        if 0 in shape:
            return x
        at = targets(indices, batch_shape, window, limits, steps, rows)
        values = updates.transpose(order).reshape(-1, row)
        if over and x.flags.carray:
            out = x.reshape(rows, row)
            inside = at < rows
            if not inside.all():
                at, values = at[inside], values[inside]
        else:
            out = xp.empty((rows + 1, row), x.dtype)
            out[:rows] = x.reshape(rows, row)
            out[rows:] = 0
        if combine is None:
            out[at] = values
        else:
            # Twice as fast as whole rows: NumPy's fast loop needs flat operands.
            at = (at.reshape(-1, 1) * row + xp.arange(row)).reshape(-1)
            combine.at(out.reshape(-1), at, values.reshape(-1))
        return out[:rows].reshape(shape)

    if ins[1].ndim == 1 and x.place.on_host:
        return _window_written(combine, x, inserted_dims, scatter_dims)
    return run


def _window_written(combine: Any, x: Spec, inserted: Ints, named: Ints) -> Kernel:
    """The kernel for one window: it writes to a block of the operand or of its copy."""
    key = _window_key(x.ndim, inserted, named)

    def run(x: Any, indices: Any, updates: Any, *more: Any) -> Any:
        *over, _, _, window, limits, _, _, _ = more
        out = x if over and x.flags.carray else np.array(x, order="C")  # a 0-d raw array may be a scalar
        starts = indices.tolist()
        for a, limit in zip(starts, limits):
            if not 0 <= a <= limit:
                return out
        at = key(starts, window)
        out[at] = updates if combine is None else combine(out[at], updates)
        return out

    return run


def _require_windows(sizes: Ints, limits: Ints, shape: Ints) -> None:
    """Check that windows fit, from their largest starts."""
    if limits and min(limits) < 0:
        _require_room(sizes, shape)


def _require_room(sizes: Ints, shape: Ints) -> None:
    """Check that a window fits; a program for symbolic extents may run where it does not."""
    if any(size > n for size, n in zip(sizes, shape, strict=True)):
        raise ShapeError(f"a window of extents {sizes} does not fit an array of extents {shape}", shape=shape)


def _block(starts: Sequence[Any], sizes: Ints, shape: Ints) -> tuple[slice, ...]:
    """The block of extents `sizes` at `starts`, moved inside an array of the given shape if necessary."""
    _require_room(sizes, shape)
    corner = [max(0, min(int(a), n - size)) for a, size, n in zip(starts, sizes, shape, strict=True)]
    return tuple([slice(a, a + size) for a, size in zip(corner, sizes, strict=True)])


@sized(lambda ins, outs, *, sizes: (sizes,))
def _dynamic_slice(ins: tuple[Spec, ...], outs: tuple[Spec, ...], *, sizes: Ints) -> Kernel:
    # A view would prevent updates of the array, which often follow, from reusing its memory.
    return lambda x, *more: x[_block(more[:-1], more[-1], x.shape)].copy()


@any_size
def _dynamic_update_slice(ins: tuple[Spec, ...], outs: tuple[Spec, ...]) -> Kernel:
    ndim = ins[0].ndim

    def run(x: Any, update: Any, *more: Any) -> Any:
        out = x if len(more) > ndim and x.flags.carray else x.copy()
        out[_block(more[:ndim], update.shape, x.shape)] = update
        return out

    return run if ndim else lambda x, update, *over: update
