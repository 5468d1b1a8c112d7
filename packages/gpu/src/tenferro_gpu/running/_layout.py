"""Iteration spaces and their operands: the fewest axes that the strides allow, and the strides of each operand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tenferro_tensor.device_model import Access

Ints = tuple[int, ...]


class IterationSpace(NamedTuple):
    """An iteration space and its operands.

    Attributes:
        kept: extents of its axes, for a reduction of the kept ones.
        reduced: extents of the reduced axes.
        strides: strides of each operand, in elements, over kept and reduced axes.
    """

    kept: Ints
    reduced: Ints
    strides: tuple[Ints, ...]


def laid(extents: Sequence[int], strides: Sequence[Sequence[int]], reduced: Sequence[int] = ()) -> IterationSpace:
    """The layout of operands over a space.

    Args:
        extents: extents of the space, none of them 0.
        strides: strides of each operand over all axes, in elements; 0 if it is repeated.
        reduced: the reduced axes.

    Returns:
        The space with merged axes.

    >>> contiguous, row = (3, 1), (0, 1)
    >>> laid((5, 3), (contiguous, contiguous))
    IterationSpace(kept=(15,), reduced=(), strides=((1,), (1,)))
    >>> laid((5, 3), (contiguous, row)).kept, laid((5, 3), (contiguous,), reduced=(1,)).reduced
    ((5, 3), (3,))
    """
    stay = [a for a in range(len(extents)) if a not in reduced]
    kept, first = _merged(extents, strides, stay)
    gone, second = _merged(extents, strides, reduced)
    if reduced:
        gone, second = (gone, second) if gone else ([1], [[1]] * len(strides))
    else:
        kept, first = (kept, first) if kept else ([1], [[1]] * len(strides))
    return IterationSpace(tuple(kept), tuple(gone), tuple([(*a, *b) for a, b in zip(first, second)]))


def access_of(strides: Ints, space: Ints) -> Access:
    """The access that strides over a space imply.

    >>> access_of((3, 1), (5, 3)), access_of((0, 0), (5, 3)), access_of((0, 1), (5, 3))
    (<Access.UNIT: 'unit'>, <Access.FIXED: 'fixed'>, <Access.STRIDED: 'strided'>)
    """
    count = 1
    for own, n in zip(reversed(strides), reversed(space)):
        if n != 1 and own != count:
            return Access.STRIDED if any(s for s, d in zip(strides, space) if d != 1) else Access.FIXED
        count *= n
    return Access.UNIT


def _merged(
    extents: Sequence[int], strides: Sequence[Sequence[int]], axes: Sequence[int]
) -> tuple[list[int], list[list[int]]]:
    """Drop axes of extent 1, and merge adjacent axes that every operand traverses with one stride."""
    kept: list[int] = []
    found: list[list[int]] = [[] for _ in strides]
    for a in axes:
        n = extents[a]
        if n == 1:
            continue
        if kept and all(own[-1] == s[a] * n for own, s in zip(found, strides)):
            kept[-1] *= n
            for own, s in zip(found, strides):
                own[-1] = s[a]
        else:
            kept.append(n)
            for own, s in zip(found, strides):
                own.append(s[a])
    return kept, found
