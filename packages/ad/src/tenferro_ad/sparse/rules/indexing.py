"""Reading and writing at indices: exact if these are known, else all possible positions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from tenferro_ad.sparse.rules.structure import labels
from tenferro_runtime.extension import IndexEntries, IndexForm, IndexMap, SparsityStep, Spec, catalog
from tenferro_tensor_core import DimLike, evaluate

Sizes = dict[str, int]
Values = Callable[[Sizes], Any]
Parts = tuple[tuple[tuple[IndexMap | IndexEntries, ...] | None, ...], ...]


def _gather(step: SparsityStep) -> Parts:
    x, _indices = step.ins
    (out,) = step.outs
    p = step.op.params
    windows = dict(zip([d for d in range(x.ndim) if d not in p["collapsed_dims"]], p["offset_dims"], strict=True))
    if step.values[1] is not None:
        there = _WindowEntries(step.values[1], x, out, windows, p["start_index_map"], tuple(p["slice_sizes"]), True)
        return (((IndexEntries(there),), None),)
    return (((_anywhere(out, x, windows, p["start_index_map"], p["slice_sizes"]),), None),)


def _scatter(step: SparsityStep) -> Parts:
    x, _indices, updates = step.ins
    p = step.op.params
    kept = [d for d in range(x.ndim) if d not in p["inserted_dims"]]
    windows = dict(zip(kept, p["update_window_dims"], strict=True))
    whole: IndexMap | IndexEntries = IndexMap(x.shape, labels(x), labels(x))
    sizes = tuple([updates.shape[windows[d]] if d in windows else 1 for d in range(x.ndim)])
    if step.values[1] is None:
        found = _anywhere(updates, x, windows, p["scatter_dims"], sizes)
        return (((whole,), None, (IndexMap(found.extents, found.operand, found.output),)),)
    there = _WindowEntries(step.values[1], x, updates, windows, p["scatter_dims"], sizes, False)
    if p["mode"] == "set":
        whole = IndexEntries(_Kept(there))
    return (((whole,), None, (IndexEntries(_Turned(there)),)),)


def _anywhere(
    out: Spec, x: Spec, windows: dict[int, int], started: tuple[int, ...], sizes: tuple[DimLike, ...]
) -> IndexMap:
    """Windows of `x` at unknown positions along the axes `started`; `windows` are axes of `out` by axis of `x`."""
    extents, columns = [*out.shape], []
    for d, n in enumerate(x.shape):
        if d in started and sizes[d] != n:
            columns.append(IndexForm(0, ((len(extents), 1),)))
            extents.append(n)
        else:
            columns.append(IndexForm(0, ((windows[d], 1),)) if d in windows else IndexForm(0))
    return IndexMap(tuple(extents), labels(out), tuple(columns))


class _WindowEntries:
    """Flat indices of an array of windows, and of the corresponding elements of `x`.

    Attributes:
        indices: the index vectors.
        x: spec of the indexed array.
        out: the array of windows.
        windows: axis of `out` for each axis of `x` that windows keep.
        started: axes of `x` that index vectors refer to.
        extents: extents of a window.
        clamped: whether a window out of bounds is moved inside, rather than dropped.
    """

    def __init__(
        self,
        indices: Values,
        x: Spec,
        out: Spec,
        windows: dict[int, int],
        started: tuple[int, ...],
        extents: tuple[DimLike, ...],
        clamped: bool,
    ) -> None:
        self.indices, self.x, self.out, self.windows = indices, x, out, windows
        self.started, self.extents, self.clamped = started, extents, clamped

    def __call__(self, sizes: Sizes) -> tuple[Any, Any]:
        index = np.asarray(self.indices(sizes)).astype(np.int64)
        shape, out = (tuple([evaluate(n, sizes) for n in s.shape]) for s in (self.x, self.out))
        extents = [evaluate(n, sizes) for n in self.extents]
        batch = [a for a in range(len(out)) if a not in self.windows.values()]
        flat = np.zeros((1,) * len(out), np.int64)
        inside = np.ones((1,) * len(out), np.bool_)
        for d, n in enumerate(shape):
            along = np.zeros((1,) * len(out), np.int64)
            if d in self.started:
                start = index[..., self.started.index(d)]
                last = n - extents[d]
                if self.clamped:
                    start = np.clip(start, 0, last)
                spread = [1] * len(out)
                for a, m in zip(batch, start.shape, strict=True):
                    spread[a] = m
                along = start.reshape(spread)
                inside = inside & (along >= 0) & (along <= last)
            if d in self.windows:
                axis = [1] * len(out)
                axis[self.windows[d]] = extents[d]
                along = along + np.arange(extents[d]).reshape(axis)
            flat = flat * n + along
        positions = np.broadcast_to(flat, out).reshape(-1)
        rows = np.arange(positions.size)
        chosen = np.broadcast_to(inside, out).reshape(-1)
        return (rows, positions) if chosen.all() else (rows[chosen], positions[chosen])


class _Turned:
    """The transposed pairs of indices."""

    def __init__(self, there: _WindowEntries) -> None:
        self.there = there

    def __call__(self, sizes: Sizes) -> tuple[Any, Any]:
        return self.there(sizes)[::-1]


class _Kept:
    """The elements that no window overwrites."""

    def __init__(self, there: _WindowEntries) -> None:
        self.there = there

    def __call__(self, sizes: Sizes) -> tuple[Any, Any]:
        kept = np.ones(evaluate(self.there.x.size, sizes), np.bool_)
        kept[self.there(sizes)[1]] = False
        left = np.flatnonzero(kept)
        return left, left


def _dynamic_slice(step: SparsityStep) -> Parts:
    x, (out,) = step.ins[0], step.outs
    block = _block(step, x, out, step.values[1:])
    return (((block,), *[None] * x.ndim),)


def _dynamic_update_slice(step: SparsityStep) -> Parts:
    x, update = step.ins[:2]
    block = _block(step, x, update, step.values[2:])
    turned = (
        IndexEntries(_Turned(block.compute))  # type: ignore[arg-type]
        if isinstance(block, IndexEntries)
        else IndexMap(block.extents, block.operand, block.output)
    )
    whole = IndexMap(x.shape, labels(x), labels(x))
    return (((whole,), (turned,), *[None] * x.ndim),)


def _block(step: SparsityStep, x: Spec, block: Spec, starts: tuple[Values | None, ...]) -> IndexMap | IndexEntries:
    """A block of `x` at known or unknown start indices."""
    if x.ndim and all(s is not None for s in starts):
        windows = {d: d for d in range(x.ndim)}
        values: tuple[Any, ...] = starts

        def indices(sizes: Sizes) -> Any:
            return np.asarray([int(np.asarray(start(sizes))) for start in values])

        return IndexEntries(_WindowEntries(indices, x, block, windows, tuple(windows), tuple(block.shape), True))
    extents, columns = [*block.shape], []
    for d, (n, m) in enumerate(zip(x.shape, block.shape, strict=True)):
        if m == n:
            columns.append(IndexForm(0, ((d, 1),)))
        else:
            columns.append(IndexForm(0, ((d, 1), (len(extents), 1))))
            extents.append(n - m + 1)
    return IndexMap(tuple(extents), labels(block), tuple(columns))


RULES: Final = {
    catalog.gather: _gather,
    catalog.scatter: _scatter,
    catalog.dynamic_slice: _dynamic_slice,
    catalog.dynamic_update_slice: _dynamic_update_slice,
}
