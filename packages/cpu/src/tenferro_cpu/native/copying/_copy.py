"""`copy_into` and `contiguous`: copies between layouts by C kernels where NumPy's own loops are slow."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from math import prod
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tenferro_cpu.native._extension import compiled
from tenferro_cpu.native._host import last_level_cache
from tenferro_cpu.native.copying import tuning
from tenferro_cpu.native.memory._pool import POOLED_MIN_BYTES, serving
from tenferro_tensor_core.forks import importing, new_lock

if TYPE_CHECKING:
    from tenferro_cpu.native.copying._copy_plan import CopyStep

Array = np.ndarray[Any, Any]
Copy = Callable[[Array, Array], Array]

cache_bytes = cache(last_level_cache)


def available() -> bool:
    """Whether copies are planned; otherwise all are NumPy's."""
    return compiled is not None


class CopyPlans:
    """Copies by layout, created on first use; bounded by entries and by bytes, thread-safe."""

    def __init__(self, entries: int = tuning.MAX_PLANS, nbytes: int = tuning.MAX_PLAN_BYTES) -> None:
        self._entries, self._most = entries, nbytes
        self._table: dict[Any, tuple[Copy, int]] = {}
        self._nbytes = 0
        self._lock = new_lock()

    def find(
        self, shape: tuple[int, ...], source: tuple[int, ...], target: tuple[int, ...], item: int, part: bool = False
    ) -> Copy:
        """``copy(target, source)`` for arrays of these layouts (strides in bytes), which may be parts of large ones."""
        key = (shape, source, target, item, part)
        found = self._table.get(key)
        if found is None:
            found = _made(shape, source, target, item, part)
            with self._lock:
                if len(self._table) >= self._entries or self._nbytes + found[1] > self._most:
                    self._table.clear()
                    self._nbytes = 0
                self._table[key] = found
                self._nbytes += found[1]
        return found[0]

    def stats(self) -> dict[str, int]:
        """Current number of entries, and bytes of tables."""
        return {"size": len(self._table), "bound": self._entries, "nbytes": self._nbytes}

    def clear(self) -> None:
        """Drop all plans; they are recreated when needed."""
        with self._lock:
            self._table.clear()
            self._nbytes = 0


COPIES: Final = CopyPlans()
"""The plans of the process."""


def _made(
    shape: tuple[int, ...], source: tuple[int, ...], target: tuple[int, ...], item: int, part: bool
) -> tuple[Copy, int]:
    with importing():
        from tenferro_cpu.native.copying._copy_plan import plan
    steps = None if compiled is None else plan(shape, source, target, item, compiled.VECTOR_BYTES)
    if steps is None:
        return _by_numpy, 0
    streams = part or tuning.STREAM_CACHE_DIVISOR * prod(shape) * item > cache_bytes()
    copies = [built(step, streams) for step in steps]
    nbytes = sum(len(table) for step in steps for table in step.tables)
    if len(copies) == 1:
        return copies[0], nbytes

    def copy(to: Array, of: Array) -> Array:
        for one in copies:
            one(to, of)
        return to

    return copy, nbytes


def _by_numpy(to: Array, of: Array) -> Array:
    np.copyto(to, of)
    return to


def built(step: CopyStep, streams: bool, vector: int | None = None) -> Copy:
    """A step as a C object, for vectors of the given bytes; stores bypass the caches if `streams` and possible."""
    assert compiled is not None
    rows, columns = step.tiles
    share = tuning.TILE_BLOCKS // tuning.CACHED_TILE_BLOCKS if step.aligned and not streams else 1
    return compiled.Copy(
        kind=step.kind[0],
        item=step.item,
        vector_bytes=compiled.VECTOR_BYTES if vector is None else vector,
        parts=step.blocks,
        tables=step.tables,
        repeat=(step.repeat.n, step.repeat.source, step.repeat.target),
        counts=(step.outer.count, step.rows.count, step.columns.count),
        steps=step.groups,
        tiles=step.tiles,
        near_tiles=(rows // share, columns // share),
        cut=(step.cut.loop, step.cut.chunks, step.cut.length, step.cut.source, step.cut.target),
        nbytes=step.nbytes,
        run=step.run,
        streams=streams and step.aligned,
        unlocked=tuning.UNLOCKED_MIN_BYTES,
    )


def _carried(target: Array, source: Array, part: bool = False) -> Array:
    """Copy as planned; more than `tuning.BYTES_AT_ONCE` bytes in parts."""
    if source.nbytes <= tuning.BYTES_AT_ONCE:
        return COPIES.find(source.shape, source.strides, target.strides, source.itemsize, part)(target, source)
    part = part or tuning.STREAM_CACHE_DIVISOR * source.nbytes > cache_bytes()
    axis = max(range(source.ndim), key=lambda k: _merit(k, target, source))
    extent = source.shape[axis]
    length = max(1, extent * tuning.BYTES_AT_ONCE // source.nbytes)
    length -= length % tuning.CUT_MULTIPLE if length > tuning.CUT_MULTIPLE else 0
    for start in range(0, extent, length):
        at = (*[slice(None)] * axis, slice(start, start + length))
        _carried(target[at], source[at], part)
    return target


def _merit(axis: int, target: Array, source: Array) -> tuple[int, int]:
    """How suitable an axis is for cutting: parts should not share cache lines and pages, and the target should be in
    order.
    """
    steps = abs(target.strides[axis]), abs(source.strides[axis])
    return (min(tuning.PAGE_BYTES, min(steps) * source.shape[axis]), steps[0]) if source.shape[axis] > 1 else (-1, 0)


def copy_into(target: Array, source: Array) -> Array:
    """Assign ``target[...] = source`` for arrays of one shape and dtype; returns `target`.

    Overlapping and small arrays are left to NumPy.

    >>> x = np.arange(60000.0).reshape(20, 30, 100)
    >>> out = np.empty((100, 20, 30))
    >>> bool((copy_into(out, x.transpose(2, 0, 1)) == x.transpose(2, 0, 1)).all())
    True
    """
    if (
        target.nbytes < tuning.COPY_MIN_BYTES
        or target.shape != source.shape
        or target.dtype != source.dtype
        or not target.flags.writeable
        or not (target.flags.aligned and source.flags.aligned)
        or target.dtype.hasobject
        or np.may_share_memory(target, source)
    ):
        np.copyto(target, source)
        return target
    return _carried(target, source)


def copy_in_order(target: Array, source: Array) -> None:
    """Assign ``target[...] = source`` for arrays in one order, where NumPy's own loop is fast; in parts."""
    length = max(1, len(source) * tuning.BYTES_AT_ONCE // max(1, source.nbytes))
    for start in range(0, len(source), length):
        target[start : start + length] = source[start : start + length]


def contiguous(x: Array) -> Array:
    """`x` itself if it is C-contiguous, otherwise a C-contiguous copy from the memory pool.

    >>> contiguous(np.eye(300)[:, ::-1]).flags.c_contiguous
    True
    """
    if x.nbytes < tuning.COPY_MIN_BYTES or x.flags.c_contiguous or not x.flags.aligned or x.dtype.hasobject:
        return np.ascontiguousarray(x)
    have = serving() if x.nbytes >= POOLED_MIN_BYTES else None
    out = np.empty(x.shape, x.dtype) if have is None else have.empty(x.shape, x.dtype)
    # New memory overlaps nothing, and its layout is known: skip the checks of `copy_into`.
    return _carried(out, x)
