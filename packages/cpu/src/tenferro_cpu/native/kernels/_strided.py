"""Calls planned in C: operands of any strides, without a plan per shape (strided.c)."""

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from tenferro_cpu.native._extension import compiled
from tenferro_cpu.native.codegen.machine._jit import engine
from tenferro_cpu.native.kernels._forms import Access
from tenferro_cpu.native.kernels._fused_entry import part_size, unpooled
from tenferro_cpu.native.kernels._limits import MAX_OPERANDS
from tenferro_cpu.native.memory._pool import pool
from tenferro_cpu.native.threads._team import team
from tenferro_tensor_core.forks import new_lock

MAX_VARIANTS: Final = 32
"""Maximum number of access patterns per table; others are planned by the fallback."""

_BITS: Final = {Access.UNIT: 0, Access.FIXED: 1, Access.STRIDED: 2}
"""Two bits for each operand and result in the key of a variant."""


class Variants:
    """Machine code by access pattern along a row, in a table that C code reads.

    Attributes:
        table: pairs of a key and an address, terminated by one without an address.
    """

    def __init__(self) -> None:
        self.table = np.zeros((MAX_VARIANTS + 1, 2), np.int64)
        self._count = 0
        self._lock = new_lock()

    def add(self, accesses: Sequence[Access], code: int) -> None:
        """Register `code` for these accesses of operands and results, at most `MAX_OPERANDS`."""
        if len(accesses) > MAX_OPERANDS:
            return
        key = 0
        for access in accesses:
            key = key << 2 | _BITS[access]
        with self._lock:
            if self._count < MAX_VARIANTS and key not in self.table[: self._count, 0]:
                self.table[self._count, 0] = key
                self.table[self._count, 1] = code  # last: calls stop at a row without code
                self._count += 1


def strided(
    dtypes: Sequence[np.dtype[Any]],
    out: np.dtype[Any],
    variants: Variants,
    fallback: Callable[..., Any],
    *,
    cost: float,
    watch: bool = False,
    scan: bool = False,
    most: int | None = None,
) -> Callable[..., Any]:
    """An element-wise op as a callable of arrays of any strides.

    Args:
        dtypes: dtypes of the operands.
        out: dtype of the result.
        variants: its machine code; missing variants go to the fallback.
        fallback: called with the same arguments for everything else.
        cost: nanoseconds per element.
        watch: whether the fallback recomputes if the op divided by zero, overflowed or produced a NaN.
        scan: the same if the result is not finite.
        most: larger spaces go to the fallback.
    """
    team()

    def make(most: int, large: Callable[..., Any]) -> Callable[..., Any]:
        return compiled.StridedEntry(
            variants=variants.table, dtypes=(*dtypes, out), fallback=fallback, large=large, most=most, cost=cost,
            watch=watch, scan=part_size(out) if scan else 0,
        )  # fmt: skip

    if most is not None:
        return make(min(most, unpooled(out)), fallback)
    have, large = pool(), fallback
    if have is not None:
        # Beyond the capacity of the caches the fallback writes past them.
        near = engine().host.near_bytes // sum([d.itemsize for d in (*dtypes, out)])
        large = have.giving_way(make(near, fallback))
    return make(unpooled(out), large)
