"""Planned reductions: for operands of known shapes and strides one callable that makes the results and runs (laid.c).

The interpreter finds the callable by shapes and strides; it reads where the operands begin, and writes that into a copy
of the words that the walk was given for this layout. What it does not take, operands of other dtypes or misaligned
ones, goes to the fallback.
"""

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, Final

from tenferro_cpu.native._extension import compiled
from tenferro_cpu.native.kernels._driver import Step, words
from tenferro_cpu.native.kernels._fused_entry import unpooled
from tenferro_cpu.native.kernels._limits import MOST_OPERANDS, TEAM_MIN_NS
from tenferro_tensor.device_model import Operand

LARGEST: Final = 256
"""Words of the longest walk, which are copied to the stack in every call."""


def laid(
    step: Step,
    inputs: Sequence[Operand],
    written: Sequence[Operand],
    shape: tuple[int, ...],
    fallback: Callable[..., Any],
    *,
    cost: float,
) -> Callable[..., Any] | None:
    """The callable for a layout, or None where calls are too large for it.

    Args:
        step: the walk for the layout.
        inputs: the operands.
        written: the results, fresh and contiguous.
        shape: extents of the results.
        fallback: called with the same operands for everything else.
        cost: nanoseconds that one element takes.
    """
    every = (*inputs, *written)
    block = words((0,) * len(every), step)
    large = prod(shape) > unpooled(written) or cost * step.elements > TEAM_MIN_NS
    if large or len(block) > LARGEST or len(every) > MOST_OPERANDS:
        return None
    return compiled.Laid(step.kernel, block.tobytes(), tuple([o.dtype for o in every]), len(inputs), shape, fallback)


def layout_of(arrays: Sequence[Any]) -> Any:
    """What tells layouts apart, or None where an operand is no array."""
    try:
        return tuple([(x.shape, x.strides) for x in arrays])
    except AttributeError:
        return None
