"""Star coloring of a symmetric pattern: neighbors differ, and no path of four vertices has only two colors.

Then each off-diagonal entry is the only one of its color in its row or in its column, so that one product per color
determines the Hessian directly (Coleman and Moré 1984; Gebremedhin, Tarafdar, Manne and Pothen 2007).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tenferro_ad.sparse._coloring import SECOND_ORDER_MAX, Coloring, keys, max_count, row_numbers
from tenferro_ad.sparse._lattice import proposals


def color_symmetric(pattern: Any, shapes: Sequence[tuple[int, ...]] = ()) -> Coloring:
    """Color a symmetric matrix such that its entries can be read from the products directly.

    Args:
        pattern: a boolean `csr_array` without duplicates, equal to its transpose.
        shapes: as in `color_columns`.
    """
    least = max_count(pattern)
    if least <= 1:
        return Coloring(np.zeros(pattern.shape[0], np.int32), least)
    large = pattern.shape[0] > SECOND_ORDER_MAX
    greedy = None if large else _greedy(pattern)
    for colors, count in proposals(pattern, least, shapes):
        # With rows of very different lengths, star coloring may need fewer colors than the longest row has entries.
        if (greedy is not None and greedy.number <= count) or pattern.nnz < 0.5 * least * pattern.shape[0]:
            break
        if positions(pattern, Coloring(colors, count)) is not None:
            return Coloring(colors, count)
    return _greedy(pattern) if greedy is None else greedy


def positions(pattern: Any, coloring: Coloring) -> np.ndarray[Any, Any] | None:
    """For each entry, whether to read it transposed; ``None`` if some entry can be read neither way."""
    colors, count = coloring
    here = keys(pattern, colors, count)
    alone = np.bincount(here, minlength=pattern.shape[0] * count) == 1
    plain = alone[here]
    turned = alone[pattern.indices.astype(np.int64) * count + colors[row_numbers(pattern)]]
    return ~plain if bool(np.all(plain | turned)) else None


def _greedy(pattern: Any) -> Coloring:
    """Greedy star coloring; sets of colors are bits of integers.

    For each vertex, `once` and `twice` hold the colors of at least one or two of its neighbors, and `hubs` the colors
    of neighbors that have two neighbors of its own color. A vertex must not take the color of a neighbor, nor the color
    of a vertex two steps away if the path goes through one of two neighbors of equal color, or leads to a hub of that
    color.
    """
    count = pattern.shape[0]
    columns, starts = pattern.indices.tolist(), pattern.indptr.tolist()
    colors = [-1] * count
    bits, once, twice, hubs = [0] * count, [0] * count, [0] * count, [0] * count
    for v in range(count):
        around = [w for w in columns[starts[v] : starts[v + 1]] if w != v]
        forbidden = once[v]
        for w in around:
            if bits[w]:
                forbidden |= once[w] if bits[w] & twice[v] else hubs[w]
        bit = ~forbidden & (forbidden + 1)
        bits[v], colors[v] = bit, bit.bit_length() - 1
        for w in around:
            if not once[w] & bit:
                once[w] |= bit
            elif not twice[w] & bit:
                twice[w] |= bit
                if bits[w]:
                    for u in columns[starts[w] : starts[w + 1]]:
                        if bits[u] == bit:
                            hubs[u] |= bits[w]
            elif bits[w]:
                hubs[v] |= bits[w]
            if bits[w] & twice[v]:
                hubs[w] |= bit
    return Coloring(np.array(colors, np.int32), max(colors, default=-1) + 1)
