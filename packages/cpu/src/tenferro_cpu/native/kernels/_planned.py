"""Planned reductions: one callable per layout of the operand that allocates the result and runs (planned.c).

The interpreter finds the callable by shape and strides; the callable writes the start address of the operand into a
copy of the walk's words. Operands of other dtypes and misaligned ones go to the fallback.
"""

from collections.abc import Callable
from math import prod
from typing import Any, Final

import numpy as np

from tenferro_cpu.native._extension import compiled
from tenferro_cpu.native.kernels._driver import DriveArguments, words
from tenferro_cpu.native.kernels._fused_entry import unpooled
from tenferro_cpu.native.kernels._limits import TEAM_MIN_NS

MAX_WORDS: Final = 256
"""Maximum words of a walk, which are copied to the stack in every call."""


def planned(
    step: DriveArguments,
    dtype: np.dtype[Any],
    shape: tuple[int, ...],
    fallback: Callable[..., Any],
    *,
    cost: float,
) -> Callable[..., Any] | None:
    """The callable for a layout, or None if the walk is too large for it.

    Args:
        step: the walk for the layout.
        dtype: dtype of the operand and of the result, which is new and contiguous.
        shape: extents of the result.
        fallback: called with the same operand for everything else.
        cost: nanoseconds per element.
    """
    block = words((0, 0), step)
    if prod(shape) > unpooled(dtype) or cost * step.elements > TEAM_MIN_NS or len(block) > MAX_WORDS:
        return None
    return compiled.PlannedReduction(step.kernel, block.tobytes(), (dtype, dtype), 1, shape, fallback)
