"""Direct forms of functions that compare or accumulate elements; see `tenferro_tensor.direct`.

Each takes the arguments of its function. If it returns ``None`` or NumPy raises, the function itself handles the call.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

Raw = Any
_ALL: Final = slice(None)
_UPPER, _LOWER = slice(1, None), slice(None, -1)

COMPARISONS_MAX_SIZE: Final = 4096
"""Maximum number of pairs of elements compared at once."""

SMALL_SET_MAX_SIZE: Final = 8
"""Largest set (in elements) that is searched by comparing with each of its elements."""

TABLE_MAX_RATIO: Final = 6
"""Maximum number of entries per element in a lookup table of integers, as in NumPy."""


def diff(x: Raw, /, n: int = 1, axis: int = -1, *, prepend: Any = None, append: Any = None) -> Raw:
    if n.__class__ is not int or n < 1 or axis.__class__ is not int or not -x.ndim <= axis < x.ndim:
        return None
    joined = [part for part in (prepend, x, append) if part is not None]
    if len(joined) > 1:
        for part in joined:
            if part.dtype != x.dtype or part.ndim != x.ndim:
                return None
        x = np.concatenate(joined, axis)
    upper: Any = _UPPER
    lower: Any = _LOWER
    if x.ndim > 1:
        before = (_ALL,) * (axis % x.ndim)
        upper, lower = (*before, _UPPER), (*before, _LOWER)
    for _ in range(n):
        x = x[upper] != x[lower] if x.dtype.kind == "b" else x[upper] - x[lower]
    return x


def cumulative_sum(x: Raw, /, axis: Any = None, *, dtype: Any = None, include_initial: bool = False) -> Raw:
    return _with_initial(np.add, x, axis, dtype, 0) if include_initial else None


def cumulative_prod(x: Raw, /, axis: Any = None, *, dtype: Any = None, include_initial: bool = False) -> Raw:
    return _with_initial(np.multiply, x, axis, dtype, 1) if include_initial else None


def _with_initial(combine: np.ufunc, x: Raw, axis: Any, dtype: Any, start: int) -> Raw:
    if dtype is not None or x.dtype.kind not in "fc" or not (axis.__class__ is int or (axis is None and x.ndim == 1)):
        return None
    axis = axis or 0
    shape = list(x.shape)
    shape[axis] += 1
    before = (_ALL,) * (axis % x.ndim)
    out = np.empty(shape, x.dtype)
    out[(*before, 0)] = start
    combine.accumulate(x, axis, None, out[(*before, _UPPER)])
    return out


def firsts(s: Raw) -> Raw:
    """A mask of the elements of a sorted vector that differ from the one before; NaNs are distinct."""
    first = np.empty(s.size, bool)
    if s.size:
        first[0] = True
    np.not_equal(s[1:], s[:-1], first[1:])
    return first


def lengths(starts: Raw, n: int) -> Raw:
    """Lengths of the runs, among `n` elements, that begin at `starts`."""
    ends = np.empty_like(starts)
    if starts.size:
        ends[:-1] = starts[1:]
        ends[-1] = n
    return np.subtract(ends, starts, ends)


def inverse_of(x: Raw, order: Raw, first: Raw) -> Raw:
    """The index of each element among the distinct elements; `order` sorts `x`."""
    inverse = np.empty(x.size, np.int64)
    rank = first.cumsum()
    rank -= 1
    inverse[order] = rank
    return inverse.reshape(x.shape)


def all_of(x: Raw, flat: Raw, order: Raw) -> list[Raw]:
    """The results of `unique_all`; `order` sorts the elements stably."""
    first = firsts(flat[order])
    starts = first.nonzero()[0]
    where = order[starts]
    return [flat[where], where, inverse_of(x, order, first), lengths(starts, flat.size)]


def in_order(x: Raw) -> tuple[Raw, Raw]:
    """The sorted elements, and a mask of those that differ from the one before."""
    s = x.flatten()
    s.sort()
    return s, firsts(s)


def as_found(values: Raw, x: Raw) -> Raw:
    """Distinct sorted elements with the zero that comes first in `x`: sorting mixes zeros of both signs."""
    if values.dtype.kind == "f":
        at = values.searchsorted(0.0)
        if at < values.size and values[at] == 0.0:
            values[at] = x.flat[(x == 0.0).argmax()]
    return values


def unique_values(x: Raw, /) -> Raw:
    if x.dtype.kind == "c":  # both parts may be signed zeros
        return None
    s, first = in_order(x)
    return as_found(s[first], x) if x.dtype.kind == "f" else s[first]


def isin(x1: Raw, x2: Raw, /, *, invert: bool = False) -> Raw:
    if x1.dtype != x2.dtype or invert.__class__ is not bool:
        return None
    if x1.size * x2.size <= COMPARISONS_MAX_SIZE:
        among = (x1[..., None] == x2.reshape(-1)).any(-1)
    elif x2.size <= SMALL_SET_MAX_SIZE:
        first, *others = x2.reshape(-1)
        among = x1 == first
        for x in others:
            among |= x1 == x
    elif x1.dtype.kind in "iu":
        least, most = int(x2.min()), int(x2.max())
        if most - least > TABLE_MAX_RATIO * (x1.size + x2.size) or most > 2**62 or least < -(2**62):
            return None
        known = np.zeros(most - least + 1, bool)
        known[np.subtract(x2.reshape(-1), least, dtype=np.int64)] = True
        inside = (x1 >= least) & (x1 <= most)
        among = known.take(np.subtract(x1, least, dtype=np.int64), mode="clip") & inside
    else:
        return None
    return ~among if invert else among
