"""Stores past the caches, of nests that touch more memory than these hold.

A line that is written whole need not be read before, and puts nothing else out of the caches.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Final

from tenferro_cpu.native.builder import Block, Flag, Int
from tenferro_cpu.native.kernels import _ports as ports
from tenferro_tensor.device_model import Access
from tenferro_tensor.loop_ir import Affine, For, Load, Store, everything
from tenferro_tensor_core import DimLike

LINE: Final = 64
"""Bytes of a line of the caches."""

NARROWEST: Final = 16
"""Bytes of the smallest vectors that are stored past the caches."""

LEAST: Final = 4
"""Turns of the main loop from which stores past the caches are worth what is done before them."""


class Streams:
    """The beginning of a loop with stores that may go past the caches.

    Args:
        block: instructions on vectors.
        written: where the stores begin, by buffer and place.
        far: whether the nest touches more memory than the caches hold.
    """

    def __init__(self, block: Block, written: Mapping[tuple[int, Affine], ports.Port], far: Flag) -> None:
        self.block, self.ports, self.far = block, written, far

    def head(self, length: Int, step: int) -> tuple[Int, Flag]:
        """Iterations before the first whole line, and whether it pays to go past the caches from there on.

        Args:
            length: iterations.
            step: iterations of a turn of the main loop.
        """
        b, (first, *others) = self.block, self.ports.values()
        size = first.operand.dtype.itemsize
        before = (Int(b, "0") - _address(b, first)) & (streamed_bytes(b, first) - 1)
        head = before // size
        odd = before - head * size
        for port in others:
            place = _address(b, port) + head * port.operand.dtype.itemsize
            beside = place & (streamed_bytes(b, port) - 1)
            odd = Int(b, b.raw(f"or i64 {odd.name}, {beside.name}"))
        return head, odd.equals(0) & (length > LEAST * step)


def streamed_bytes(block: Block, port: ports.Port) -> int:
    """Bytes to which vectors are aligned that go past the caches; 0 where they do not."""
    size = min(LINE, block.lanes * port.operand.dtype.itemsize)
    return size if port.operand.access is Access.UNIT and size >= NARROWEST else 0


def touched_bytes(loops: Sequence[For]) -> DimLike:
    """About the memory that loops, each inside of the one before, touch by the statements of the last one."""
    sizes = {s.buffer.number: s.buffer.dtype.itemsize for s in loops[-1].body if isinstance(s, Load | Store)}
    return prod([s.extent for s in loops]) * sum(sizes.values())


def only_written(s: For) -> frozenset[int]:
    """Numbers of the buffers that a nest writes to and does not read."""
    inside = list(everything((s,)))
    loaded = {t.buffer.number for t in inside if isinstance(t, Load)}
    return frozenset({t.buffer.number for t in inside if isinstance(t, Store)} - loaded)


def _address(block: Block, port: ports.Port) -> Int:
    return Int(block, block.raw(f"ptrtoint ptr {port.pointer.name} to i64"))
