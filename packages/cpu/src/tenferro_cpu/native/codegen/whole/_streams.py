"""Stores past the caches, for nests that touch more memory than the caches hold.

A cache line that is written whole need not be read first, and evicts nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Final

from tenferro_cpu.native.codegen.builder import Block, Flag, Int
from tenferro_cpu.native.codegen.whole import _ports as ports
from tenferro_tensor.loop_ir import Affine, For, Load, Store, everything
from tenferro_tensor_core import DimLike

LINE: Final = 64
"""Bytes of a cache line."""

STREAM_MIN_VECTOR_BYTES: Final = 16
"""Smallest vector that is stored past the caches."""

STREAM_MIN_PASSES: Final = 4
"""Minimum passes of the main loop for which stores past the caches justify their prologue."""


class Streams:
    """The prologue of a loop with stores that may bypass the caches.

    Args:
        block: instructions on vectors.
        written: start of the stores, by buffer and position.
        far: whether the nest touches more memory than the caches hold.
    """

    def __init__(self, block: Block, written: Mapping[tuple[int, Affine], ports.Port], far: Flag) -> None:
        self.block, self.ports, self.far = block, written, far

    def head(self, length: Int, step: int) -> tuple[Int, Flag]:
        """Iterations before the first whole cache line, and whether bypassing the caches pays from there.

        Args:
            length: number of iterations.
            step: iterations per pass of the main loop.
        """
        b, (first, *others) = self.block, self.ports.values()
        size = first.dtype.itemsize
        before = (Int(b, "0") - _address(b, first)) & (streamed_bytes(b, first) - 1)
        head = before // size
        odd = before - head * size
        for port in others:
            place = _address(b, port) + head * port.dtype.itemsize
            beside = place & (streamed_bytes(b, port) - 1)
            odd = Int(b, b.raw(f"or i64 {odd.name}, {beside.name}"))
        return head, odd.equals(0) & (length > STREAM_MIN_PASSES * step)


def streamed_bytes(block: Block, port: ports.Port) -> int:
    """Alignment in bytes of vectors that bypass the caches; 0 if they do not."""
    size = min(LINE, block.lanes * port.dtype.itemsize)
    return size if port.stride is None and size >= STREAM_MIN_VECTOR_BYTES else 0


def touched_bytes(loops: Sequence[For]) -> DimLike:
    """Approximate memory that nested loops touch through the statements of the innermost one."""
    sizes = {s.buffer.number: s.buffer.dtype.itemsize for s in loops[-1].body if isinstance(s, Load | Store)}
    return prod([s.extent for s in loops]) * sum(sizes.values())


def only_written(s: For) -> frozenset[int]:
    """Numbers of the buffers that a nest writes and does not read."""
    inside = list(everything((s,)))
    loaded = {t.buffer.number for t in inside if isinstance(t, Load)}
    return frozenset({t.buffer.number for t in inside if isinstance(t, Store)} - loaded)


def _address(block: Block, port: ports.Port) -> Int:
    return Int(block, block.raw(f"ptrtoint ptr {port.pointer.name} to i64"))
