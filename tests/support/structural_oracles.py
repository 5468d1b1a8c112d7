"""The definition of each structural primitive, as loops over elements."""

import functools
import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from tenferro_tensor import catalog as c

Ints = tuple[int, ...]


def filled(shape: Any, dtype: Any, element: Callable[[Ints], Any]) -> Any:
    out = np.empty(tuple(shape), dtype)
    for i in np.ndindex(*out.shape):
        out[i] = element(i)
    return out


def without(index: Ints, axes: Any) -> Ints:
    return tuple(v for k, v in enumerate(index) if k not in axes)


def inserted(index: Ints, axis: int, value: int) -> Ints:
    return (*index[:axis], value, *index[axis:])


def broadcast_in_dim(x: Any, *, shape: Ints, dims: Ints) -> Any:
    return filled(shape, x.dtype, lambda i: x[tuple(i[d] for d in dims)])


def reshape(x: Any, *, shape: Ints) -> Any:
    elements = [x[i] for i in np.ndindex(*x.shape)]
    strides = [math.prod(shape[k + 1 :]) for k in range(len(shape))]
    return filled(shape, x.dtype, lambda i: elements[sum(a * b for a, b in zip(i, strides, strict=True))])


def transpose(x: Any, *, permutation: Ints) -> Any:
    shape = [x.shape[p] for p in permutation]
    return filled(shape, x.dtype, lambda i: x[tuple(i[permutation.index(k)] for k in range(x.ndim))])


def pad(x: Any, value: Any, *, low: Ints, high: Ints, interior: Ints) -> Any:
    spread = [n + max(n - 1, 0) * g for n, g in zip(x.shape, interior, strict=True)]
    shape = [lo + n + hi for lo, n, hi in zip(low, spread, high, strict=True)]
    out = np.empty(shape, x.dtype)
    out[...] = value
    for i in np.ndindex(*x.shape):
        at = tuple(lo + j * (g + 1) for lo, j, g in zip(low, i, interior, strict=True))
        if all(0 <= a < n for a, n in zip(at, shape, strict=True)):
            out[at] = x[i]
    return out


def concatenate(*xs: Any, axis: int) -> Any:
    rows = [(x, j) for x in xs for j in range(x.shape[axis])]

    def element(i: Ints) -> Any:
        x, j = rows[i[axis]]
        return x[(*i[:axis], j, *i[axis + 1 :])]

    shape = list(xs[0].shape)
    shape[axis] = len(rows)
    return filled(shape, xs[0].dtype, element)


def reverse(x: Any, *, axes: Ints) -> Any:
    return filled(x.shape, x.dtype, lambda i: x[tuple(x.shape[k] - 1 - v if k in axes else v for k, v in enumerate(i))])


def slice_(x: Any, *, start: Ints, limit: Ints, stride: Ints) -> Any:
    ranges = [range(a, b, s) for a, b, s in zip(start, limit, stride, strict=True)]
    return filled(map(len, ranges), x.dtype, lambda i: x[tuple(r[v] for r, v in zip(ranges, i, strict=True))])


def update_slice(x: Any, update: Any, *, start: Ints, stride: Ints, mode: str) -> Any:
    out = np.array(x)
    for i in np.ndindex(*update.shape):
        at = tuple([a + v * s for a, v, s in zip(start, i, stride, strict=True)])
        out[at] = added(out[at], update[i]) if mode == "add" else update[i]
    return out


def gather(
    x: Any, indices: Any, *, offset_dims: Ints, collapsed_dims: Ints, start_index_map: Ints, slice_sizes: Ints
) -> Any:
    window = [d for d in range(x.ndim) if d not in collapsed_dims]
    rank = len(window) + indices.ndim - 1
    batch = [k for k in range(rank) if k not in offset_dims]
    shape = [0] * rank
    for k, n in zip(batch, indices.shape, strict=False):
        shape[k] = n
    for k, d in zip(offset_dims, window, strict=True):
        shape[k] = slice_sizes[d]

    def element(i: Ints) -> Any:
        vector = indices[tuple(i[k] for k in batch)].tolist()
        at = [0] * x.ndim
        for start, d in zip(vector, start_index_map, strict=True):
            at[d] = min(max(start, 0), x.shape[d] - slice_sizes[d])
        for k, d in zip(offset_dims, window, strict=True):
            at[d] += i[k]
        return x[tuple(at)]

    return filled(shape, x.dtype, element)


COMBINE: dict[str, Callable[[Any, Any], Any]] = {
    "set": lambda a, b: b, "add": operator.add, "mul": operator.mul, "min": min, "max": max,
}  # fmt: skip


def scatter(
    x: Any, indices: Any, updates: Any, *, update_window_dims: Ints, inserted_dims: Ints, scatter_dims: Ints, mode: str
) -> Any:
    out = np.array(x)
    kept = [d for d in range(x.ndim) if d not in inserted_dims]
    batch = [k for k in range(updates.ndim) if k not in update_window_dims]
    size = [1] * x.ndim
    for k, d in zip(update_window_dims, kept, strict=True):
        size[d] = updates.shape[k]
    for u in np.ndindex(*updates.shape):
        corner = [0] * x.ndim
        for start, d in zip(indices[tuple(u[k] for k in batch)].tolist(), scatter_dims, strict=True):
            corner[d] = start
        if not all(0 <= a and a + s <= n for a, s, n in zip(corner, size, x.shape, strict=True)):
            continue
        for k, d in zip(update_window_dims, kept, strict=True):
            corner[d] += u[k]
        at = tuple(corner)
        out[at] = COMBINE[mode](out[at], updates[u])
    return out


def corner(x: Any, starts: Any, sizes: Any) -> Ints:
    return tuple(min(max(a, 0), n - s) for a, n, s in zip(map(int, starts), x.shape, sizes, strict=True))


def dynamic_slice(x: Any, *starts: Any, sizes: Ints) -> Any:
    at = corner(x, starts, sizes)
    return filled(sizes, x.dtype, lambda i: x[tuple(map(sum, zip(at, i, strict=True)))])


def dynamic_update_slice(x: Any, update: Any, *starts: Any) -> Any:
    out = np.array(x)
    at = corner(x, starts, update.shape)
    for i in np.ndindex(*update.shape):
        out[tuple(map(sum, zip(at, i, strict=True)))] = update[i]
    return out


def larger(a: Any, b: Any) -> Any:
    return a if a != a or a >= b else b


def smaller(a: Any, b: Any) -> Any:
    return a if a != a or a <= b else b


def added(a: Any, b: Any) -> Any:
    return (a or b) if isinstance(a, bool) else a + b


def multiplied(a: Any, b: Any) -> Any:
    return (a and b) if isinstance(a, bool) else a * b


def along(x: Any, axis: int, index: Ints) -> list[Any]:
    """The elements of a line as Python numbers, `index` being that of the other axes."""
    return [x[inserted(index, axis, j)].item() for j in range(x.shape[axis])]


def stored(values: Any, dtype: Any) -> Any:
    """Python numbers as elements: integers modulo the range of the dtype."""
    if dtype.kind in "iu":
        bits = 8 * dtype.itemsize
        value = int(values) % (1 << bits)
        return value - (1 << bits) if dtype.kind == "i" and value >> (bits - 1) else value
    return values


def reduction(combine: Callable[[Any, Any], Any], *start: Any) -> Callable[..., Any]:
    def oracle(x: Any, *, axes: Ints) -> Any:
        lines: dict[Ints, list[Any]] = {i: [] for i in np.ndindex(*without(x.shape, axes))}
        for i in np.ndindex(*x.shape):
            lines[without(i, axes)].append(x[i].item())
        first = [x.dtype.type(s).item() for s in start]
        return filled(
            without(x.shape, axes), x.dtype, lambda i: stored(functools.reduce(combine, lines[i], *first), x.dtype)
        )

    return oracle


def locating(better: Callable[[Any, Any], bool]) -> Callable[..., Any]:
    def element(line: list[Any]) -> int:
        best = 0
        for j, v in enumerate(line):
            if line[best] == line[best] and (v != v or better(v, line[best])):
                best = j
        return best

    return lambda x, *, axis: filled(without(x.shape, (axis,)), np.int64, lambda i: element(along(x, axis, i)))


def log_add_exp(a: float, b: float) -> float:
    top = max(a, b)
    return top if math.isinf(top) else top + math.log(math.exp(a - top) + math.exp(b - top))


def scanning(combine: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    def oracle(x: Any, *, axis: int, reverse: bool) -> Any:
        def element(i: Ints) -> Any:
            line = along(x, axis, without(i, (axis,)))
            part = line[i[axis] :][::-1] if reverse else line[: i[axis] + 1]
            return stored(functools.reduce(combine, part), x.dtype)

        return filled(x.shape, x.dtype, element)

    return oracle


def order(line: list[Any], descending: bool) -> list[int]:
    """Indices that sort a line: by insertion, stable, NaN last."""

    def key(v: Any) -> Any:
        return (v.real, v.imag) if isinstance(v, complex) else v

    numbers = [j for j, v in enumerate(line) if v == v]
    done: list[int] = []
    for j in numbers:
        k = len(done)
        while k and (key(line[done[k - 1]]) < key(line[j]) if descending else key(line[done[k - 1]]) > key(line[j])):
            k -= 1
        done.insert(k, j)
    return done + [j for j, v in enumerate(line) if v != v]


def argsort(x: Any, *, axis: int, descending: bool) -> Any:
    return filled(x.shape, np.int64, lambda i: order(along(x, axis, without(i, (axis,))), descending)[i[axis]])


def sort(x: Any, *, axis: int, descending: bool) -> Any:
    def element(i: Ints) -> Any:
        line = along(x, axis, without(i, (axis,)))
        return line[order(line, descending)[i[axis]]]

    return filled(x.shape, x.dtype, element)


def searchsorted(sorted1d: Any, values: Any, *, side: str) -> Any:
    before = operator.lt if side == "left" else operator.le
    values = np.asarray(values)
    return filled(values.shape, np.int64, lambda i: sum(before(a, values[i].item()) for a in sorted1d.tolist()))


def dot_general(x: Any, y: Any, *, contract: Any, batch: Any) -> Any:
    free_x, free_y = ([k for k in range(a.ndim) if k not in contract[s] + batch[s]] for s, a in enumerate((x, y)))
    nb, nx = len(batch[0]), len(free_x)
    shape = [x.shape[k] for k in (*batch[0], *free_x)] + [y.shape[k] for k in free_y]

    def element(i: Ints) -> Any:
        total = x.dtype.type(0).item()
        for k in np.ndindex(*[x.shape[a] for a in contract[0]]):
            at_x = dict(zip((*batch[0], *free_x, *contract[0]), (*i[: nb + nx], *k), strict=True))
            at_y = dict(zip((*batch[1], *free_y, *contract[1]), (*i[:nb], *i[nb + nx :], *k), strict=True))
            product = multiplied(
                x[tuple(at_x[a] for a in range(x.ndim))].item(), y[tuple(at_y[a] for a in range(y.ndim))].item()
            )
            total = added(total, product)
        return stored(total, x.dtype)

    return filled(shape, x.dtype, element)


def iota(*, shape: Ints, dtype: Any, axis: int, place: Any = None) -> Any:
    return filled(shape, dtype, lambda i: stored(i[axis], dtype))


ORACLES: dict[Any, Callable[..., Any]] = {
    c.broadcast_in_dim: broadcast_in_dim, c.reshape: reshape, c.transpose: transpose, c.pad: pad,
    c.concatenate: concatenate, c.reverse: reverse, c.slice_: slice_, c.update_slice: update_slice,
    c.gather: gather, c.scatter: scatter, c.dynamic_slice: dynamic_slice, c.dynamic_update_slice: dynamic_update_slice,
    c.reduce_sum: reduction(added, 0), c.reduce_prod: reduction(multiplied, 1),
    c.reduce_max: reduction(larger), c.reduce_min: reduction(smaller),
    c.reduce_all: reduction(multiplied, 1), c.reduce_any: reduction(added, 0),
    c.argmax: locating(operator.gt), c.argmin: locating(operator.lt),
    c.cumsum: scanning(added), c.cumprod: scanning(multiplied), c.cummax: scanning(larger), c.cummin: scanning(smaller),
    c.cumlogsumexp: scanning(log_add_exp),
    c.sort: sort, c.argsort: argsort, c.searchsorted: searchsorted,
    c.dot_general: dot_general, c.iota: iota, c.transfer: lambda x, *, place: x,
    c.dim_value: lambda *, size, place=None: np.int64(size), c.define_size: lambda k, *, size: np.int64(k),
}  # fmt: skip
