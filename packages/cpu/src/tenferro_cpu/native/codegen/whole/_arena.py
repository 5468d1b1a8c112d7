"""The arena: the memory of all temporaries of a function, laid out by one formula shared by code and callers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Final

from tenferro_cpu.native.codegen.builder import Int, Pointer
from tenferro_cpu.native.codegen.whole._sizes import Sizes
from tenferro_tensor.loop_ir import LoopFunction, plan_arena
from tenferro_tensor_core import DimLike, evaluate

LINE: Final = 64
"""Alignment of temporaries in bytes, and the gap between them."""


def arena_slots(function: LoopFunction) -> dict[DimLike, int]:
    """How many slots of each size in bytes the arena of a function has.

    Args:
        function: the function.

    Returns:
        The numbers by size.
    """
    return dict(Counter(plan_arena(function).slots))


def arena_bytes(slots: Mapping[DimLike, int], sizes: Mapping[str, int]) -> int:
    """Size of the arena for values of the symbolic sizes.

    Args:
        slots: the result of `arena_slots`, which takes longer.
        sizes: value of each symbolic size.

    Returns:
        The number of bytes.

    >>> import numpy as np
    >>> from tenferro_tensor.loop_ir import Buffer
    >>> from tenferro_tensor_core import dim
    >>> pair = [Buffer(k, np.dtype("float64"), (dim("n"), 3)) for k in (0, 1)]
    >>> arena_bytes(arena_slots(LoopFunction(("n",), (), (), (), (pair[0],), ())), {"n": 10})
    320
    >>> arena_bytes(arena_slots(LoopFunction(("n",), (), (), (), tuple(pair), ())), {"n": 10})  # nobody uses them
    320
    """
    return sum([(evaluate(n, sizes) + 2 * LINE - 1) // LINE * LINE * count for n, count in slots.items()])


def arena_size(function: LoopFunction, sizes: Sizes) -> Int:
    """Like `arena_bytes`, in a register."""
    total = Int(sizes.block, "0")
    for size in plan_arena(function).slots:
        total = total.plus(_slot(size, sizes))
    return total


def _slot(size: DimLike, sizes: Sizes) -> Int | int:
    """Bytes of a slot including the gap after it."""
    if isinstance(size, int):
        return (size + 2 * LINE - 1) // LINE * LINE
    return sizes.of(size).plus(2 * LINE - 1) & -LINE


def place_temporaries(function: LoopFunction, arena: Pointer, sizes: Sizes) -> dict[int, Pointer]:
    """The address of each temporary, by number of its buffer; consistent with `arena_bytes`."""
    plan, slots, offset = plan_arena(function), [], Int(sizes.block, "0")
    for size in plan.slots:
        slots.append(arena.element("i8", offset))
        offset = offset.plus(_slot(size, sizes))
    return {number: slots[k] for number, k in plan.slot_of.items()}
