"""Arrays inside a loop over vectors: they are read from and written to `Port`s, with or without a stride."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tenferro_cpu.native.codegen.builder import LLVM_TYPES, Block, Int, Pointer, Vec
from tenferro_cpu.native.codegen.builder import _memory as memory
from tenferro_cpu.native.codegen.operations._value import Pair, Value, kind_of


@dataclass(frozen=True, slots=True)
class Port:
    """One array inside a loop.

    Attributes:
        dtype: its dtype.
        pointer: the element of the first iteration.
        stride: bytes from one iteration to the next; None for contiguous elements.
        steps: the same for each lane of a vector.
    """

    dtype: np.dtype[Any]
    pointer: Pointer
    stride: Int | None = None
    steps: Vec | None = None

    @property
    def element(self) -> memory.Element:
        """Layout of one number in memory: a part of a complex one."""
        dtype = self.dtype
        llvm = "i8" if dtype.kind == "b" else LLVM_TYPES[self.kind]
        return memory.Element(llvm, dtype.itemsize // (2 if self.cplx else 1))

    @property
    def kind(self) -> str:
        """Element kind of its vectors."""
        return kind_of(self.dtype)

    @property
    def cplx(self) -> bool:
        """Whether each element is two numbers."""
        return self.dtype.kind == "c"

    @property
    def boolean(self) -> bool:
        """Whether elements are bytes in memory and bits in vectors."""
        return self.dtype.kind == "b"


def load(block: Block, port: Port, starts: Sequence[Int], mask: Vec | None = None, idle: str = "") -> Value:
    """Load vectors starting at the given indices, one per interleaved vector.

    The mask has the first lane set, whose element fills the lanes outside, unless `idle` is what fills them.
    """
    numbers = [_load(block, port, start, mask.names[0] if mask else "", idle) for start in starts]
    parts = [Vec(block, port.kind, column) for column in zip(*numbers)]
    return Pair(*parts) if port.cplx else parts[0]


def _load(block: Block, port: Port, start: Int, mask: str, idle: str) -> tuple[str, ...]:
    w, element = block.lanes, port.element
    if port.stride is not None:
        names = [memory.gather(block, places, element, mask) for places in _places(block, port, start)]
    elif port.cplx:
        wide = memory.doubled(block, mask) if mask else ""
        both = memory.load(block, _first(port, start), element, 2 * w, wide, period=2, idle=idle)
        halves = (list(range(part, 2 * w, 2)) for part in (0, 1))
        names = [memory.reordered(block, element, both, 2 * w, half) for half in halves]
    else:
        names = [memory.load(block, _first(port, start), element, w, mask, idle=idle)]
    return (memory.as_mask(block, names[0]),) if port.boolean else tuple(names)


def store(
    block: Block, port: Port, starts: Sequence[Int], value: Value, mask: Vec | None = None, *, stream: bool = False
) -> None:
    """Store vectors; `stream` writes past the caches and requires 64-byte aligned whole vectors."""
    w, element, lanes = block.lanes, port.element, mask.names[0] if mask else ""
    if port.boolean:
        assert isinstance(value, Vec)
        value = block.cast("zext", value, "i8")
    columns = (value.re.names, value.im.names) if isinstance(value, Pair) else (value.names,)
    for start, names in zip(starts, zip(*columns)):
        if port.stride is not None:
            for name, places in zip(names, _places(block, port, start)):
                memory.scatter(block, places, element, name, lanes)
        elif port.cplx:
            order = [k + part * w for k in range(w) for part in (0, 1)]
            both = memory.reordered(block, element, names[0], w, order, names[1])
            wide = memory.doubled(block, lanes) if lanes else ""
            memory.store(block, _first(port, start), element, both, 2 * w, wide, stream=stream)
        else:
            memory.store(block, _first(port, start), element, names[0], w, lanes, stream=stream)


def _first(port: Port, start: Int) -> Pointer:
    return port.pointer.item(port.element.llvm, start * 2 if port.cplx else start)


def _places(block: Block, port: Port, start: Int) -> list[str]:
    """Addresses of strided lanes; of both parts for complex numbers."""
    assert port.stride is not None and port.steps is not None
    base = port.pointer.offset(start * port.stride)
    bases = [base, base.offset(port.element.align)] if port.cplx else [base]
    return [memory.addresses(block, b, port.steps.names[0]) for b in bases]
