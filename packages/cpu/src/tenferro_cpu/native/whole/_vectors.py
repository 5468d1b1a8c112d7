"""Innermost loops as explicit vectors: a loop over several vectors at once, and the rest under a mask.

Mathematics is written out in line as the kernels have it, in their width and with their bits.
"""

from __future__ import annotations

from typing import Final

from tenferro_cpu.native.builder import LLVM_TYPES, Block, Branch, DoLoop, Int, Pointer, Vec
from tenferro_cpu.native.builder import _memory as memory
from tenferro_cpu.native.kernels import _ports as ports
from tenferro_cpu.native.kernels._render import interleaving
from tenferro_cpu.native.machine._host import Host
from tenferro_cpu.native.operations._convert import resized
from tenferro_cpu.native.operations._ops import apply
from tenferro_cpu.native.operations._value import Value, kind_of, literal
from tenferro_cpu.native.whole._lanes import Lanes, lanes_of, same_bits
from tenferro_cpu.native.whole._statements import Writer
from tenferro_cpu.native.whole._values import joined, parts, stored_type
from tenferro_tensor.device_model import Access, Literal, Operand
from tenferro_tensor.loop_ir import Affine, Buffer, For, Let, Load, Order, Position, Reg, Store
from tenferro_tensor.loop_ir import Value as Number
from tenferro_tensor_core import DimLike

BYTE: Final = 8
"""Bits of one."""

Place = tuple[Int, Int]
"""Where the first iteration is, and how far the next one."""


def vector_loop(writer: Writer, s: For, host: Host) -> VectorLoop | None:
    """The loop as vectors, or None where single numbers serve better."""
    if s.order is not Order.ANY or s.carries or s.swaps:
        return None
    lanes = lanes_of(s, writer.block.fused)
    if lanes is None or (lanes.apart and not lanes.mathematics):
        return None
    width = BYTE * host.vector_bytes
    if (isinstance(s.extent, int) and s.extent < width // lanes.bits) or not lanes.varying:
        return None
    if host.tables and lanes.mathematics and not same_bits(lanes, width):
        return None
    return VectorLoop(writer, s, lanes, host)


class VectorLoop:
    """One loop as vectors.

    Args:
        writer: of the function that it is part of.
        s: the loop.
        lanes: what it means for vectors.
        host: the processor.

    Attributes:
        block: instructions on vectors; it writes to the function.
        width: vectors that the main loop takes at once.
    """

    def __init__(self, writer: Writer, s: For, lanes: Lanes, host: Host) -> None:
        self.writer, self.s, self.lanes, self.host = writer, s, lanes, host
        self.width = interleaving(lanes.instructions, host)
        scalar = writer.block
        self.block = Block(scalar.module, BYTE * host.vector_bytes // lanes.bits, self.width, scalar.fused, host.tables)
        self._fixed: dict[int, list[Vec]] = {}
        self._places: dict[Affine, Place] = {}
        self._ports: dict[tuple[int, Affine], ports.Port] = {}
        self._values: dict[int, Value] = {}

    def write(self, start: Int, end: Int) -> None:
        """The iterations from `start` on, below `end`."""
        scalar = self.writer.block
        with Branch(scalar, start < end):
            self.writer.write(self.lanes.uniform)
            self.writer.registers[self.s.index.number] = Vec(scalar, "i64", (start.name,))
            count = end - start
            self._place_all()
            self.block.take_over(scalar)
            self._prepare()
            self._over_elements(Int(self.block, count.name))
            scalar.take_over(self.block)

    def _over_elements(self, n: Int) -> None:
        b = self.block
        step = b.lanes * self.width
        main = n & -step
        with Branch(b, main > 0), DoLoop(b, 0, main, step) as loop:
            self._body([loop.index + k * b.lanes for k in range(self.width)], None)
        b.interleave = 1
        with Branch(b, main < n), DoLoop(b, main, n, b.lanes) as loop:
            self._body([loop.index], b.below(loop.index, n))

    # What all iterations share.

    def _place_all(self) -> None:
        """Places in the first iteration, and how far they move; integer registers that move likewise."""
        w = self.writer
        self._place(Affine.of(self.s.index))
        for s in self.lanes.varying:
            if isinstance(s, Load | Store):
                self._place(s.at)
            elif isinstance(s, Position):
                first, _ = self._place(s.index)
                w.registers[s.result.number] = Vec(w.block, "i64", (first.name,))
                self._place(Affine.of(s.result))

    def _place(self, at: Affine) -> Place:
        found = self._places.get(at)
        if found is None:
            regular = Affine(at.constant, tuple([t for t in at.terms if not self._is_scattered(t[0])]))
            step = self.lanes.step(regular)
            assert not isinstance(step, str)
            first, by = self.writer.place(regular), self.writer.size(step)
            found = self._places[at] = Int(self.block, first.name), Int(self.block, by.name)
        return found

    def _is_scattered(self, reg: Reg) -> bool:
        return reg.number in self.lanes.differing and reg.number not in self.lanes.steps

    def _prepare(self) -> None:
        """Ports, and numbers that all iterations share in every lane."""
        for s in self.lanes.varying:
            if isinstance(s, Load | Store) and not self._scattered_terms(s.at):
                self._ports[s.buffer.number, s.at] = self._port(s.buffer, s.at)
            for number in s.args if isinstance(s, Let) else (s.value,) if isinstance(s, Store) else ():
                if isinstance(number, Reg) and not self.lanes.differs(number):
                    self._fixed[number.number] = [
                        self.block.repeated(x.kind, LLVM_TYPES[x.kind], x.names[0])
                        for x in parts(self.writer.value(number))
                    ]

    def _scattered_terms(self, at: Affine) -> list[tuple[Reg, DimLike]]:
        return [term for term in at.terms if self._is_scattered(term[0])]

    def _port(self, buffer: Buffer, at: Affine) -> ports.Port:
        b, (first, by) = self.block, self._places[at]
        pointer = self._pointer(buffer, first)
        if self.lanes.step(at) == 1:
            return ports.Port(Operand(buffer.dtype), pointer)
        stride = by * buffer.dtype.itemsize
        steps = b.repeated("i64", "i64", stride.name) * b.lane_numbers()
        return ports.Port(Operand(buffer.dtype, Access.STRIDED), pointer, stride, steps)

    def _pointer(self, buffer: Buffer, first: Int) -> Pointer:
        llvm = f"[{buffer.dtype.itemsize} x i8]"
        return Pointer(self.block, self.writer.pointer(buffer).name).element(llvm, first)

    # One iteration of several vectors.

    def _body(self, starts: list[Int], mask: Vec | None) -> None:
        b = self.block
        self._values = {}
        for s in self.lanes.varying:
            if isinstance(s, Let):
                dtypes = tuple([a.dtype for a in s.args])
                args = [self._value(a, starts) for a in s.args]
                self._values[s.result.number] = apply(b, s.op, dtypes, s.result.dtype, *args)
            elif isinstance(s, Load):
                self._values[s.result.number] = self._load(s, starts, mask)
            elif isinstance(s, Store):
                self._store(s, starts, mask)

    def _value(self, number: Number, starts: list[Int]) -> Value:
        b = self.block
        if isinstance(number, Literal):
            return literal(b, number.value, number.dtype)
        if not self.lanes.differs(number):
            return joined([Vec(b, x.kind, x.names * b.interleave) for x in self._fixed[number.number]])
        found = self._values.get(number.number)
        if found is None:
            found = self._values[number.number] = self._numbers(Affine.of(number), starts)
        return found

    def _numbers(self, at: Affine, starts: list[Int]) -> Vec:
        """A place in every lane."""
        b, (first, by) = self.block, self._places[at]
        steps = b.repeated("i64", "i64", by.name) * b.lane_numbers()
        columns = [b.repeated("i64", "i64", (first + by * start).name) + steps for start in starts]
        found = Vec(b, "i64", tuple([x.names[0] for x in columns]))
        for reg, coefficient in self._scattered_terms(at):
            x = self._value(reg, starts)
            assert isinstance(x, Vec)
            if x.kind != "i64":
                x = resized(x, "i64", reg.dtype.kind == "i")
            each = b.repeated("i64", "i64", self.writer.size(coefficient).name)
            found = found + x * Vec(b, "i64", each.names * b.interleave)
        return found

    def _distances(self, s: Load | Store, starts: list[Int]) -> Vec:
        """Bytes from the beginning of a buffer to each lane."""
        return self._numbers(s.at, starts) * s.buffer.dtype.itemsize

    def _elements(self, buffer: Buffer) -> tuple[memory.Element, list[Pointer]]:
        """What lies at a place, and pointers from which it is counted: two for a complex number."""
        llvm, size = stored_type(buffer.dtype)
        base = Pointer(self.block, self.writer.pointer(buffer).name)
        bases = [base, base.offset(size)] if buffer.dtype.kind == "c" else [base]
        return memory.Element(llvm, size), bases

    def _load(self, s: Load, starts: list[Int], mask: Vec | None) -> Value:
        b, port = self.block, self._ports.get((s.buffer.number, s.at))
        if port is not None:
            return ports.load(b, port, starts, mask)
        element, bases = self._elements(s.buffer)
        found = []
        for base in bases:
            names = [
                memory.gather(b, memory.addresses(b, base, d), element, mask.names[0] if mask else "")
                for d in self._distances(s, starts).names
            ]
            if s.buffer.dtype.kind == "b":
                names = [memory.as_mask(b, name) for name in names]
            found.append(Vec(b, kind_of(s.buffer.dtype), tuple(names)))
        return joined(found)

    def _store(self, s: Store, starts: list[Int], mask: Vec | None) -> None:
        b, value = self.block, self._value(s.value, starts)
        port = self._ports.get((s.buffer.number, s.at))
        if port is not None:
            ports.store(b, port, starts, value, mask)
            return
        element, bases = self._elements(s.buffer)
        distances = self._distances(s, starts).names
        for base, x in zip(bases, parts(value), strict=True):
            kept = b.cast("zext", x, "i8") if s.buffer.dtype.kind == "b" else x
            for name, d in zip(kept.names, distances, strict=True):
                memory.scatter(b, memory.addresses(b, base, d), element, name, mask.names[0] if mask else "")
