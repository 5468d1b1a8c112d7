"""Axes of one step: how far each operand moves along them, in bytes, and tables of offsets over groups of them."""

from collections.abc import Iterable, Sequence
from functools import reduce
from math import prod
from typing import Any, NamedTuple

import numpy as np

Table = np.ndarray[Any, np.dtype[np.int64]]


class Axis(NamedTuple):
    """An extent, and the strides of left operand, right operand and result; 0 where one does not have the axis."""

    n: int
    a: int
    b: int
    c: int

    def swapped(self) -> "Axis":
        """The same with the operands exchanged."""
        return Axis(self.n, self.b, self.a, self.c)


def size(axes: Iterable[Axis]) -> int:
    """Elements of the space of some axes."""
    return prod([axis.n for axis in axes])


def merged(axes: Iterable[Axis]) -> list[Axis]:
    """The axes without those of extent 1, and with those made one that every operand runs through as one.

    Sorted by the strides of the result, the largest first; summed axes by those of the left operand, then the right.

    >>> merged([Axis(3, 8, 0, 8), Axis(1, 8, 8, 8), Axis(2, 24, 0, 24)])
    [Axis(n=6, a=8, b=0, c=8)]
    """
    found: list[Axis] = []
    for axis in sorted([x for x in axes if x.n != 1], key=lambda x: (-abs(x.c), -abs(x.a), -abs(x.b))):
        last = found[-1] if found else None
        if last is not None and all(o == axis.n * i for o, i in zip(last[1:], axis[1:], strict=True)):
            found[-1] = Axis(last.n * axis.n, *axis[1:])
        else:
            found.append(axis)
    return found


def offsets(pairs: Sequence[tuple[int, int]]) -> Table:
    """Byte offsets over axes given by extent and stride, the last axis the fastest.

    >>> offsets([(2, 100), (3, 8)]).tolist()
    [0, 8, 16, 100, 108, 116]
    """
    if not pairs:
        return np.zeros(1, np.int64)
    steps = [np.arange(n, dtype=np.int64) * stride for n, stride in pairs]
    return reduce(lambda outer, inner: (outer[:, None] + inner).reshape(-1), steps)


def tables(axes: Sequence[Axis]) -> tuple[Table, Table, Table]:
    """The offsets of the three operands over axes."""
    a, b, c = (offsets([(axis.n, axis[place]) for axis in axes]) for place in (1, 2, 3))
    return a, b, c


def ordered(axes: Iterable[Axis], place: int) -> list[Axis]:
    """Axes by the strides of one operand, the largest first."""
    return sorted(axes, key=lambda axis: (-abs(axis[place]), -abs(axis.c)))


def capped(axes: Sequence[Axis], most: int) -> tuple[list[Axis], list[Axis]]:
    """Outer axes, and inner ones whose space has at most `most` elements; an axis is cut where that divides it.

    >>> capped([Axis(6, 80, 0, 80), Axis(10, 8, 0, 8)], 30)
    ([Axis(n=2, a=240, b=0, c=240)], [Axis(n=3, a=80, b=0, c=80), Axis(n=10, a=8, b=0, c=8)])
    """
    inner: list[Axis] = []
    room = most
    for number in range(len(axes) - 1, -1, -1):
        axis = axes[number]
        if axis.n <= room:
            inner.insert(0, axis)
            room //= axis.n
            continue
        part = divisor(axis.n, room)
        if part > 1:
            inner.insert(0, Axis(part, *axis[1:]))
            axis = Axis(axis.n // part, axis.a * part, axis.b * part, axis.c * part)
        elif not inner:
            return list(axes[:number]), [axis]
        return [*axes[:number], axis], inner
    return [], inner


def divisor(n: int, most: int) -> int:
    """The largest divisor of `n` that is at most `most`.

    >>> divisor(12, 5), divisor(13, 5)
    (4, 1)
    """
    return next((d for d in range(min(n, most), 1, -1) if n % d == 0), 1)


def together(table: Table, width: int, step: int) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """For each block of `width` offsets, whether they lie side by side; the last may be shorter.

    >>> together(offsets([(2, 100), (4, 8)]), 4, 8).tolist(), together(offsets([(6, 16)]), 4, 8).tolist()
    ([1, 1], [0, 0])
    """
    count = -(-len(table) // width)
    breaks = np.zeros((count, width), np.bool_)
    breaks.reshape(-1)[1 : len(table)] = table[1:] - table[:-1] != step
    breaks[:, 0] = False
    found: np.ndarray[Any, np.dtype[np.uint8]] = np.logical_not(np.any(breaks, axis=1)).astype(np.uint8)
    return found


def blocks(
    axes: Sequence[Axis], place: int, table: Table, width: int, step: int
) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """`together` of the table of one operand over axes; at once where there is one axis.

    >>> axes = [Axis(6, 8, 0, 16)]
    >>> blocks(axes, 1, tables(axes)[0], 4, 8).tolist(), blocks(axes, 3, tables(axes)[2], 4, 8).tolist()
    ([1, 1], [0, 0])
    """
    if len(axes) > 1:
        return together(table, width, step)
    one = not axes or axes[0][place] == step
    return (np.ones if one else np.zeros)(-(-len(table) // width), np.uint8)


def share(flags: np.ndarray[Any, Any]) -> float:
    """The part of flags that are set.

    >>> share(np.array([1, 0, 0, 1]))
    0.5
    """
    return int(np.count_nonzero(flags)) / len(flags)
