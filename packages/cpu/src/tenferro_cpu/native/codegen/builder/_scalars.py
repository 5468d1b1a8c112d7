"""Scalars in registers: 64-bit integers, flags and pointers, with operators that write instructions."""

from __future__ import annotations

from typing import ClassVar, Self

from tenferro_cpu.native.codegen.builder._emitter import Emitter


class Scalar:
    """One SSA value that is not a vector.

    Attributes:
        block: where its instructions are written.
        name: its name, or a constant.
    """

    __slots__ = ("block", "name")
    __hash__: ClassVar[None] = None  # type: ignore[assignment]
    llvm = "i64"

    def __init__(self, block: Emitter, name: str) -> None:
        self.block: Emitter = block
        self.name: str = name

    @property
    def types(self) -> tuple[str, ...]:
        """LLVM types of the registers that hold it."""
        return (self.llvm,)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the registers that hold it."""
        return (self.name,)

    def renamed(self, names: tuple[str, ...]) -> Self:
        """A value of this type in other registers."""
        return type(self)(self.block, names[0])


class Flag(Scalar):
    """A condition.

    Methods take:
        x, y: operands of one type.

    Methods return:
        The chosen operand.
    """

    __slots__ = ()
    llvm = "i1"

    def choose(self, x: Int, y: Int | int) -> Int:
        """`x` if the condition holds, otherwise `y`."""
        return Int(self.block, self.block.raw(f"select i1 {self.name}, i64 {x.name}, i64 {x.of(y)}"))

    def opposite(self) -> Flag:
        """The negation."""
        return Flag(self.block, self.block.raw(f"xor i1 {self.name}, true"))

    def __and__(self, other: Flag) -> Flag:
        return Flag(self.block, self.block.raw(f"and i1 {self.name}, {other.name}"))


class Int(Scalar):
    """A 64-bit integer; operations that distinguish are signed.

    Methods take:
        other: an `Int`, or a Python integer.

    Methods return:
        The `Int` or `Flag`, for `of` the name of the operand.
    """

    __slots__ = ()

    def of(self, other: Int | int) -> str:
        """The name of an operand."""
        return other.name if isinstance(other, Int) else str(other)

    def _with(self, word: str, other: Int | int) -> Int:
        return Int(self.block, self.block.raw(f"{word} i64 {self.name}, {self.of(other)}"))

    def __add__(self, other: Int | int) -> Int:
        return self if other.__class__ is int and other == 0 else self._with("add", other)

    def __sub__(self, other: Int | int) -> Int:
        return self._with("sub", other)

    def __mul__(self, other: Int | int) -> Int:
        return self if other.__class__ is int and other == 1 else self._with("mul", other)

    def plus(self, other: Int | int) -> Int:
        """Sum that does not overflow."""
        return self if other.__class__ is int and other == 0 else self._with("add nsw", other)

    def times(self, other: Int | int) -> Int:
        """Product that does not overflow."""
        return self if other.__class__ is int and other == 1 else self._with("mul nsw", other)

    def __and__(self, other: Int | int) -> Int:
        return self._with("and", other)

    def __rshift__(self, other: int) -> Int:
        return self._with("lshr", other)

    def __floordiv__(self, other: Int | int) -> Int:
        """Quotient of nonnegative integers."""
        return self._with("udiv", other)

    def _compare(self, word: str, other: Int | int) -> Flag:
        return Flag(self.block, self.block.raw(f"icmp {word} i64 {self.name}, {self.of(other)}"))

    def __lt__(self, other: Int | int) -> Flag:
        return self._compare("slt", other)

    def __gt__(self, other: Int | int) -> Flag:
        return self._compare("sgt", other)

    def equals(self, other: Int | int) -> Flag:
        """Whether two numbers are equal."""
        return self._compare("eq", other)

    def differs(self, other: Int | int) -> Flag:
        """Whether two numbers differ."""
        return self._compare("ne", other)


class Pointer(Scalar):
    """An address.

    Methods take:
        distance: offset in bytes.
        llvm: LLVM type of an item.
        number: index of an item, or its value.
        name: the register to store.
        align: alignment in bytes.

    Methods return:
        The `Pointer`, or the name of the loaded register.
    """

    __slots__ = ()
    llvm = "ptr"

    def offset(self, distance: Int | int) -> Pointer:
        """The address at a byte offset."""
        if distance.__class__ is int and distance == 0:
            return self
        by = distance.name if isinstance(distance, Int) else distance
        return Pointer(self.block, self.block.raw(f"getelementptr i8, ptr {self.name}, i64 {by}"))

    def item(self, llvm: str, number: Int | int) -> Pointer:
        """The address of an array item."""
        by = number.name if isinstance(number, Int) else number
        return Pointer(self.block, self.block.raw(f"getelementptr {llvm}, ptr {self.name}, i64 {by}"))

    def element(self, llvm: str, number: Int | int) -> Pointer:
        """The address of an array item within the memory that the pointer refers to."""
        if number.__class__ is int and number == 0:
            return self
        by = number.name if isinstance(number, Int) else number
        return Pointer(self.block, self.block.raw(f"getelementptr inbounds {llvm}, ptr {self.name}, i64 {by}"))

    def load_int(self) -> Int:
        """Load an integer."""
        return Int(self.block, self.block.raw(f"load i64, ptr {self.name}, align 8"))

    def load_pointer(self) -> Pointer:
        """Load an address."""
        return Pointer(self.block, self.block.raw(f"load ptr, ptr {self.name}, align 8"))

    def load(self, llvm: str, align: int) -> str:
        """Load a number of any type; returns its name."""
        return self.block.raw(f"load {llvm}, ptr {self.name}, align {align}")

    def store(self, llvm: str, name: str, align: int) -> None:
        """Store a number of any type."""
        self.block.do(f"store {llvm} {name}, ptr {self.name}, align {align}")

    def prefetch(self) -> None:
        """Prefetch the cache line of the address for reading."""
        self.block.module.require("prefetch", lambda: "declare void @llvm.prefetch.p0(ptr, i32, i32, i32)")
        self.block.do(f"call void @llvm.prefetch.p0(ptr {self.name}, i32 0, i32 3, i32 1)")
