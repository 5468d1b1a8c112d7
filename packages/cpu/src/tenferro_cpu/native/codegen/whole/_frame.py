"""`Frame`: one function under construction, with its registers and buffers."""

from __future__ import annotations

from collections.abc import Callable

from tenferro_cpu.native.codegen.builder import Int, Pointer, ScalarBlock, Vec
from tenferro_cpu.native.codegen.operations._convert import resized
from tenferro_cpu.native.codegen.operations._value import Value, literal
from tenferro_cpu.native.codegen.whole._sizes import Sizes
from tenferro_tensor.loop_ir import Affine, Buffer, Call, Literal
from tenferro_tensor.loop_ir import Value as Number
from tenferro_tensor_core import DimLike


class EntryBlock(ScalarBlock):
    """The first basic block of a function, with distinct names."""

    def fresh(self) -> str:
        return super().fresh().replace("%t", "%e")


class Frame:
    """One function under construction, with its registers and buffers.

    Args:
        entry: the first basic block: sizes and memory on the stack.
        block: the function after it.
        sizes: symbolic sizes.
        pointers: initial addresses of buffers, by number.
        calls: the `Call` statements so far.

    Attributes:
        registers: numbers, by index of their registers.
        pointers: current addresses of buffers.
        alone: whether it runs without Python.
    """

    alone = False

    def __init__(
        self, entry: ScalarBlock, block: ScalarBlock, sizes: Sizes, pointers: dict[int, Pointer], calls: list[Call]
    ) -> None:
        self.entry, self.block, self.sizes, self.pointers, self.calls = entry, block, sizes, pointers, calls
        self.registers: dict[int, Value] = {}

    def size(self, extent: DimLike) -> Int:
        """A size."""
        return Int(self.block, self.sizes.of(extent).name)

    def value(self, number: Number) -> Value:
        """A register or a literal."""
        if isinstance(number, Literal):
            return literal(self.block, number.value, number.dtype)
        return self.registers[number.number]

    def index(self, number: Number) -> Int:
        """An integer or a boolean as an index."""
        x = self.value(number)
        assert isinstance(x, Vec)
        if x.kind != "i64":
            x = resized(x, "i64", number.dtype.kind == "i")
        return Int(self.block, x.names[0])

    def place(self, at: Affine) -> Int:
        """An index into a buffer, which is in range."""
        return self._sum(at, Int.plus, Int.times)

    def number(self, at: Affine) -> Int:
        """An index as a number, which wraps like all integers because users may compute it."""
        return self._sum(at, Int.__add__, Int.__mul__)

    def _sum(self, at: Affine, plus: Callable[[Int, Int], Int], times: Callable[[Int, Int], Int]) -> Int:
        total = None if at.constant.__class__ is int and at.constant == 0 else self.size(at.constant)
        for reg, by in at.terms:
            term = self.index(reg)
            if by.__class__ is not int or by != 1:
                term = times(term, self.size(by))
            total = term if total is None else plus(total, term)
        return Int(self.block, "0") if total is None else total

    def pointer(self, buffer: Buffer) -> Pointer:
        """Current address of a buffer."""
        return self.pointers[buffer.number]

    def reserved(self, llvm: str, count: int) -> Pointer:
        """Memory on the stack, allocated once per run of the function."""
        return Pointer(self.block, self.entry.raw(f"alloca [{max(count, 1)} x {llvm}], align 16"))
