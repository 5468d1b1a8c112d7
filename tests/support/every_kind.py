"""A program whose kernels are of every kind, and sizes around those of groups."""

from typing import Any, Final

import numpy as np

import tenferro_runtime as tr
from tenferro_gpu.rendering import BLOCK
from tenferro_gpu.whole import MIN_PART

SIZES: Final = (
    (0, 0), (0, 5), (5, 0), (1, 1), (3, BLOCK - 1), (2, BLOCK), (7, BLOCK + 1), (5, 2 * BLOCK + 3), (2, 3 * MIN_PART),
)  # fmt: skip
"""Rows and columns: none, one, one less and one more than a group, and several parts."""


def every_kind(x: Any, few: Any, small: Any) -> tuple[Any, ...]:
    """Results of kernels of every kind: items, groups, parts of all and of few rows, one group."""
    rows = tr.sum(x, axis=1, keepdims=True)
    mixed = tr.fori_loop(0, 4, lambda i, c: tr.flip(c) * 0.5 + tr.sum(c), small)
    grown = tr.fori_loop(0, 2, lambda i, c: c * 0.5 + tr.sum(c), few)
    total = tr.while_loop(lambda c: c > 10.0, lambda c: c * 0.25, tr.sum(x))
    chosen = tr.cond(total > 1.0, lambda c: c[::-1], lambda c: c + tr.prod(c), small)
    return (
        tr.tanh(x) + x[:, ::-1], rows, x - rows, tr.sum(x, axis=0), tr.sum(x) + tr.sum(x * x),
        tr.sum(few * few, axis=1), mixed, grown, total, chosen,
    )  # fmt: skip


def operands(n: int, m: int) -> list[np.ndarray[Any, Any]]:
    """Operands for these numbers of rows and columns."""
    rng = np.random.default_rng(0)
    return [rng.uniform(-1, 1, shape) for shape in ((n, m), (3, m), (40,))]
