"""From shapes and strides to a plan: which copy kernel, and the tables of offsets that it walks.

Axes are merged where both sides allow it. Elements that stay together become one larger element (up to 32 bytes) or a
run. What is left is a transposition: *columns* are the fastest axes of the source, *rows* the fastest axes of the
target, both many axes as one by a table of offsets; the outer axes are a table, too, but for the longest one.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import gcd, prod
from typing import Any, Final

import numpy as np

from tenferro_cpu.native.copying._copy_ir import Variant, Words

GATHERED: Final = 64
"""Elements that rows and columns are gathered to where axes are powers of two: whole cache lines are then moved."""
SPREAD: Final = 128
"""The same for other axes: lines that are written in parts must still be there for the next part."""
BLOCKS: Final = 32
"""Blocks along each side of a tile."""
LONGEST: Final = 4096
"""Longest table of rows or columns; a longer axis is cut into pieces of `PIECE`."""
PIECE: Final = 1024
OUTER: Final = 1 << 20
"""Longest table of outer offsets."""
STREAMS: Final = 7
"""Widest narrow interleave."""
LINE: Final = 64
SHARED: Final = 1 << 20
"""Bytes from which on a copy is cut for the thread team."""
SHARES: Final = 32
"""Pieces of a copy, so that any number of threads is kept busy to the end."""
SMALLEST_PIECE: Final = 128 << 10


@dataclass(frozen=True, slots=True)
class Axis:
    """Extent, and strides in bytes on both sides."""

    n: int
    source: int
    target: int

    def part(self, n: int, step: int = 1) -> "Axis":
        """`n` places, `step` apart."""
        return Axis(n, self.source * step, self.target * step)


@dataclass(frozen=True, slots=True)
class Piece:
    """One call of a kernel.

    Attributes:
        variant: the kernel.
        words: the plan, kernel addresses still 0.
        aligned: whether streamed stores are possible on a target aligned to 64 bytes.
    """

    variant: Variant
    words: np.ndarray[Any, np.dtype[np.int64]]
    aligned: bool


def plan(
    shape: Sequence[int], source: Sequence[int], target: Sequence[int], item: int, vector: int
) -> tuple[Piece, ...] | None:
    """How to copy elements of `item` bytes between two layouts of one shape (strides in bytes).

    Args:
        shape: extents.
        source: strides that are read; any.
        target: strides that are written.
        item: bytes of an element: a power of two, up to 32.
        vector: bytes of a vector register.

    Returns:
        Calls to make, in any order; None where no kernel suits and NumPy's own copy should run.
    """
    if 0 in shape:
        return ()
    axes = merged([Axis(*a) for a in zip(shape, source, target, strict=True) if a[0] > 1])
    if axes is None:
        return None
    found = _pieces(axes, item, vector, 0, 0)
    return None if found is None else tuple(found)


def merged(axes: Iterable[Axis]) -> list[Axis] | None:
    """Axes by falling target stride, neighbours that are one axis on both sides merged; None if targets may overlap.

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


def _pieces(axes: list[Axis], item: int, vector: int, at_source: int, at_target: int) -> list[Piece] | None:
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
        narrow = None
        if row.n < min(width, STREAMS + 1) and column.n >= width and column.target == row.n * item:
            narrow = Variant("interleave", item, width, row.n)
        elif column.n < min(width, STREAMS + 1) and row.n >= width and row.source == column.n * item:
            narrow = Variant("deinterleave", item, width, column.n)
            row, column = column, row
        if narrow is not None:
            return _finished(narrow, axes, [row], [column], at_source, at_target, vector)
    rows, columns, long = _gathered(axes, row, column, item, width)
    if long is not None:
        return _cut(axes, long, item, vector, at_source, at_target)
    return _finished(_tile_variant(rows, columns, item, width), axes, rows, columns, at_source, at_target, vector)


def _reach(axis: Axis) -> int:
    """Distance of neighbours in the source; a repeated element is far from useful to a vector load."""
    return abs(axis.source) or 1 << 62


def _gathered(
    axes: list[Axis], row: Axis, column: Axis, item: int, width: int
) -> tuple[list[Axis], list[Axis], Axis | None]:
    """Axes of rows and of columns, fastest first; or an axis that is too long for a table."""
    rows, columns = [row], [column]
    enough = SPREAD if row.n & (row.n - 1) or column.n & (column.n - 1) else GATHERED
    for axis in (row, column):
        if axis.n > LONGEST:
            return rows, columns, axis
    while True:
        free = [a for a in axes if a not in rows and a not in columns]
        if not free:
            break
        choices = []
        for group, strides, near in ((rows, "target", free[-1]), (columns, "source", min(free, key=_reach))):
            size, joined = prod(a.n for a in group), _joined(group, strides, item)
            adjoins = joined == size and getattr(near, strides) == size * item
            # An axis that does not adjoin makes tables longer but no vector wider.
            if size < enough and (adjoins or joined < width):
                choices.append((not adjoins, size, group, near))
        if not choices:
            break
        _, size, group, near = min(choices, key=lambda c: c[:2])
        if size * near.n > LONGEST:
            return rows, columns, near
        group.append(near)
    return rows, columns, None


def _joined(group: list[Axis], strides: str, item: int) -> int:
    """How many elements of a group are neighbours on the side that it is fast on."""
    count = 1
    for axis in group:
        if getattr(axis, strides) != count * item:
            break
        count *= axis.n
    return count


def _tile_variant(rows: list[Axis], columns: list[Axis], item: int, width: int) -> Variant:
    down, store = _block(rows, "target", item, width)
    across, load = _block(columns, "source", item, width)
    needed = 1 << (max(down, across) - 1).bit_length()
    return Variant("tile", item, needed, down, across, load, store)


def _block(group: list[Axis], strides: str, item: int, width: int) -> tuple[int, int]:
    """Places of a block along a group, and how many of them one access takes."""
    size, joined = prod(a.n for a in group), _joined(group, strides, item)
    if joined == size:
        return min(size, width), min(size, width)
    if joined < width and joined & (joined - 1):
        return joined, joined
    near = gcd(joined, width)
    return (width, near) if size >= width else (near, near)


def _cut(axes: list[Axis], long: Axis, item: int, vector: int, at_source: int, at_target: int) -> list[Piece] | None:
    """A long axis as two, and what is left over by itself."""
    step = PIECE if long.n >= 2 * PIECE else max(1, long.n // 2)
    count, rest = divmod(long.n, step)
    k = axes.index(long)
    pieces: list[Piece] = []
    whole = [*axes[:k], long.part(count, step), long.part(step), *axes[k + 1 :]]
    left = [*axes[:k], long.part(rest), *axes[k + 1 :]]
    for some, skipped in ((whole, 0), (left, count * step)) if rest else ((whole, 0),):
        some = [a for a in some if a.n > 1]
        found = _pieces(some, item, vector, at_source + skipped * long.source, at_target + skipped * long.target)
        if found is None:
            return None
        pieces += found
    return pieces


def _runs(axes: list[Axis], run: int, vector: int, at_source: int, at_target: int) -> list[Piece] | None:
    """Runs of bytes that stay together; rows and columns are the nearest axes on each side, for locality."""
    size = vector
    while size > run:
        size //= 2
    variant = Variant("run", min(size, 8), max(1, size // 8))
    rows: list[Axis] = []
    columns: list[Axis] = []
    if run < 4 * LINE:
        for axis in reversed(axes):
            if prod(a.n for a in rows) * axis.n <= GATHERED:
                rows.append(axis)
        near = [a for a in sorted(axes, key=_reach) if a not in rows]
        for axis in near:
            if prod(a.n for a in columns) * axis.n <= GATHERED:
                columns.append(axis)
    return _finished(variant, axes, rows, columns, at_source, at_target, vector, run)


def _offsets(axes: Iterable[Axis], side: str) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Byte offsets of all combinations of some axes, fastest first."""
    out = np.zeros(1, np.int64)
    for axis in axes:
        out = (np.arange(axis.n, dtype=np.int64)[:, None] * getattr(axis, side) + out).ravel()
    return out


def _finished(
    variant: Variant,
    axes: list[Axis],
    rows: list[Axis],
    columns: list[Axis],
    at_source: int,
    at_target: int,
    vector: int,
    run: int = 0,
) -> list[Piece] | None:
    outer = [a for a in axes if a not in rows and a not in columns]
    repeat = max(outer, key=lambda a: a.n, default=Axis(1, 0, 0))
    outer = [a for a in outer if a is not repeat]
    if prod(a.n for a in outer) > OUTER:
        return None
    narrow = variant.kind in ("interleave", "deinterleave")
    tables = {
        Words.OUTER_SOURCE: _offsets(reversed(outer), "source") + at_source,
        Words.OUTER_TARGET: _offsets(reversed(outer), "target") + at_target,
        Words.ROW_SOURCE: _offsets(rows, "source"),
        Words.ROW_TARGET: _offsets(rows, "target"),
        Words.COLUMN_SOURCE: _offsets([] if narrow else columns, "source"),
        Words.COLUMN_TARGET: _offsets([] if narrow else columns, "target"),
    }
    words = np.zeros(len(Words) + sum(map(len, tables.values())), np.int64)
    place = len(Words)
    for field, table in tables.items():
        words[field] = 8 * place
        words[place : place + len(table)] = table
        place += len(table)
    words[Words.REPEAT] = repeat.n
    words[Words.REPEAT_SOURCE], words[Words.REPEAT_TARGET] = repeat.source, repeat.target
    words[Words.OUTER] = len(tables[Words.OUTER_SOURCE])
    words[Words.ROWS], words[Words.COLUMNS] = prod(a.n for a in rows), prod(a.n for a in columns)
    words[Words.RUN], words[Words.TILE] = run, BLOCKS
    words[Words.BYTES] = prod(a.n for a in axes) * (run or variant.item)
    _cut_up(variant, words, repeat)
    return [Piece(variant, words, _aligned(variant, words, tables, run, vector))]


def _cut_up(variant: Variant, words: Any, repeat: Axis) -> None:
    """Choose the count that the thread team shares: the first that gives enough pieces, else the best one."""
    words[Words.PIECES] = 1
    total = int(words[Words.BYTES])
    if total < SHARED:
        return
    # Count, granule, bytes of a step on both sides, first table.
    line = max(LINE // variant.item, 1)
    choices = [
        (Words.REPEAT, 1, repeat.source, repeat.target, 0),
        (Words.OUTER, 1, 0, 0, Words.OUTER_SOURCE),
    ]
    if variant.kind == "run":
        choices += [(Words.ROWS, 1, 0, 0, Words.ROW_SOURCE), (Words.COLUMNS, 1, 0, 0, Words.COLUMN_SOURCE)]
        choices += [(Words.RUN, 64 * LINE, 1, 1, 0)]
    elif variant.kind == "tile":
        # Columns first: rows are neighbours in the target, and a line of it belongs to one piece.
        choices += [
            (Words.COLUMNS, variant.columns, 0, 0, Words.COLUMN_SOURCE),
            (Words.ROWS, variant.rows * line, 0, 0, Words.ROW_SOURCE),
        ]
    else:
        wide = variant.item * variant.rows
        steps = (variant.item, wide) if variant.kind == "interleave" else (wide, variant.item)
        choices += [(Words.COLUMNS, variant.width * line, *steps, 0)]
    most = min(SHARES, total // SMALLEST_PIECE)
    best = 1
    for count, granule, source, target, tables in choices:
        length = max(1, -(-int(words[count]) // (most * granule))) * granule
        pieces = int(words[count]) // length  # the last one takes what is left, and is not shorter
        if pieces > best:
            best = pieces
            words[Words.CUT], words[Words.PIECES], words[Words.LENGTH] = count, pieces, length
            words[Words.CUT_SOURCE], words[Words.CUT_TARGET], words[Words.CUT_TABLES] = source, target, tables
        if best >= most // 2:
            break


def _aligned(variant: Variant, words: Any, tables: dict[Words, Any], run: int, vector: int) -> bool:
    """Whether every store is a whole vector at a multiple of its size."""
    size = variant.item * variant.width
    starts = [tables[Words.ROW_TARGET]]
    if variant.kind == "run":
        whole = run % size == 0
        starts += [tables[Words.COLUMN_TARGET]]
    elif variant.kind == "tile":
        whole = variant.store == variant.width and words[Words.ROWS] % variant.width == 0
        starts = [starts[0][:: variant.width], tables[Words.COLUMN_TARGET]]
    else:
        whole = words[Words.COLUMNS] % variant.width == 0
        starts = starts if variant.kind == "deinterleave" else []
    starts += [tables[Words.OUTER_TARGET], words[Words.REPEAT_TARGET : Words.REPEAT_TARGET + 1]]
    return bool(whole and size == vector and vector >= 32 and not any((t % size).any() for t in starts))


def streamed(variant: Variant) -> Variant:
    """The kernel with stores that bypass the caches."""
    return replace(variant, stream=True)
