"""Covering samples: a part of a product of cases in which every value of every factor stands, and every pair of them.

Faults of one value, or of two values together, are still found. `TENFERRO_THOROUGH=1` runs the whole product.
"""

from collections.abc import Hashable, Sequence
from itertools import combinations


def covering(rows: Sequence[Sequence[Hashable]]) -> list[int]:
    """Positions of rows that contain every pair of values, of two columns, that any row contains.

    The same rows give the same sample. With fewer than three columns there is nothing to leave out.

    Args:
        rows: cases, each with one value for each factor.

    Returns:
        The positions, in order.

    >>> covering([(a, b, c) for a in "xy" for b in "xy" for c in "xy"])
    [0, 3, 5, 6]
    """
    count = len(rows[0]) if rows else 0
    if count < 3:
        return list(range(len(rows)))
    columns = list(combinations(range(count), 2))
    holders: dict[Hashable, list[int]] = {}
    for at, row in enumerate(rows):
        for i, j in columns:
            holders.setdefault((i, j, row[i], row[j]), []).append(at)
    gains, found = [len(columns)] * len(rows), []
    while most := max(gains):
        found.append(gains.index(most))
        row = rows[found[-1]]
        for i, j in columns:
            for at in holders.pop((i, j, row[i], row[j]), ()):
                gains[at] -= 1
    return sorted(found)
