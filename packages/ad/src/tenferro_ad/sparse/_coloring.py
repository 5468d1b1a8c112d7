"""Column coloring: columns of one color have no row in common.

So one tangent, the sum of the columns' unit vectors, yields all entries of a color (Curtis, Powell and Reid 1974;
Gebremedhin, Manne and Pothen, "What color is your Jacobian?", SIAM Review 47, 2005).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from tenferro_ad.sparse._lattice import proposals

SECOND_ORDER_MAX: Final = 200_000
"""Maximum number of columns for which greedy coloring is tried in a second vertex order."""


class Coloring(NamedTuple):
    """Colors of the columns of a matrix.

    Attributes:
        colors: the color of each column, from 0; -1 for a column that is not needed.
        number: number of colors.
    """

    colors: np.ndarray[Any, Any]
    number: int


def color_columns(pattern: Any, shapes: Sequence[tuple[int, ...]] = ()) -> Coloring:
    """Color columns such that columns of one color have no row in common.

    Args:
        pattern: a boolean `csr_array` without duplicates.
        shapes: shapes of the arrays whose elements are the columns; regular stencils on them are colored by a formula.
    """
    _rows, columns = pattern.shape
    least = max_count(pattern)
    if least <= 1:
        return Coloring(np.zeros(columns, np.int32), least)
    for colors, count in proposals(pattern, least, shapes):
        if _separates(pattern, colors, count):
            return Coloring(colors, count)
    by_column = pattern.tocsc()
    best = _greedy(by_column, range(columns))
    if best.number > least and columns <= SECOND_ORDER_MAX:
        counts = np.diff(by_column.indptr)
        best = min(best, _greedy(by_column, np.argsort(-counts, kind="stable").tolist()), key=lambda c: c.number)
    return best


def max_count(pattern: Any) -> int:
    """Maximum number of entries in a row, a lower bound of the number of colors."""
    return int(np.diff(pattern.indptr).max(initial=0))


def _separates(pattern: Any, colors: np.ndarray[Any, Any], count: int) -> bool:
    """Whether no row has two entries of one color."""
    seen = np.zeros(pattern.shape[0] * count, np.bool_)
    seen[keys(pattern, colors, count)] = True
    return int(np.count_nonzero(seen)) == int(pattern.nnz)


def keys(pattern: Any, colors: np.ndarray[Any, Any], count: int) -> np.ndarray[Any, Any]:
    """A key of the row and the color of each entry."""
    found: np.ndarray[Any, Any] = row_numbers(pattern).astype(np.int64) * count + colors[pattern.indices]
    return found


def row_numbers(pattern: Any) -> np.ndarray[Any, Any]:
    """The row of each entry."""
    return np.repeat(np.arange(pattern.shape[0], dtype=pattern.indices.dtype), np.diff(pattern.indptr))


def _greedy(by_column: Any, order: Sequence[int]) -> Coloring:
    """Greedy coloring in a given order; the colors used in a row are the bits of an integer."""
    rows, starts = by_column.indices.tolist(), by_column.indptr.tolist()
    taken = [0] * by_column.shape[0]
    colors = [0] * by_column.shape[1]
    for j in order:
        column = rows[starts[j] : starts[j + 1]]
        used = 0
        for i in column:
            used |= taken[i]
        bit = ~used & (used + 1)
        for i in column:
            taken[i] |= bit
        colors[j] = bit.bit_length() - 1
    return Coloring(np.array(colors, np.int32), max(colors, default=-1) + 1)
