"""Functions of the engine as text: loops, branches and byte addresses on top of `Block`."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from tenferro_cpu.native.builder import Block, Module
from tenferro_cpu.native.machine._host import Host
from tenferro_tensor_core.forks import cached_property

REALS: Final = {"f": "float", "d": "double", "F": "float", "D": "double"}


@dataclass(frozen=True)
class Kind:
    """What the engine is rendered for: one dtype on one host.

    Attributes:
        char: NumPy's letter of the dtype.
        host: the processor.

    >>> from tenferro_cpu.native.machine._host import Host
    >>> kind = Kind("D", Host("x86_64", "znver4", "", "avx512", 64, 32, 32 << 20))
    >>> kind.real, kind.parts, kind.lanes, kind.width, kind.vectors, kind.item
    ('double', 2, 8, 4, 3, 16)
    """

    char: str
    host: Host

    @cached_property
    def key(self) -> str:
        """A text that tells it from all others."""
        return f"{self.char} {self.host}"

    @cached_property
    def real(self) -> str:
        """LLVM's name of the real numbers that elements consist of."""
        return REALS[self.char]

    @cached_property
    def real_bytes(self) -> int:
        """Bytes of one real."""
        return 4 if self.real == "float" else 8

    @cached_property
    def parts(self) -> int:
        """Reals of one element."""
        return 2 if self.char in "FD" else 1

    @cached_property
    def item(self) -> int:
        """Bytes of one element."""
        return self.parts * self.real_bytes

    @cached_property
    def lanes(self) -> int:
        """Reals of one vector."""
        return max(2, self.host.lanes(self.real_bytes))

    @cached_property
    def width(self) -> int:
        """Elements of one vector."""
        return self.lanes // self.parts

    @cached_property
    def columns(self) -> int:
        """Columns of a full tile, each element of which is repeated over a vector."""
        return 8 if self.host.registers >= 32 else 4

    @cached_property
    def vectors(self) -> int:
        """Vectors of rows of a full tile: all sums, and the rows that they grow by, stay in registers.

        Those of complex rows are there twice, and with them the signs that turn one into the other.
        """
        return 3 if self.host.registers >= 32 or self.parts == 1 else 2

    @cached_property
    def rows(self) -> int:
        """Rows of a full tile."""
        return self.vectors * self.width

    @cached_property
    def vector(self) -> str:
        """LLVM's name of one vector."""
        return f"<{self.lanes} x {self.real}>"

    @cached_property
    def element(self) -> str:
        """A type with the bytes of one element, for moving it."""
        return {4: "i32", 8: "i64", 16: "<2 x i64>"}[self.item]

    @cached_property
    def suffix(self) -> str:
        """What names of intrinsics on vectors end in."""
        return f"v{self.lanes}f{8 * self.real_bytes}"


class Code(Block):
    """One function.

    Args:
        name: its name.
        parameters: their types and names.
        result: type of the result.
        attributes: of the function.
    """

    def __init__(self, name: str, parameters: str, attributes: str, result: str = "void") -> None:
        super().__init__(Module(), 1)
        self._head = f"{result} @{name}({parameters}) {attributes}"
        self._labels = 0
        self.begin("entry")

    def text(self, linkage: str = "private ") -> str:
        """The definition."""
        return f"define {linkage}{self._head} {{\n" + "\n".join(self.lines) + "\n}\n"

    def new_label(self, what: str) -> str:
        """A label that no block has."""
        self._labels += 1
        return f"{what}{self._labels}"

    def at(self, base: str, offset: str | int) -> str:
        """A pointer some bytes further."""
        return base if offset == 0 else self.raw(f"getelementptr i8, ptr {base}, i64 {offset}")

    def word(self, base: str, number: str | int) -> str:
        """The 64-bit word with this number."""
        return self.raw(f"load i64, ptr {self.raw(f'getelementptr i64, ptr {base}, i64 {number}')}")

    def pointer(self, base: str, number: str | int) -> str:
        """The pointer that is the word with this number."""
        return self.raw(f"load ptr, ptr {self.raw(f'getelementptr ptr, ptr {base}, i64 {number}')}")

    def least(self, a: str | int, b: str | int) -> str:
        """The smaller of two words."""
        return self.raw(f"call i64 @llvm.smin.i64(i64 {a}, i64 {b})")

    def let(self, operation: str, a: str | int, b: str | int) -> str:
        """An operation on words, as in ``"add"``."""
        return self.raw(f"{operation} i64 {a}, {b}")

    def test(self, relation: str, a: str | int, b: str | int) -> str:
        """A comparison of words."""
        return self.raw(f"icmp {relation} i64 {a}, {b}")

    def settle(self) -> None:
        """Everything before stays before everything after: LLVM's scheduler moves nothing over a label.

        Where it is free to, it reads what a whole turn of a loop needs at once, and has no registers left for sums.
        """
        self.do("call void @llvm.codeview.annotation(metadata !1)")

    @contextmanager
    def loop(self, start: str | int, stop: str | int, step: str | int = 1) -> Iterator[str]:
        """For each word from `start` below `stop`."""
        head, body, done = self.new_label("head"), self.new_label("body"), self.new_label("done")
        i, after = self.fresh(), self.fresh()
        before = self.label
        self.do(f"br label %{head}")
        self.begin(head)
        slot = len(self.lines)
        more = self.test("slt", i, stop)
        self.do(f"br i1 {more}, label %{body}, label %{done}")
        self.begin(body)
        yield i
        self.do(f"{after} = add i64 {i}, {step}")
        self.lines.insert(slot, f"  {i} = phi i64 [ {start}, %{before} ], [ {after}, %{self.label} ]")
        self.do(f"br label %{head}")
        self.begin(done)

    @contextmanager
    def when(self, condition: str) -> Iterator[None]:
        """Only if the condition holds."""
        then, done = self.new_label("then"), self.new_label("after")
        self.do(f"br i1 {condition}, label %{then}, label %{done}")
        self.begin(then)
        yield
        self.do(f"br label %{done}")
        self.begin(done)

    @contextmanager
    def when_else(self, condition: str) -> Iterator[Iterator[None]]:
        """Two ways: what is written before and after ``next()`` of the value."""
        then, other, done = self.new_label("then"), self.new_label("else"), self.new_label("after")
        self.do(f"br i1 {condition}, label %{then}, label %{other}")
        self.begin(then)

        def switch() -> Iterator[None]:
            self.do(f"br label %{done}")
            self.begin(other)
            yield

        yield switch()
        self.do(f"br label %{done}")
        self.begin(done)
