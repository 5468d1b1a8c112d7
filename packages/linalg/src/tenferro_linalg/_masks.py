"""Which entries of a matrix belong to a part of it."""

import operator
from functools import lru_cache
from typing import Any

import numpy as np

KEPT = ("diagonal", "off_diagonal", "lower", "strict_lower", "upper")

KEPT_MASK = 65536
"""Entries up to which the mask of a part is kept: making it takes as long as using it."""


def mask_on(xp: Any, keep: str, m: int, n: int) -> Any:
    """Which entries a part keeps, as an array of a library."""
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
    """Which entries a part keeps, as an array of the host."""
    return _small_mask(keep, m, n) if m * n <= KEPT_MASK else mask_on(np, keep, m, n)
