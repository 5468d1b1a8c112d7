"""Plans the products with a Jacobian that determine all entries of a pattern, and the position of each entry."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from tenferro_ad.sparse._coloring import Coloring, color_columns, row_numbers
from tenferro_ad.sparse._star import color_symmetric, positions
from tenferro_tensor_core import ArgumentError

MODES: Final = ("auto", "columns", "rows", "both")

Shapes = Sequence[tuple[int, ...]]


class Chunk(NamedTuple):
    """One batch of products.

    Attributes:
        first: the first color.
        last: the last color plus 1.
        entries: indices of the pattern's entries found in these products; ``None`` for all, in order.
        offsets: flat offset of each of them in the concatenated products.
    """

    first: int
    last: int
    entries: np.ndarray[Any, Any] | None
    offsets: np.ndarray[Any, Any]


class Group(NamedTuple):
    """The products with tangents, or with cotangents.

    Attributes:
        forward: whether these are products with tangents.
        coloring: colors of the columns for tangents, of the rows for cotangents.
        chunks: the batches.
    """

    forward: bool
    coloring: Coloring
    chunks: tuple[Chunk, ...]


class Compression(NamedTuple):
    """The number of products of a sparse derivative.

    Attributes:
        forward: number of products with tangents.
        reverse: number of products with cotangents.
        entries: number of entries of the pattern.
    """

    forward: int
    reverse: int
    entries: int


class CompressedPattern(NamedTuple):
    """A pattern and the products that fill it.

    Attributes:
        pattern: a boolean `csr_array`.
        groups: the products.
    """

    pattern: Any
    groups: tuple[Group, ...]

    @property
    def compression(self) -> Compression:
        """The number of products."""
        forward, reverse = (sum(g.coloring.number for g in self.groups if g.forward is way) for way in (True, False))
        return Compression(forward, reverse, int(self.pattern.nnz))


def require_mode(mode: str) -> None:
    """Raise unless `mode` is one of `MODES`."""
    if mode not in MODES:
        raise ArgumentError(
            f"mode={mode!r} is unknown; use one of {', '.join(MODES)}: 'columns' uses tangents, 'rows' cotangents, "
            "'both' some of each, and 'auto' whichever needs the fewest products",
            mode=mode,
        )


def plan_jacobian(pattern: Any, mode: str, rows: Shapes, columns: Shapes, step: int) -> CompressedPattern:
    """Plan the products for a Jacobian.

    Args:
        pattern: a boolean `csr_array` without duplicates.
        mode: one of `MODES`.
        rows: shapes of the values whose elements are the rows.
        columns: shapes of the arguments whose elements are the columns.
        step: number of products in one batch.
    """
    if mode == "columns":
        return CompressedPattern(pattern, _by_columns(pattern, None, columns, step))
    if mode == "rows":
        return CompressedPattern(pattern, _by_rows(pattern, None, rows, step))
    by_column = pattern.tocsc()
    of_rows, of_columns = np.diff(pattern.indptr), np.diff(by_column.indptr)
    row_limit, with_rows = _limit(of_rows)
    column_limit, with_columns = _limit(of_columns)
    costs = [with_rows, with_columns]
    if mode == "auto":
        costs = [int(of_rows.max(initial=0)), int(of_columns.max(initial=0)), *costs]
    best = int(np.argmin(costs)) + (4 - len(costs))
    if best == 0:
        return CompressedPattern(pattern, _by_columns(pattern, None, columns, step))
    if best == 1:
        return CompressedPattern(pattern, _by_rows(pattern, None, rows, step))
    if best == 2:
        apart = (of_rows > row_limit)[row_numbers(pattern)]
    else:
        apart = (of_columns <= column_limit)[pattern.indices]
    return CompressedPattern(
        pattern, (*_by_columns(pattern, ~apart, columns, step), *_by_rows(pattern, apart, rows, step))
    )


def plan_hessian(pattern: Any, shapes: Shapes, step: int) -> CompressedPattern:
    """Plan the products for a symmetric matrix: one for each color of a star coloring.

    Args:
        pattern: a boolean `csr_array` without duplicates, equal to its transpose.
        shapes: shapes of the arguments.
        step: number of products in one batch.
    """
    coloring = color_symmetric(pattern, shapes)
    turned = positions(pattern, coloring)
    assert turned is not None, "a star coloring determines each entry"
    rows = row_numbers(pattern)
    read, by = np.where(turned, pattern.indices, rows), np.where(turned, rows, pattern.indices)
    return CompressedPattern(pattern, _group(pattern, True, coloring, coloring.colors[by], None, read, step))


def _limit(counts: np.ndarray[Any, Any]) -> tuple[int, int]:
    """The number of entries above which a line gets its own product, chosen to minimize the total; and that total."""
    values, times = np.unique(counts, return_counts=True)
    if not len(values):
        return 0, 0
    beyond = times[::-1].cumsum()[::-1] - times
    best = int(np.argmin(values + beyond))
    return int(values[best]), int(values[best] + beyond[best])


def _by_columns(pattern: Any, chosen: np.ndarray[Any, Any] | None, shapes: Shapes, step: int) -> tuple[Group, ...]:
    """Tangents for the chosen entries of a pattern; columns without entries have no color."""
    part = pattern if chosen is None else _part(pattern, chosen)
    if not part.nnz:
        return ()
    coloring = color_columns(part, shapes)
    there = np.zeros(part.shape[1], np.bool_)
    there[part.indices] = True
    coloring = coloring._replace(colors=np.where(there, coloring.colors, np.int32(-1)))
    entries = None if chosen is None else np.flatnonzero(chosen)
    return _group(pattern, True, coloring, coloring.colors[part.indices], entries, row_numbers(part), step)


def _by_rows(pattern: Any, chosen: np.ndarray[Any, Any] | None, shapes: Shapes, step: int) -> tuple[Group, ...]:
    """Cotangents for the chosen entries, by coloring the transpose."""
    part = pattern if chosen is None else _part(pattern, chosen)
    if not part.nnz:
        return ()
    coloring = color_columns(part.T.tocsr(), shapes)
    coloring = coloring._replace(colors=np.where(np.diff(part.indptr) > 0, coloring.colors, np.int32(-1)))
    entries = None if chosen is None else np.flatnonzero(chosen)
    return _group(pattern, False, coloring, coloring.colors[row_numbers(part)], entries, part.indices, step)


def _part(pattern: Any, chosen: np.ndarray[Any, Any]) -> Any:
    """The pattern with only the chosen entries."""
    kept = np.concatenate([[0], np.cumsum(chosen)])[pattern.indptr].astype(pattern.indptr.dtype)
    return type(pattern)((pattern.data[chosen], pattern.indices[chosen], kept), shape=pattern.shape)


def _group(
    pattern: Any,
    forward: bool,
    coloring: Coloring,
    colors: np.ndarray[Any, Any],
    entries: np.ndarray[Any, Any] | None,
    read: np.ndarray[Any, Any],
    step: int,
) -> tuple[Group, ...]:
    """The group of products whose entries are at given colors and positions."""
    if not len(colors):
        return ()
    width = pattern.shape[0 if forward else 1]
    if coloring.number <= step:
        index = colors.astype(np.intp) * width + read
        return (Group(forward, coloring, (Chunk(0, coloring.number, entries, index),)),)
    # Colors that fit into 16 bits are radix-sorted.
    order = np.argsort(colors.astype(np.int16) if coloring.number < 2**15 else colors, kind="stable")
    colors, read, entries = colors[order], read[order], order if entries is None else entries[order]
    bounds = [*range(0, coloring.number, step), coloring.number]
    ends = np.searchsorted(colors, bounds)
    chunks = [
        Chunk(first, last, entries[a:b], (colors[a:b].astype(np.intp) - first) * width + read[a:b])
        for first, last, a, b in zip(bounds, bounds[1:], ends, ends[1:], strict=False)
    ]
    return (Group(forward, coloring, tuple(chunks)),)
