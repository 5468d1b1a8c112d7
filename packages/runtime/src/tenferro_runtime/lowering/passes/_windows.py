"""Nests that write one window of an array, and nests that copy the rest of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Final

from tenferro_tensor.loop_ir import Affine, Buffer, For, Load, Order, Reg, Statement, Store
from tenferro_tensor_core import DimLike

MAX_BORDER: Final = 4
"""Largest number of elements outside a window along an axis for it to count as nearly the whole array."""


@dataclass(frozen=True, slots=True)
class Window:
    """A part of a row-major array.

    Attributes:
        shape: shape of the array.
        starts: first index along each axis.
        extents: extents of the window.
    """

    shape: tuple[DimLike, ...]
    starts: tuple[int, ...]
    extents: tuple[DimLike, ...]


def stores_to(s: Statement, buffer: Buffer, loops: Sequence[For] = ()) -> tuple[tuple[For, ...], Store] | None:
    """The only store to a buffer in a nest of independent loops, with the loops around it."""
    if not isinstance(s, For) or s.order is not Order.ANY:
        return None
    loops = (*loops, s)
    for t in s.body:
        if isinstance(t, Store) and t.buffer.number == buffer.number:
            return tuple(loops), t
        found = stores_to(t, buffer, loops)
        if found is not None:
            return found
    return None


def copy_nest(s: Statement) -> tuple[tuple[For, ...], Load, Store] | None:
    """The loops of a nest that only copies elements, with its load and its store."""
    loops = []
    while isinstance(s, For) and s.order is Order.ANY:
        loops.append(s)
        if len(s.body) == 2:
            load, store = s.body
            if isinstance(load, Load) and isinstance(store, Store) and store.value == load.result:
                return tuple(loops), load, store
        if len(s.body) != 1:
            return None
        s = s.body[0]
    return None


def strides_of(shape: Sequence[DimLike]) -> list[DimLike]:
    """Strides of a row-major array."""
    found: list[DimLike] = []
    step: DimLike = 1
    for n in reversed(shape):
        found.append(step)
        step = step * n
    return found[::-1]


def window_of(buffer: Buffer, loops: Sequence[For], at: Affine) -> Window | None:
    """The window of a buffer at which loops store, if it is nearly the whole buffer."""
    axes = [k for k, n in enumerate(buffer.shape) if not (n.__class__ is int and n == 1)]
    shape = tuple([buffer.shape[k] for k in axes])
    strides = strides_of(shape)
    if len(loops) != len(shape) or len(at.terms) != len(shape) or len(set(strides)) < len(strides):
        return None
    by = {at.coefficient(loop.index): loop.extent for loop in loops}
    if set(by) != set(strides):
        return None
    extents = [by[step] for step in strides]
    margins = [n - e for n, e in zip(shape, extents, strict=True)]
    whole = [m for m in margins if isinstance(m, int) and 0 <= m <= MAX_BORDER]
    if len(whole) < len(margins) or any(isinstance(n, int) and n < 4 * m for n, m in zip(shape, whole, strict=True)):
        return None
    for starts in product(*[range(m + 1) for m in whole]):
        first: DimLike = 0
        for start, step in zip(starts, strides, strict=True):
            first = first + start * step
        if first == at.constant:
            return Window(shape, starts, tuple(extents))
    return None


def copied_borders(source: Buffer, target: Buffer, window: Window, index: Callable[[], Reg]) -> list[Statement]:
    """Nests that copy an array except for a window."""
    found: list[Statement] = []
    strides, start = strides_of(window.shape), Affine()
    for k, (n, w, e) in enumerate(zip(window.shape, window.starts, window.extents, strict=True)):
        for first, count in ((0, w), (w + e, n - e - w)):
            if not (isinstance(count, int) and count == 0):
                place = start + Affine(strides[k] * first)
                found.append(_slab(source, target, window, strides, (k, place, count * strides[k]), index))
        start = start + Affine(w * strides[k])
    return found


def _slab(
    source: Buffer, target: Buffer, window: Window, strides: Sequence[DimLike],
    slab: tuple[int, Affine, DimLike], index: Callable[[], Reg],
) -> Statement:  # fmt: skip
    """Copy a contiguous run of elements, for each index of the window along the preceding axes."""
    axes, at, count = slab
    loops: list[tuple[Reg, DimLike]] = []
    for k in range(axes):
        loops.append((index(), window.extents[k]))
        at = at + Affine.of(loops[-1][0]) * strides[k]
    if not (isinstance(count, int) and count == 1):
        loops.append((index(), count))
        at = at + loops[-1][0]
    number = Reg(index().number, source.dtype)
    body: tuple[Statement, ...] = (Load(number, source, at), Store(target, at, number))
    for reg, extent in reversed(loops):
        body = (For(reg, extent, body, order=Order.ANY),)
    return For(index(), 1, body, order=Order.ANY) if len(body) > 1 else body[0]
