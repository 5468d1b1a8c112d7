"""The arena: the memory of all temporaries of a function, laid out by one formula for code and for callers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tenferro_cpu.native.builder import Int, Pointer
from tenferro_cpu.native.whole._sizes import Sizes
from tenferro_tensor.loop_ir import Buffer, LoopFunction
from tenferro_tensor_core import DimLike, evaluate

LINE: Final = 64
"""Bytes to which temporaries are aligned, and the gap between them."""


def _bytes(buffer: Buffer) -> DimLike:
    size: DimLike = buffer.dtype.itemsize
    for extent in buffer.shape:
        size = size * extent
    return size


def arena_bytes(function: LoopFunction, sizes: Mapping[str, int]) -> int:
    """Bytes of the arena for values of the symbolic sizes.

    >>> import numpy as np
    >>> from tenferro_tensor_core import dim
    >>> pair = [Buffer(k, np.dtype("float64"), (dim("n"), 3)) for k in (0, 1)]
    >>> arena_bytes(LoopFunction(("n",), (), (), (), tuple(pair), ()), {"n": 10})
    640
    """
    return sum([(evaluate(_bytes(b), sizes) + 2 * LINE - 1) // LINE * LINE for b in function.temporaries])


def place_temporaries(function: LoopFunction, arena: Pointer, sizes: Sizes) -> dict[int, Pointer]:
    """The address of each temporary, by number of its buffer; in step with `arena_bytes`."""
    found, offset = {}, Int(sizes.block, "0")
    for buffer in function.temporaries:
        found[buffer.number] = arena.element("i8", offset)
        size = _bytes(buffer)
        if isinstance(size, int):
            offset = offset.plus((size + 2 * LINE - 1) // LINE * LINE)
        else:
            offset = offset.plus(sizes.of(size).plus(2 * LINE - 1) & -LINE)
    return found
