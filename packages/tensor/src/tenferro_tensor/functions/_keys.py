"""Parsed index keys: one entry for each axis of the operand or of the result, in order.

Integers and slices are resolved against the extents; masks become the positions of their true elements.
"""

from __future__ import annotations

import math
import operator
from contextlib import suppress
from typing import Any, Final, NamedTuple

import numpy as np

from tenferro_tensor.functions.searching import nonzero
from tenferro_tensor.operands import host_elements, known_integer, linear_form, value
from tenferro_tensor_core import (
    ArgumentError,
    AxisError,
    Dim,
    DimLike,
    InconclusiveDimError,
    TracingError,
    as_size,
    ask,
    decide,
    dim_max,
    dim_min,
    expect,
    floordiv,
)


class Range(NamedTuple):
    """The `length` elements ``start, start + step, ...`` along an axis."""

    axis: int
    start: DimLike
    length: DimLike
    step: int


class Pick(NamedTuple):
    """One index, which drops the axis."""

    axis: int
    at: DimLike


class Choose(NamedTuple):
    """An integer array of indices along an axis: a host array with its negative indices resolved, or a value."""

    axis: int
    indices: Any


class Start(NamedTuple):
    """A run of `length` neighbours whose start is a 0-d value known only at run time.

    For an index, the run is one element, and the axis is dropped.
    """

    axis: int
    at: Any
    length: DimLike
    dropped: bool


class New(NamedTuple):
    """A new axis of extent 1."""


class Gap(NamedTuple):
    """An ellipsis that stands for no axis; it still separates the index arrays on its sides."""


Entry = Range | Pick | Choose | Start | New | Gap
_MASK_ADVICE: Final = (
    "select elements by where(mask, x, fill), or make a result of symbolic extent with compress(x, mask)"
)


class Key(NamedTuple):
    """A resolved key: entries in order, and the operand's shape with axes inserted for 0-d masks."""

    entries: tuple[Entry, ...]
    shape: tuple[DimLike, ...]

    @property
    def lengths(self) -> tuple[DimLike, ...]:
        """Extents of the axes that slices and runs keep."""
        return tuple(
            [e.length for e in self.entries if isinstance(e, Range) or (isinstance(e, Start) and not e.dropped)]
        )


def resolve(shape: tuple[DimLike, ...], key: Any) -> Key:
    """Resolve an index key against a shape.

    Raises:
        AxisError: an index is out of bounds, or there are more indices than axes.
    """
    items = [_item(i) for i in (key if isinstance(key, tuple) else (key,))]
    consumed = sum(_axes_taken(i) for i in items)
    dots = sum(i is Ellipsis for i in items)
    if dots > 1:
        raise AxisError(f"an index holds at most one ellipsis, got {dots}; write the other slices out", key=repr(key))
    if consumed > len(shape):
        raise AxisError(
            f"{consumed} indices for an array with {len(shape)} axes; give at most one for each axis",
            indices=consumed,
            ndim=len(shape),
        )
    if not dots:
        items.append(Ellipsis)
    extents, entries = list(shape), list[Entry]()
    axis = 0
    for item in items:
        if item is None:
            entries.append(New())
        elif item is Ellipsis:
            rest = len(shape) - consumed
            entries.extend([Range(axis + i, 0, extents[axis + i], 1) for i in range(rest)] or [Gap()])
            axis += rest
        elif isinstance(item, slice):
            entries.append(_range(axis, item, extents[axis]))
            axis += 1
        elif isinstance(item, (int, Dim)):
            entries.append(Pick(axis, _pick(axis, item, extents[axis])))
            axis += 1
        elif _is_mask(item):
            if not item.ndim:
                extents.insert(axis, 1)
            for found in _true_positions(item, tuple(extents[axis : axis + max(item.ndim, 1)]), axis):
                entries.append(Choose(axis, found))
                axis += 1
        else:
            entries.append(_chosen(item, axis, extents[axis]))
            axis += 1
    if not dots and isinstance(entries[-1], Gap):
        entries.pop()
    if any(isinstance(e, Choose) for e in entries):  # next to index arrays, a single index counts as one
        entries = [Choose(e.axis, e.at) if isinstance(e, Start) and e.dropped else e for e in entries]
    return Key(tuple(entries), tuple(extents))


def _is_mask(item: Any) -> bool:
    return bool(item.dtype.kind == "b")


def _axes_taken(item: Any) -> int:
    if item is None or item is Ellipsis:
        return 0
    if isinstance(item, (slice, int, Dim)):
        return 1
    return item.ndim if _is_mask(item) else 1


def _item(item: Any) -> Any:
    """Normalise an item to None, Ellipsis, slice, int, Dim, a mask or an integer array (host array or value)."""
    item = as_size(item)
    if item is None or item is Ellipsis or isinstance(item, (slice, Dim)) or item.__class__ is int:
        return item
    if isinstance(item, (bool, np.bool_)):
        return np.asarray(item)
    if isinstance(item, (list, tuple, range)):
        item = np.asarray(item) if len(item) else np.zeros(0, np.int64)
    if not hasattr(item, "spec") and not isinstance(item, (np.ndarray, np.generic)):
        try:
            return operator.index(item)
        except TypeError:
            raise AxisError(
                f"an index is an integer, a slice, an ellipsis, None, or an array of integers or "
                f"booleans, not {item!r}",
                given=repr(item),
            ) from None
    if item.dtype.kind not in "iub":
        raise AxisError(
            f"arrays used as indices hold integers or booleans, not {item.dtype.name}; convert with astype(int64), or "
            "compare to get a mask",
            dtype=item.dtype.name,
        )
    if not hasattr(item, "spec") and not item.ndim and item.dtype.kind != "b":
        return int(item)
    return item


def _pick(axis: int, i: DimLike, n: DimLike) -> DimLike:
    if not _inside(i, n):
        raise AxisError(_outside(i, axis, n), index=i, axis=axis, extent=n)
    return i if ask(i, ">=", 0) else n + i


def _inside(i: DimLike, n: DimLike) -> bool:
    return ask(i, "<", n) if ask(i, ">=", 0) else ask(-i, "<=", n)


def _outside(i: Any, axis: int, n: Any) -> str:
    seen = f"indices go from {-n} to {n - 1}" if not isinstance(n, int) or n else "it has no elements"
    return f"index {i} is out of bounds for axis {axis} with extent {n}; {seen}"


def _range(axis: int, s: slice, n: DimLike) -> Range | Start:
    s = slice(*[known_integer(p) for p in (s.start, s.stop, s.step)])
    if hasattr(s.start, "spec") or hasattr(s.stop, "spec"):
        return _window(axis, s)
    step = 1 if s.step is None else _slice_part(s.step, s, axis)
    if step == 0:
        raise ArgumentError(f"a slice needs a step other than 0, got {s} for axis {axis}", axis=axis)
    start, stop = [
        p if p is None or isinstance(p, Dim) else _slice_part(p, s, axis) for p in map(as_size, (s.start, s.stop))
    ]
    s = slice(start, stop, step)
    if isinstance(n, int) and not isinstance(s.start, Dim) and not isinstance(s.stop, Dim):
        start, stop, step = s.indices(n)
        count = len(range(start, stop, step))
        return Range(axis, start if count else 0, count, step)
    if step > 0:
        first = _bound(s.start, n, 0, n, 0)
        # The length uses the unclipped start and negative stop, so that x[1:] and x[:-1] have equal extents.
        start = 0 if s.start is None else s.start
        begin = start if ask(start, ">=", 0) else first
        end = n + s.stop if s.stop is not None and ask(s.stop, "<", 0) else _bound(s.stop, n, n, n, 0)
        return Range(axis, first, floordiv(dim_max(end - begin, 0) + (step - 1), step), step)
    first = _bound(s.start, n, n - 1, n - 1, -1)
    last = _bound(s.stop, n, -1, n - 1, -1)
    return Range(axis, first, floordiv(dim_max(first - last, 0) + (-step - 1), -step), step)


def _window(axis: int, s: slice) -> Start:
    """A slice between traced bounds whose distance is known, as in ``x[i : i + 3]``.

    Raises:
        TracingError: the distance is not known, so neither is the extent of the result.
    """
    length = None
    if s.start is not None and s.stop is not None and s.step in (None, 1):
        first, last = linear_form(s.start), linear_form(s.stop)
        length = None if first is None or last is None else last.minus(first)
    if length is None:
        raise TracingError(
            f"the slice {_shown(s)} for axis {axis} has a traced bound, so the extent of the result is not known; "
            "write x[i : i + k] with one traced i and a k that is an integer or a size, use dynamic_slice(x, starts, "
            "sizes), truncate(x, k) for the first k elements, or where() with a mask",
            axis=axis,
        )
    start = s.start if hasattr(s.start, "spec") else value(s.start)
    return Start(axis, start, length if ask(length, ">=", 0) else 0, False)


def _shown(s: slice) -> str:
    parts = ["" if p is None else repr(p.spec) if hasattr(p, "spec") else str(p) for p in (s.start, s.stop)]
    return " : ".join([*parts, *([str(s.step)] if s.step is not None else [])])


def _slice_part(part: Any, s: slice, axis: int) -> int:
    try:
        return operator.index(part)
    except TracingError:
        raise
    except TypeError:
        raise AxisError(
            f"the parts of a slice are integers or None, but {part!r} is in {s} for axis {axis}; convert it with int()",
            axis=axis,
            given=repr(part),
        ) from None


def _bound(given: Any, n: DimLike, default: DimLike, most: DimLike, least: int) -> DimLike:
    """A slice bound of a symbolic axis, clipped to the axis."""
    if given is None:
        return default
    return dim_min(given, most) if ask(given, ">=", 0) else dim_max(n + given, least)


def _chosen(item: Any, axis: int, n: DimLike) -> Choose | Pick | Start:
    """The entry of an integer array or of a single integer."""
    if item.ndim:
        return Choose(axis, _checked(item, axis, n))
    known = known_integer(item)
    if not hasattr(known, "spec"):
        return Pick(axis, _pick(axis, int(known), n))
    _require_elements(axis, n, ())
    return Start(axis, item, 1, True)


def _require_elements(axis: int, n: DimLike, shape: tuple[DimLike, ...]) -> None:
    """Check that an axis has elements if any is read at unknown indices of a shape: ``count * n >= count``."""
    count = math.prod(shape)
    if not any(decide(n, ">=", m) for m in shape) and not expect(n * count, ">=", count):
        raise AxisError(_outside("i", axis, n), axis=axis, extent=n)


def _checked(item: Any, axis: int, n: DimLike) -> Any:
    """Check known integer indices and count them from 0; unknown ones are returned unchanged."""
    host = host_elements(item)
    if host is None:
        shape = item.spec.shape if hasattr(item, "spec") else item.shape
        _require_elements(axis, n, shape)
        return item if hasattr(item, "spec") else value(item)
    host = host.astype(np.int64, copy=False)
    for worst in (int(host.min()), int(host.max())) if host.size else ():
        with suppress(InconclusiveDimError):  # a data-dependent extent is known only at run time
            if not _inside(worst, n):
                raise AxisError(_outside(worst, axis, n), index=worst, axis=axis, extent=n)
    if isinstance(n, int):
        return np.where(host < 0, host + n, host)
    return item if hasattr(item, "spec") else value(item)


def _true_positions(mask: Any, extents: tuple[DimLike, ...], axis: int) -> tuple[Any, ...]:
    for i, (have, want) in enumerate(zip(mask.shape, extents, strict=False)):
        # A mask extent of 0 fits every axis and selects nothing, as in NumPy and the array API standard.
        if not ask(have, "==", want) and not ask(have, "==", 0):
            raise AxisError(
                f"a mask of shape {tuple(mask.shape)} does not fit: its axis {i} has extent {have}, "
                f"but axis {axis + i} of the array has extent {want}; broadcast the mask first",
                axis=axis + i,
                shape=tuple(mask.shape),
            )
    if not mask.ndim:
        return (np.zeros(int(bool(mask)), np.int64),)
    if any(n.__class__ is int and n == 0 for n in mask.shape):
        return tuple([np.zeros(0, np.int64) for _ in mask.shape])
    host = host_elements(mask)
    if host is not None:
        return host.nonzero()
    try:
        return nonzero(mask)
    except TracingError as cause:
        raise TracingError(
            f"indexing with a mask has a result whose size depends on the elements of the mask, which are not known "
            f"while tracing; {_MASK_ADVICE}"
        ) from cause
