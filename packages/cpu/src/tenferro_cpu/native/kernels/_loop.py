"""`Looped`: a region carried out many times in a row, each time on what the time before has made.

The steps are the outer axis of one call of machine code: what a step makes lies where the next one reads it.
"""

from collections.abc import Sequence
from math import prod
from typing import Any, Final

import numpy as np

from tenferro_cpu.native.kernels._driver import Axis, drive
from tenferro_cpu.native.kernels._elementwise import Array, Fused, checked
from tenferro_cpu.native.kernels._limits import MOST_OPERANDS, TEAM_MIN_NS
from tenferro_cpu.native.machine._jit import compiles_programs
from tenferro_tensor.device_model import Access, Region
from tenferro_tensor_core import BackendUnavailableError, UnsupportedError

BLOCK: Final = 1 << 15
"""Bytes of values that only the next step reads, until their memory is used again."""

FEW: Final = 16
"""Number of steps below which a call of each costs less."""


def looped(region: Region, back: tuple[int | None, ...], moving: tuple[bool, ...]) -> "Looped | None":
    """Machine code for a region step by step, or None where this processor or this process has none."""
    whole = tuple(range(region.rank))
    if region.kernel.reduction is not None or any(axes not in ((), whole) for axes in region.axes):
        return None
    if not compiles_programs() or len(region.axes) + len(region.kernel.outputs) > MOST_OPERANDS:
        return None
    try:
        return Looped(region, back, moving)
    except (UnsupportedError, BackendUnavailableError):
        return None


class Looped:
    """A region as a function of the number of steps, the direction, and arrays; see `Backend.looped`."""

    def __init__(self, region: Region, back: tuple[int | None, ...], moving: tuple[bool, ...]) -> None:
        self.region, self.back, self.moving = region, back, moving
        self.fused = Fused(region.kernel)
        reads = tuple([Access.UNIT if axes else Access.FIXED for axes in region.axes])
        self.address = self.fused.address(reads, (Access.UNIT,) * len(region.kernel.outputs))
        self.whole = next(i for i, axes in enumerate(region.axes) if axes)

    def __call__(self, steps: int, reverse: bool, kept: tuple[bool, ...], *raws: Any) -> list[Array] | None:
        if steps < FEW:
            return None
        xs = [_with_simple_rows(x, moves) for x, moves in zip(checked(self.region.kernel, raws), self.moving)]
        shape = xs[self.whole].shape[self.moving[self.whole] :]
        size = prod(shape)
        if not size or self.fused.cost * size > TEAM_MIN_NS:
            return None
        dtypes = [o.dtype for o in self.region.kernel.written]
        # Two rows at least, so that a step does not write what it reads.
        length = min(steps, max(2, BLOCK // (size * max(dtype.itemsize for dtype in dtypes))))
        outs = [np.empty((steps if keep else length, *shape), dtype) for keep, dtype in zip(kept, dtypes)]
        if reverse:
            xs = [x[::-1] if moves else x for x, moves in zip(xs, self.moving)]
            ordered = [y[::-1] if keep else y for keep, y in zip(kept, outs)]
        else:
            ordered = outs
        self._run(steps, length, kept, size, xs, ordered)
        return [y if keep else y[(steps - 1) % length].copy() for keep, y in zip(kept, outs)]

    def _run(
        self, steps: int, length: int, kept: tuple[bool, ...], size: int, xs: Sequence[Array], outs: Sequence[Array]
    ) -> None:
        both = [*xs, *outs]
        ends = [*[bool(axes) for axes in self.region.axes], *[True] * len(outs)]
        inner = Axis(size, tuple([x.itemsize if there else 0 for x, there in zip(both, ends)]))
        writes = [y.strides[0] for y in outs]
        reads = [x.strides[0] if moves else 0 for x, moves in zip(xs, self.moving)]
        inputs, results = [x.ctypes.data for x in xs], [y.ctypes.data for y in outs]
        along = [w if k is None else writes[k] for w, k in zip(reads, self.back)]
        for start in range(0, steps, length):
            count = min(length, steps - start)
            at = [p + start * s if keep else p for p, s, keep in zip(results, writes, kept)]
            drive(self.address, [*inputs, *at], inner, [])
            inputs = [p + s if k is None else at[k] for p, s, k in zip(inputs, reads, self.back)]
            if count > 1:
                after = [p + s for p, s in zip(at, writes)]
                drive(self.address, [*inputs, *after], inner, [Axis(count - 1, (*along, *writes))])
                inputs = [p + (count - 1) * s for p, s in zip(inputs, along)]


def _with_simple_rows(x: Array, moves: bool) -> Array:
    """An array whose rows, or which itself, has its elements one after the other."""
    row = x[0] if moves else x
    return x if row.flags.c_contiguous else np.ascontiguousarray(x)
