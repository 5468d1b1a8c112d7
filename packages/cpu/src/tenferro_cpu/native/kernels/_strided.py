"""Calls planned in C: operands of any strides, without a plan per shape (strided.c)."""

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from tenferro_cpu.native._extension import compiled
from tenferro_cpu.native.kernels._fused_entry import part_size, unpooled
from tenferro_cpu.native.kernels._limits import MAX_AXES, MAX_OPERANDS
from tenferro_cpu.native.machine._jit import engine
from tenferro_cpu.native.memory._pool import pool
from tenferro_cpu.native.threads._team import team
from tenferro_tensor.device_model import Access, KernelIR
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
    kernel: KernelIR,
    variants: Variants,
    fallback: Callable[..., Any],
    *,
    cost: float,
    axes: Sequence[tuple[int, ...]] | None = None,
    rank: int = 0,
    watch: bool = False,
    scan: bool = False,
    most: int | None = None,
) -> Callable[..., Any]:
    """A callable of arrays of any strides, or `fallback` if it has too many operands or axes.

    Args:
        kernel: an element-wise kernel.
        variants: its machine code; missing variants go to the fallback.
        fallback: called with the same arguments for everything else.
        cost: nanoseconds per element.
        axes: for each operand the axes of the space that its own axes are; by default the last ones of the largest
            operand.
        rank: axes of the space, if `axes` are given.
        watch: whether the fallback recomputes if the kernel divided by zero, overflowed or produced a NaN.
        scan: the same if the only result is not finite.
        most: larger spaces go to the fallback.
    """
    every = (*kernel.inputs, *kernel.written)
    if len(every) > MAX_OPERANDS or rank > MAX_AXES or (axes is not None and not rank):
        return fallback
    team()

    def make(most: int, large: Callable[..., Any]) -> Callable[..., Any]:
        return compiled.StridedEntry(
            variants=variants.table, dtypes=tuple([o.dtype for o in every]), inputs=len(kernel.inputs),
            fallback=fallback, large=large, axes=None if axes is None else tuple(axes), rank=rank, most=most, cost=cost,
            watch=watch, scan=part_size(kernel.written[0].dtype) if scan else 0,
        )  # fmt: skip

    if most is not None:
        return make(min(most, unpooled([o.dtype for o in kernel.written])), fallback)
    have, large = pool(), fallback
    if have is not None:
        # Beyond the capacity of the caches the fallback writes past them.
        near = engine().host.near_bytes // sum([o.dtype.itemsize for o in every])
        large = have.giving_way(make(near, fallback))
    return make(unpooled([o.dtype for o in kernel.written]), large)
