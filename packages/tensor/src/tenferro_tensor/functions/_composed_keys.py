"""One key for the elements of a view of a view: ``x[outer][inner]`` is ``x[composed]``.

A write through nested views then writes the elements themselves, in place of the whole view that they are a part of.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from tenferro_tensor.functions._keys import Entry, Gap, Pick, Range, Start, resolve
from tenferro_tensor.operands import converted
from tenferro_tensor_core import DimLike, int64

__all__ = ["BASIC", "composed", "is_basic"]


def composed(shape: Sequence[DimLike], keys: Sequence[Any]) -> tuple[Any, ...] | None:
    """The key of a base for a chain of keys.

    Args:
        shape: shape of the base.
        keys: the keys: of the base, of its view, of the view of that and so on.

    Returns:
        A key with one part for each axis of the base; ``None`` if some part is none of an integer, a slice and a run
        of elements from a start that is known to lie inside.
    """
    parts: list[Entry] = [Range(axis, 0, n, 1) for axis, n in enumerate(shape)]
    written: list[Any] = [slice(None)] * len(parts)
    for key in keys:
        kept = [i for i, part in enumerate(parts) if not _is_dropped(part)]
        asked = _parts(key, len(kept)) if is_basic(key) else None
        if asked is None:
            return None
        inner = [e for e in resolve(tuple([_length(parts[i]) for i in kept]), key).entries if not isinstance(e, Gap)]
        for i, e, given in zip(kept, inner, asked, strict=True):
            part = _inside(parts[i], e)
            if part is None:
                return None
            if not _is_whole(given):  # a part as it was written keeps the formulas of its sizes
                written[i] = given if _is_whole(written[i]) else _written(part)
                parts[i] = part
    return tuple(written)


BASIC: Final = frozenset({int, slice, type(None), type(Ellipsis)})
"""Classes of parts of keys that give views; single integers have others, too."""


def is_basic(key: Any) -> bool:
    """Whether a key consists of single integers, slices, new axes and an ellipsis.

    Args:
        key: the key.

    Returns:
        True if its elements are a view.
    """
    parts = key if key.__class__ is tuple else (key,)
    return all(part.__class__ in BASIC or _is_single(part) for part in parts)


def _is_single(part: Any) -> bool:
    """Whether a part of a key is a single integer that is neither a mask nor one of several."""
    if isinstance(part, (list, tuple, range, np.ndarray, bool, np.bool_)):
        return False
    return not hasattr(part, "spec") or (not part.spec.ndim and part.spec.dtype.kind != "b")


_WHOLE: Final = slice(None)


def _is_whole(part: Any) -> bool:
    return part.__class__ is slice and part.start is part.stop is part.step is None


def _parts(key: Any, ndim: int) -> tuple[Any, ...] | None:
    """A key with one part for each axis; ``None`` if it has other parts."""
    parts = key if key.__class__ is tuple else (key,)
    if any(part is None for part in parts):
        return None
    dots = next((i for i, part in enumerate(parts) if part is Ellipsis), len(parts))
    after = parts[dots + 1 :]
    return (*parts[:dots], *[_WHOLE] * (ndim - dots - len(after)), *after)


def _is_dropped(part: Entry) -> bool:
    return isinstance(part, Pick) or (isinstance(part, Start) and part.dropped)


def _length(part: Entry) -> DimLike:
    assert isinstance(part, Range | Start), "other parts have no axis"
    return part.length


def _inside(outer: Entry, inner: Entry) -> Entry | None:
    """The elements of one part that another part of its axis addresses."""
    if isinstance(outer, Range):
        first, step = outer.start, outer.step
        if isinstance(inner, Pick):
            return Pick(outer.axis, first + inner.at * step)
        if isinstance(inner, Range):
            return Range(outer.axis, first + inner.start * step, inner.length, step * inner.step)
        if isinstance(inner, Start) and step == 1 and _is_known_inside(inner, outer.length):
            return Start(outer.axis, _shifted(inner.at, first), inner.length, inner.dropped)
        return None
    if isinstance(outer, Start) and isinstance(inner, Pick):
        return Start(outer.axis, _shifted(outer.at, inner.at), 1, True)
    if isinstance(outer, Start) and isinstance(inner, Range) and inner.step == 1:
        return Start(outer.axis, _shifted(outer.at, inner.start), inner.length, False)
    return None


def _shifted(at: Any, by: DimLike) -> Any:
    """A start further on, in a dtype that holds it."""
    return at if by.__class__ is int and by == 0 else converted(at, int64) + by


def _is_known_inside(run: Start, n: DimLike) -> bool:
    return bool(run.at._interval().within(0, n - run.length))


def _written(part: Entry) -> Any:
    """A part as users write it."""
    if isinstance(part, Pick):
        return part.at
    if isinstance(part, Start):
        return part.at if part.dropped else slice(part.at, part.at + part.length)
    assert isinstance(part, Range), "the others are not composed"
    stop = part.start + part.length * part.step
    return slice(part.start, None if part.step < 0 and stop.__class__ is int and stop < 0 else stop, part.step)
