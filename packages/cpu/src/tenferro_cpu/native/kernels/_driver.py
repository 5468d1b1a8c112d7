"""The loop over rows: C code that calls a kernel for every row of an iteration space of any rank (walk.h).

Where the work pays for it, one axis is cut and the thread team takes the chunks; long runs are cut as well, and signals
are handled between the parts.
"""

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod

from tenferro_cpu.native._extension import compiled
from tenferro_cpu.native.threads._team import team


@dataclass(frozen=True, slots=True)
class Axis:
    """One axis of an iteration space: its extent, and the stride in bytes of every operand along it."""

    extent: int
    strides: tuple[int, ...]


def coalesced(axes: Iterable[Axis]) -> list[Axis]:
    """The same elements in the same order with as few axes as possible; a single element has no axes.

    >>> coalesced([Axis(2, (24, 0)), Axis(1, (5, 5)), Axis(3, (8, 0))])
    [Axis(extent=6, strides=(8, 0))]
    """
    found: list[Axis] = []
    for axis in axes:
        if axis.extent == 1:
            continue
        if found and all(s == t * axis.extent for s, t in zip(found[-1].strides, axis.strides)):
            found[-1] = Axis(found[-1].extent * axis.extent, axis.strides)
        else:
            found.append(axis)
    return found


@dataclass(frozen=True, slots=True)
class DriveArguments:
    """Arguments of `drive`, except the pointers."""

    kernel: int
    inner: Axis
    outer: Sequence[Axis]
    combined: Axis | None = None

    @property
    def elements(self) -> int:
        """Number of elements read per operand, including repeated ones."""
        rows = 1 if self.combined is None else self.combined.extent
        return self.inner.extent * rows * prod([axis.extent for axis in self.outer])


def words(pointers: Sequence[int], step: DriveArguments) -> "array[int]":
    """A walk in the format of the C code, strides in bytes.

    Number of operands, length of a row, rank of the outer axes, number of combined rows; pointers, inner strides and
    combined rows' strides of the operands; outer extents, and axis by axis outer strides of the operands.
    """
    inner, outer = step.inner, step.outer
    rows = step.combined if step.combined is not None else Axis(1, (0,) * len(pointers))
    found = [len(pointers), inner.extent, len(outer), rows.extent, *pointers, *inner.strides, *rows.strides]
    found += [axis.extent for axis in outer]
    for axis in outer:
        found += axis.strides
    return array("q", found)


def drive(
    kernel: int,
    pointers: Sequence[int],
    inner: Axis,
    outer: Sequence[Axis],
    combined: Axis | None = None,
    *,
    cost: float = 0.0,
    whole: bool = False,
) -> None:
    """Call `kernel` for every row: rows run along `inner`, `outer` counts them, `combined` is left to the kernel.

    Args:
        kernel: address of machine code.
        pointers: start addresses of the operands.
        inner: the axis of a row.
        outer: the other axes.
        combined: rows that the kernel itself combines.
        cost: nanoseconds per element, which decides the number of threads.
        whole: whether a row must not be cut.
    """
    team()
    compiled.drive(kernel, words(pointers, DriveArguments(kernel, inner, outer, combined)), cost, whole)
