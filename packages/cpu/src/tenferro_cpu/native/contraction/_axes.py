"""Axes of one step: the strides of each operand along them, in bytes; groups of axes."""

from collections.abc import Iterable, Sequence
from math import prod
from typing import NamedTuple

from tenferro_cpu.native.contraction._tables import Offsets, Pairs


class Axis(NamedTuple):
    """An extent, and the strides of left operand, right operand and result; 0 for an absent axis."""

    n: int
    a: int
    b: int
    c: int

    def swapped(self) -> "Axis":
        """The same axis with the operands exchanged."""
        return Axis(self.n, self.b, self.a, self.c)


Plain = tuple[int, int, int, int]
"""The numbers of an axis."""


def size(axes: Iterable[Axis]) -> int:
    """Number of elements of the space of some axes."""
    return prod([axis[0] for axis in axes])


def merged(axes: Iterable[Axis]) -> list[Axis]:
    """Drop axes of extent 1, and merge axes that every operand traverses as one.

    Sorted by the strides of the result, the largest first; summed axes by those of the left operand, then the right.

    >>> merged([Axis(3, 8, 0, 8), Axis(1, 8, 8, 8), Axis(2, 24, 0, 24)])
    [Axis(n=6, a=8, b=0, c=8)]
    """
    found: list[Axis] = []
    for axis in sorted([x for x in axes if x[0] != 1], key=_far):
        n, a, b, c = axis
        if found:
            last = found[-1]
            if last[3] == n * c and last[1] == n * a and last[2] == n * b:
                found[-1] = Axis(last[0] * n, a, b, c)
                continue
        found.append(axis)
    return found


def _far(axis: Axis) -> tuple[int, int, int]:
    return -abs(axis[3]), -abs(axis[1]), -abs(axis[2])


def along(axes: Iterable[Axis], place: int) -> Pairs:
    """Extents of axes and strides of one operand."""
    return tuple([(axis[0], axis[place]) for axis in axes])


def tables(axes: Sequence[Axis]) -> tuple[Offsets, Offsets, Offsets]:
    """Offsets of the three operands over axes."""
    n = size(axes)
    return Offsets(along(axes, 1), n), Offsets(along(axes, 2), n), Offsets(along(axes, 3), n)


def ordered(axes: Iterable[Axis], place: int) -> list[Axis]:
    """Sort axes by the strides of one operand, the largest first."""
    found = list(axes)
    if len(found) > 1:
        found.sort(key=lambda axis: (-abs(axis[place]), -abs(axis[3])))
    return found


def capped(axes: Sequence[Axis], most: int) -> tuple[list[Axis], list[Axis]]:
    """Split axes into outer ones, and inner ones with at most `most` elements; an axis is cut where that divides it.

    >>> capped([Axis(6, 80, 0, 80), Axis(10, 8, 0, 8)], 30)
    ([Axis(n=2, a=240, b=0, c=240)], [Axis(n=3, a=80, b=0, c=80), Axis(n=10, a=8, b=0, c=8)])
    """
    if size(axes) <= most:
        return [], list(axes)
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
