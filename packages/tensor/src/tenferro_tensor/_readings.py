"""How a view in memory reads its base: as a slice with permuted axes where possible, else element by element.

The steps are needed where a base in memory becomes a value of another kind, such as one that is being differentiated.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from tenferro_tensor._steps import IMAGINARY, REAL, indexed, permuted, shaped
from tenferro_tensor.calls import spec_of_raw

Raw = Any


def _address(raw: Raw) -> int:
    return int(raw.__array_interface__["data"][0])


def _offsets(raw: Raw) -> Any:
    """The address of each element."""
    found = np.full(raw.shape, _address(raw), np.int64)
    for axis, (n, step) in enumerate(zip(raw.shape, raw.strides, strict=True)):
        found += (np.arange(n) * step).reshape((n, *(1,) * (raw.ndim - axis - 1)))
    return found


def _span(raw: Raw) -> tuple[int, int]:
    """The lowest address of an array with elements, and the end of the highest."""
    reach = [(n - 1) * s for n, s in zip(raw.shape, raw.strides, strict=True)]
    start = _address(raw)
    return start + sum(min(0, r) for r in reach), start + sum(max(0, r) for r in reach) + raw.dtype.itemsize


def covering(members: list[Any]) -> Any:
    """The tensor whose memory covers that of all: one of them, or a new one.

    Args:
        members: tensors in one memory.

    Returns:
        The tensor.
    """
    widest = max(members, key=lambda v: (v._data.nbytes, v._data.itemsize))
    raw = widest._data
    spans = [_span(v._data) for v in members if v._data.size]
    if not spans:
        return widest
    low, high = min([a for a, _ in spans]), max([b for _, b in spans])
    if (high - low == raw.nbytes and _span(raw) == (low, high)) or all(_is_inside(v._data, raw) for v in members):
        return widest
    first = next(v._data for v in members if v._data.size and _span(v._data)[0] == low)
    start = first[tuple([slice(None, None, -1 if s < 0 else 1) for s in first.strides])]
    flat = as_strided(start, ((high - low) // raw.dtype.itemsize,), (raw.dtype.itemsize,))
    return widest.__class__.wrap(flat, spec_of_raw(flat))


def _is_inside(raw: Raw, base: Raw) -> bool:
    """Whether each element of an array is one of the base."""
    return raw.dtype == base.dtype and bool(np.isin(_offsets(raw), _offsets(base)).all())


def steps_of(raw: Raw, base: Raw) -> tuple[Any, ...]:
    """The steps from a base to a view of its memory.

    Args:
        raw: raw array of the view.
        base: raw array of the base, which covers it.

    Returns:
        The steps.
    """
    if base.dtype.kind == "c" and raw.dtype.kind != "c":
        inside = (_address(raw) - _span(base)[0]) % base.dtype.itemsize
        return (IMAGINARY if inside else REAL, *steps_of(raw, base.imag if inside else base.real))
    found = _sliced(raw, base)
    return _picked(raw, base) if found is None else found


def _sliced(raw: Raw, base: Raw) -> tuple[Any, ...] | None:
    """The view as a slice of the base whose axes are permuted; ``None`` if it is none."""
    axes = sorted([a for a in range(base.ndim) if base.shape[a] > 1], key=lambda a: -base.strides[a])
    reach = base.dtype.itemsize
    for a in reversed(axes):
        if base.strides[a] < reach:
            return None
        reach = base.strides[a] * base.shape[a]
    if not raw.size:
        return None
    starts, rest = {}, _address(raw) - _address(base)
    for a in axes:
        starts[a], rest = divmod(rest, base.strides[a])
        if not 0 <= starts[a] < base.shape[a]:
            return None
    if rest:
        return None
    key: list[Any] = [starts.get(a, 0) for a in range(base.ndim)]
    order: list[int] = []
    for n, step in zip(raw.shape, raw.strides, strict=True):
        if n == 1:
            continue
        axis = next((a for a in axes if abs(step) >= base.strides[a] and a not in order), None)
        if axis is None or step % base.strides[axis]:
            return None
        by = step // base.strides[axis]
        last = starts[axis] + by * (n - 1)
        if not 0 <= last < base.shape[axis]:
            return None
        stop = last + (1 if by > 0 else -1)
        key[axis] = slice(starts[axis], None if stop < 0 else stop, by)
        order.append(axis)
    steps = [indexed(tuple(key))]
    if order != sorted(order):
        steps.append(permuted(tuple([sorted(order).index(a) for a in order])))
    if len(order) != raw.ndim:
        steps.append(shaped(raw.shape))
    return tuple(steps)


def _picked(raw: Raw, base: Raw) -> tuple[Any, ...]:
    """The view as elements of the flattened base."""
    places = _offsets(base).ravel()
    order = np.argsort(places)
    found = order[np.searchsorted(places[order], _offsets(raw).ravel())]
    return (shaped((base.size,)), indexed(found), shaped(raw.shape))
