"""Lattice colorings of stencils: the color of an index is a weighted sum of its entries modulo a number.

A proposal is checked on a sample of rows only; the caller must check it on all rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any, Final

import numpy as np

SAMPLED_ROWS: Final = 64
"""Number of rows in the sample."""

MAX_MODULUS: Final = 40
"""Maximum number of colors for which formulas are tried."""

MAX_TRIALS: Final = 4000
"""Maximum number of formulas tried on the sample."""


def proposals(
    pattern: Any, least: int, shapes: Sequence[tuple[int, ...]] = ()
) -> Iterator[tuple[np.ndarray[Any, Any], int]]:
    """Proposed colors of the columns and their number, which increases from `least`."""
    columns = pattern.shape[1]
    if least > MAX_MODULUS or columns <= least:
        return
    shape = shapes[0] if len(shapes) == 1 else (columns,)
    shape = tuple([n for n in shape if n > 1]) or (columns,)
    sample = _sample(pattern)
    trials = 0
    for modulus in range(least, min(least + 3, MAX_MODULUS) + 1):
        for weights in product(range(modulus), repeat=len(shape) - 1):
            trials += 1
            if trials > MAX_TRIALS:
                return
            numbers = (*weights, 1)
            if _separated(sample, shape, numbers, modulus):
                yield _colors(np.arange(columns), shape, numbers, modulus).astype(np.int32), modulus


def _sample(pattern: Any) -> list[np.ndarray[Any, Any]]:
    """Columns of a sample of the rows with the most entries."""
    counts = np.diff(pattern.indptr)
    fullest = np.flatnonzero(counts == counts.max(initial=0))
    chosen = fullest[np.linspace(0, len(fullest) - 1, min(SAMPLED_ROWS, len(fullest))).astype(np.int64)]
    return [pattern.indices[pattern.indptr[i] : pattern.indptr[i + 1]] for i in chosen]


def _colors(
    columns: np.ndarray[Any, Any], shape: tuple[int, ...], weights: tuple[int, ...], modulus: int
) -> np.ndarray[Any, Any]:
    indices = np.unravel_index(columns, shape)
    total = np.zeros(len(columns), np.int64)
    for index, w in zip(indices, weights, strict=True):
        total += w * index
    return total % modulus


def _separated(
    sample: list[np.ndarray[Any, Any]], shape: tuple[int, ...], weights: tuple[int, ...], modulus: int
) -> bool:
    return all(len({*_colors(row, shape, weights, modulus).tolist()}) == len(row) for row in sample)
