"""From shapes and strides to a plan: which copy kernel, and the tables of offsets of its loops.

Axes are merged where both sides allow it. Elements that stay adjacent become one larger element (up to 32 bytes) or a
run. The rest is a transposition: *columns* are the fastest axes of the source, *rows* the fastest axes of the
target, each many axes flattened into one by a table of offsets; the outer axes are a table, too, except the longest.

Groups of rows are contiguous in the target, groups of columns in the source. A kernel moves blocks whose sides are
powers of two, or of another size below eight on one side if the other is as wide as a vector; other groups take two
kernels a side.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Final

import numpy as np

from tenferro_cpu.native.copying import tuning

MAX_STREAMS: Final = 7
"""Largest number of rows of an interleave kernel."""
CACHE_LINE_BYTES: Final = 64
"""Bytes of a cache line."""

Table = np.ndarray[Any, np.dtype[np.int64]]


@dataclass(frozen=True, slots=True)
class Axis:
    """Extent, and strides in bytes on both sides."""

    n: int
    source: int
    target: int

    def part(self, n: int, step: int = 1) -> "Axis":
        """The axis with `n` elements, `step` apart."""
        return Axis(n, self.source * step, self.target * step)


@dataclass(frozen=True, slots=True)
class Loop:
    """Byte offsets of all steps of one loop on both sides."""

    count: int
    source: Table
    target: Table


@dataclass(frozen=True, slots=True)
class Cut:
    """The loop that the thread team shares.

    Attributes:
        loop: index of a loop in `LOOPS`.
        chunks: number of chunks; the last takes the remainder, and is not shorter.
        length: steps of the loop per chunk.
        source: bytes per step in the source, for loops without tables.
        target: bytes per step in the target.
    """

    loop: int = 0
    chunks: int = 1
    length: int = 0
    source: int = 0
    target: int = 0


LOOPS: Final = ("none", "repeat", "outer", "rows", "columns", "run")
"""Loops that may be cut, in the numbering of `copy.c`."""


@dataclass(frozen=True, slots=True)
class CopyStep:
    """The work of one C object.

    Attributes:
        kind: ``"tile"``, ``"run"``, ``"interleave"`` or ``"deinterleave"``.
        item: bytes of an element, a power of two; for runs, bytes of a vector.
        blocks: rows and columns of the kernels, and the row and column of a group at which each begins.
        groups: rows and columns of a group.
        tiles: rows and columns of a tile.
        repeat: the longest outer axis, without tables.
        outer: the other outer axes.
        rows: see above; the streams of an interleave.
        columns: see above.
        run: bytes of a run.
        nbytes: bytes of all elements.
        cut: how the thread team shares it.
        aligned: whether streaming stores are possible on a target aligned to 64 bytes.
    """

    kind: str
    item: int
    blocks: tuple[tuple[int, int, int, int], ...]
    groups: tuple[int, int]
    tiles: tuple[int, int]
    repeat: Axis
    outer: Loop
    rows: Loop
    columns: Loop
    run: int
    nbytes: int
    cut: Cut
    aligned: bool

    @property
    def tables(self) -> tuple[bytes, ...]:
        """The offsets in the format of the C code."""
        return tuple(t.tobytes() for loop in (self.outer, self.rows, self.columns) for t in (loop.source, loop.target))


def plan(
    shape: Sequence[int], source: Sequence[int], target: Sequence[int], item: int, vector: int
) -> tuple[CopyStep, ...] | None:
    """Plan a copy of elements of `item` bytes between two layouts of one shape (strides in bytes).

    Args:
        shape: extents.
        source: strides of the source; any.
        target: strides of the target.
        item: bytes of an element: a power of two, up to 32.
        vector: bytes of a vector register.

    Returns:
        Steps in any order; None if no kernel suits and NumPy's own copy should run.
    """
    if 0 in shape:
        return ()
    axes = merged([Axis(*a) for a in zip(shape, source, target, strict=True) if a[0] > 1])
    if axes is None:
        return None
    found = _steps(axes, item, vector, 0, 0)
    return None if found is None else tuple(found)


def merged(axes: Iterable[Axis]) -> list[Axis] | None:
    """Sort axes by decreasing target stride and merge those that are one on both sides; None if targets may overlap.

    >>> merged([Axis(2, 96, 96), Axis(3, 32, 32), Axis(4, 8, 8)])
    [Axis(n=24, source=8, target=8)]
    >>> merged([Axis(3, 0, 8), Axis(3, 8, 8)]) is None
    True
    """
    out: list[Axis] = []
    for axis in sorted(axes, key=lambda a: a.target, reverse=True):
        if axis.target <= 0:
            return None
        span = axis.n * axis.target
        if out and out[-1].target < span:
            return None
        if out and out[-1].target == span and out[-1].source == axis.n * axis.source:
            axis = Axis(out.pop().n * axis.n, axis.source, axis.target)
        out.append(axis)
    return out


def _steps(axes: list[Axis], item: int, vector: int, at_source: int, at_target: int) -> list[CopyStep] | None:
    run = item
    if axes and axes[-1].source == axes[-1].target == item:
        run, axes = item * axes[-1].n, axes[:-1]
    if not axes or run > vector // 2 or run & (run - 1):
        return _runs(axes, run, vector, at_source, at_target)
    item = run
    row = axes[-1]
    column = min((a for a in axes if a is not row), key=_reach, default=None)
    if column is None or _reach(row) < _reach(column):
        return None  # one strided axis, or the same axis fastest on both sides: nothing to transpose
    width = min(vector // item, 16)
    if row.target == item and column.source == item:
        kind = ""
        if row.n < min(width, MAX_STREAMS + 1) and column.n >= width and column.target == row.n * item:
            kind = "interleave"
        elif column.n < min(width, MAX_STREAMS + 1) and row.n >= width and row.source == column.n * item:
            kind, row, column = "deinterleave", column, row
        if kind:
            blocks, groups = [(row.n, width, 0, 0)], (row.n, width)
            return _finished(kind, item, blocks, groups, groups, axes, [row], [column], at_source, at_target, vector)
    rows, columns, long = _gathered(axes, row, column, item, width)
    if long is not None:
        return _split(axes, long, item, vector, at_source, at_target)
    down, across = _group(rows, "target", item, width), _group(columns, "source", item, width)
    blocks = _tiling(down, across, width)
    many = tuning.TILE_BLOCKS
    tiles = (many * down * max(1, width // down), many * across * max(1, width // across))
    if max(down, across) < width and not (down & (down - 1) or across & (across - 1)):
        # Strides are then large powers of two: few cache lines at a time, each finished at once.
        tiles = (max(down, CACHE_LINE_BYTES // item), max(across, CACHE_LINE_BYTES // item))
    return _finished("tile", item, blocks, (down, across), tiles, axes, rows, columns, at_source, at_target, vector)


def _reach(axis: Axis) -> int:
    """Stride in the source; a repeated element counts as far, because a vector load gains nothing."""
    return abs(axis.source) or 1 << 62


def _gathered(
    axes: list[Axis], row: Axis, column: Axis, item: int, width: int
) -> tuple[list[Axis], list[Axis], Axis | None]:
    """Axes of rows and of columns, fastest first; or an axis that is too long for a table."""
    rows, columns = [row], [column]
    enough = tuning.SPREAD_ELEMENTS if row.n & (row.n - 1) or column.n & (column.n - 1) else tuning.LINE_ELEMENTS
    for axis in (row, column):
        if axis.n > tuning.MAX_TABLE:
            return rows, columns, axis
    while True:
        free = [a for a in axes if a not in rows and a not in columns]
        if not free:
            break
        choices = []
        for group, strides, near in ((rows, "target", free[-1]), (columns, "source", min(free, key=_reach))):
            size, joined = prod(a.n for a in group), _joined(group, strides, item)
            adjoins = joined == size and getattr(near, strides) == size * item
            # An axis that is not adjacent lengthens tables without widening vectors.
            if size < enough and (adjoins or joined < width):
                choices.append((not adjoins, size, group, near))
        if not choices:
            break
        _, size, group, near = min(choices, key=lambda c: c[:2])
        if size * near.n > tuning.MAX_TABLE:
            return rows, columns, near
        group.append(near)
    return rows, columns, None


def _joined(group: list[Axis], strides: str, item: int) -> int:
    """Number of elements of a group that are adjacent on the side where it is fast."""
    count = 1
    for axis in group:
        if getattr(axis, strides) != count * item:
            break
        count *= axis.n
    return count


def _group(axes: list[Axis], strides: str, item: int, width: int) -> int:
    """Adjacent elements that form a group: a whole vector if all are adjacent, otherwise all that are."""
    return min(_joined(axes, strides, item), width)


def _tiling(down: int, across: int, width: int) -> list[tuple[int, int, int, int]]:
    """Blocks that cover a group of rows and columns: one if there is a kernel of that size, otherwise powers of two.

    >>> _tiling(3, 8, 8), _tiling(3, 4, 8), _tiling(9, 16, 16)
    ([(3, 8, 0, 0)], [(2, 4, 0, 0), (1, 4, 2, 0)], [(8, 16, 0, 0), (1, 16, 8, 0)])
    """
    beyond_kernels = any(8 < side < width for side in (down, across))
    if (down == across or width in (down, across)) and not beyond_kernels:
        return [(down, across, 0, 0)]
    return [(m, n, i, j) for i, m in _powers(down) for j, n in _powers(across)]


def _powers(group: int) -> list[tuple[int, int]]:
    """Offsets and sizes of the blocks of a group: one or two powers of two, which may overlap.

    >>> _powers(8), _powers(5), _powers(7)
    ([(0, 8)], [(0, 4), (4, 1)], [(0, 4), (3, 4)])
    """
    first = 1 << (group.bit_length() - 1)
    rest = group - first
    if not rest:
        return [(0, first)]
    second = 1 << (rest - 1).bit_length()
    return [(0, first), (group - second, second)]


def _split(
    axes: list[Axis], long: Axis, item: int, vector: int, at_source: int, at_target: int
) -> list[CopyStep] | None:
    """Split a long axis in two, with the remainder as a separate step."""
    part = tuning.TABLE_PART
    step = part if long.n >= 2 * part else max(1, long.n // 2)
    count, rest = divmod(long.n, step)
    k = axes.index(long)
    steps: list[CopyStep] = []
    whole = [*axes[:k], long.part(count, step), long.part(step), *axes[k + 1 :]]
    left = [*axes[:k], long.part(rest), *axes[k + 1 :]]
    for some, skipped in ((whole, 0), (left, count * step)) if rest else ((whole, 0),):
        some = [a for a in some if a.n > 1]
        found = _steps(some, item, vector, at_source + skipped * long.source, at_target + skipped * long.target)
        if found is None:
            return None
        steps += found
    return steps


def _runs(axes: list[Axis], run: int, vector: int, at_source: int, at_target: int) -> list[CopyStep] | None:
    """Runs of adjacent bytes; rows and columns are the nearest axes on each side, for locality."""
    size = vector
    while size > run:
        size //= 2
    rows: list[Axis] = []
    columns: list[Axis] = []
    if run < 4 * CACHE_LINE_BYTES:
        for axis in reversed(axes):
            if prod(a.n for a in rows) * axis.n <= tuning.LINE_ELEMENTS:
                rows.append(axis)
        near = [a for a in sorted(axes, key=_reach) if a not in rows]
        for axis in near:
            if prod(a.n for a in columns) * axis.n <= tuning.LINE_ELEMENTS:
                columns.append(axis)
    tiles = (tuning.TILE_BLOCKS, tuning.TILE_BLOCKS)
    return _finished("run", size, [(1, 1, 0, 0)], (1, 1), tiles, axes, rows, columns, at_source, at_target, vector, run)


def _loop(axes: Iterable[Axis], at_source: int = 0, at_target: int = 0) -> Loop:
    """Byte offsets of all combinations of some axes, fastest first."""
    sides = [np.full(1, at, np.int64) for at in (at_source, at_target)]
    for axis in axes:
        for side, stride in enumerate((axis.source, axis.target)):
            sides[side] = (np.arange(axis.n, dtype=np.int64)[:, None] * stride + sides[side]).ravel()
    return Loop(len(sides[0]), *sides)


def _finished(
    kind: str,
    item: int,
    blocks: list[tuple[int, int, int, int]],
    groups: tuple[int, int],
    tiles: tuple[int, int],
    axes: list[Axis],
    rows: list[Axis],
    columns: list[Axis],
    at_source: int,
    at_target: int,
    vector: int,
    run: int = 0,
) -> list[CopyStep] | None:
    outer = [a for a in axes if a not in rows and a not in columns]
    repeat = max(outer, key=lambda a: a.n, default=Axis(1, 0, 0))
    outer = [a for a in outer if a is not repeat]
    if prod(a.n for a in outer) > tuning.MAX_OUTER_TABLE:
        return None
    narrow = kind in ("interleave", "deinterleave")
    nothing = np.zeros(0, np.int64)
    loops = (
        _loop(reversed(outer), at_source, at_target),
        _loop(rows),
        Loop(columns[0].n, nothing, nothing) if narrow else _loop(columns),
    )
    nbytes = prod(a.n for a in axes) * (run or item)
    cut = _cut(kind, item, groups, repeat, loops, run, nbytes)
    aligned = _aligned(kind, item, groups, repeat, loops, run, vector)
    return [CopyStep(kind, item, tuple(blocks), groups, tiles, repeat, *loops, run, nbytes, cut, aligned)]


def _cut(
    kind: str, item: int, groups: tuple[int, int], repeat: Axis, loops: tuple[Loop, Loop, Loop], run: int, nbytes: int
) -> Cut:
    """The loop that the thread team shares: the first with enough chunks, otherwise the best one."""
    if nbytes < tuning.SHARED_MIN_BYTES:
        return Cut()
    outer, rows, columns = (loop.count for loop in loops)
    line = max(CACHE_LINE_BYTES // item, 1)
    # Loop, number of its steps, multiple for cuts, bytes per step on both sides.
    choices = [("repeat", repeat.n, 1, repeat.source, repeat.target), ("outer", outer, 1, 0, 0)]
    if kind == "run":
        choices += [("rows", rows, 1, 0, 0), ("columns", columns, 1, 0, 0), ("run", run, 64 * CACHE_LINE_BYTES, 1, 1)]
    elif kind == "tile":
        # Columns first: rows are adjacent in the target, so each of its cache lines belongs to one chunk.
        choices += [("columns", columns, groups[1], 0, 0), ("rows", rows, groups[0] * line, 0, 0)]
    else:
        steps = (item, item * rows) if kind == "interleave" else (item * rows, item)
        choices.append(("columns", columns, groups[1] * line, *steps))
    most = min(tuning.MAX_CHUNKS, nbytes // tuning.CHUNK_MIN_BYTES)
    best = Cut()
    for name, count, together, source, target in choices:
        length = max(1, -(-count // (most * together))) * together
        if count // length > best.chunks:
            best = Cut(LOOPS.index(name), count // length, length, source, target)
        if best.chunks >= most // 2:
            break
    return best


def _aligned(
    kind: str, item: int, groups: tuple[int, int], repeat: Axis, loops: tuple[Loop, Loop, Loop], run: int, vector: int
) -> bool:
    """Whether every store is a whole vector aligned to its size."""
    outer, rows, columns = loops
    if kind == "run":
        size, whole, starts = item, run % item == 0, [rows.target, columns.target]
    elif kind == "tile":
        down = groups[0]
        size, whole = item * down, rows.count % down == 0
        starts = [rows.target[::down], columns.target]
    else:
        size, whole = item * groups[1], columns.count % groups[1] == 0
        starts = [rows.target] if kind == "deinterleave" else []
    starts = [*starts, outer.target, np.array([repeat.target])]
    return bool(whole and size == vector and vector >= 32 and not any((t % size).any() for t in starts))
