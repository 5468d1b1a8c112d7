"""Masks of the parts of a matrix."""

import operator
from functools import lru_cache
from typing import Any

import numpy as np

KEPT = ("diagonal", "off_diagonal", "lower", "strict_lower", "upper")

CACHED_MASK_MAX_ENTRIES = 65536
"""Largest mask (in entries) that is cached: creating one takes as long as using it."""


def mask_on(xp: Any, keep: str, m: int, n: int) -> Any:
    """Mask of a part, as an array of a library."""
    i, j = xp.arange(m)[:, None], xp.arange(n)[None, :]
    return {
        "diagonal": operator.eq,
        "off_diagonal": operator.ne,
        "lower": operator.ge,
        "strict_lower": operator.gt,
        "upper": operator.le,
    }[keep](i, j)


@lru_cache(maxsize=64)
def _small_mask(keep: str, m: int, n: int) -> Any:
    mask = mask_on(np, keep, m, n)
    mask.flags.writeable = False
    return mask


def mask_of(keep: str, m: int, n: int) -> Any:
    """Mask of a part, as an array of the host."""
    return _small_mask(keep, m, n) if m * n <= CACHED_MASK_MAX_ENTRIES else mask_on(np, keep, m, n)
