"""Planned reductions: one callable per layout of the operands that allocates the results and runs (planned.c).

The interpreter finds the callable by shapes and strides; the callable writes the start addresses of the operands into a
copy of the walk's words. Operands of other dtypes and misaligned ones go to the fallback.
"""

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, Final

from tenferro_cpu.native._extension import compiled
from tenferro_cpu.native.kernels._driver import DriveArguments, words
from tenferro_cpu.native.kernels._fused_entry import unpooled
from tenferro_cpu.native.kernels._limits import MAX_OPERANDS, TEAM_MIN_NS
from tenferro_tensor.device_model import Operand

MAX_WORDS: Final = 256
"""Maximum words of a walk, which are copied to the stack in every call."""


def planned(
    step: DriveArguments,
    inputs: Sequence[Operand],
    written: Sequence[Operand],
    shape: tuple[int, ...],
    fallback: Callable[..., Any],
    *,
    cost: float,
) -> Callable[..., Any] | None:
    """The callable for a layout, or None if the walk is too large for it.

    Args:
        step: the walk for the layout.
        inputs: the operands.
        written: the results, new and contiguous.
        shape: extents of the results.
        fallback: called with the same operands for everything else.
        cost: nanoseconds per element.
    """
    every = (*inputs, *written)
    block = words((0,) * len(every), step)
    large = prod(shape) > unpooled([o.dtype for o in written]) or cost * step.elements > TEAM_MIN_NS
    if large or len(block) > MAX_WORDS or len(every) > MAX_OPERANDS:
        return None
    return compiled.PlannedReduction(
        step.kernel, block.tobytes(), tuple([o.dtype for o in every]), len(inputs), shape, fallback
    )


def layout_of(arrays: Sequence[Any]) -> Any:
    """Key of a layout, or None if an operand is not an array."""
    try:
        return tuple([(x.shape, x.strides) for x in arrays])
    except AttributeError:
        return None
