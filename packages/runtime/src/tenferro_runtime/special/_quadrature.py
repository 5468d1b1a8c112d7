"""Nodes and weights, and where an exponential has decayed: for integrals of all elements of an array at a time."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

import numpy as np

DECAY: Final = 46.0
"""Integrands are cut off where they have fallen by ``exp(-46)``, beyond double precision."""

BLOCK: Final = 4096
"""Elements treated at a time, so that tables of elements by nodes stay small."""


@lru_cache(maxsize=8)
def legendre(n: int) -> tuple[Any, Any]:
    """Nodes on [0, 1] and weights of Gauss and Legendre."""
    x, w = np.polynomial.legendre.leggauss(n)
    return (x + 1) / 2, w / 2


@lru_cache(maxsize=8)
def laguerre(n: int) -> tuple[Any, Any]:
    """Nodes and weights of Gauss and Laguerre, exact for ``exp(-s)`` times a polynomial of degree ``2 n - 1``."""
    return np.polynomial.laguerre.laggauss(n)


def cut_off(bound: Any, exponent: Callable[[Any], tuple[Any, Any]], steps: int = 6) -> Any:
    """Where a convex exponent reaches `DECAY`, or somewhat further: Newton's method from an upper bound.

    Args:
        bound: where it is at least `DECAY`.
        exponent: its value and its slope.
        steps: of Newton's method.
    """
    v = bound
    for _ in range(steps):
        value, slope = exponent(v)
        v = np.where(slope > 0, v - np.maximum(value - DECAY, 0) / slope, v)
    return v


def weighted_sum(values: Any, weights: Any, width: Any) -> Any:
    """Integrals over intervals of some widths, by the values at the nodes, one row for each."""
    return (values @ weights) * np.broadcast_to(width, (len(values), 1))[:, 0]


def in_blocks(compute: Callable[..., Any], operands: tuple[Any, ...], block: int = BLOCK) -> Any:
    """A function of vectors, applied to so many elements at a time."""
    n = len(operands[0])
    if n <= block:
        return compute(*operands)
    return np.concatenate([compute(*[x[i : i + block] for x in operands]) for i in range(0, n, block)])
