"""`Body`: the text of one LLVM function, written line by line.

Variables that change are stack slots; the optimiser makes registers of them.
"""

from collections.abc import Iterable, Mapping
from typing import Self

from tenferro_cpu.native.python._layout import TYPE


class Fields:
    """Offsets of the pointers in a payload, by name.

    >>> Fields("first second").second
    8
    """

    def __init__(self, names: str) -> None:
        self.names = tuple(names.split())
        self._at = {name: 8 * i for i, name in enumerate(self.names)}

    def __getattr__(self, name: str) -> int:
        try:
            return self._at[name]
        except KeyError:
            raise AttributeError(name) from None

    def unpacked(self, record: str, pointers: str = "") -> str:
        """Instructions that load every field of a record under its name: as pointers those named, as i64 the others."""
        kinds = {name: "ptr" if name in pointers.split() else "i64" for name in self.names}
        return "\n".join(
            f"  %{name}.at = getelementptr i8, ptr {record}, i64 {self._at[name]}\n"
            f"  %{name} = load {kind}, ptr %{name}.at"
            for name, kind in kinds.items()
        )

    def packed(self, record: str, values: Mapping[str, str]) -> str:
        """Instructions that store typed values in the fields of a record."""
        return "\n".join(
            f"  %{name}.in = getelementptr i8, ptr {record}, i64 {self._at[name]}\n  store {value}, ptr %{name}.in"
            for name, value in values.items()
        )


class Body:
    """A function under construction.

    Args:
        head: linkage, type, name and parameters, as in ``"private ptr @f(ptr %x)"``.
    """

    def __init__(self, head: str) -> None:
        self.lines = [f"define {head} nounwind {{"]
        self._count = 0

    def do(self, line: str) -> Self:
        """Append an instruction without a result."""
        self.lines.append(f"  {line}")
        return self

    def get(self, expression: str) -> str:
        """Append an instruction; the name of its result."""
        self._count += 1
        self.lines.append(f"  %t{self._count} = {expression}")
        return f"%t{self._count}"

    def at(self, pointer: str, offset: int | str) -> str:
        """Address of a field."""
        return self.get(f"getelementptr i8, ptr {pointer}, i64 {offset}")

    def load(self, pointer: str, offset: int | str = 0, kind: str = "ptr") -> str:
        """A field."""
        return self.get(f"load {kind}, ptr {self.at(pointer, offset) if offset else pointer}")

    def store(self, value: str, pointer: str, offset: int | str = 0, kind: str = "ptr") -> None:
        """Write a field."""
        self.do(f"store {kind} {value}, ptr {self.at(pointer, offset) if offset else pointer}")

    # Python code can empty and fill every slot, replace every item of a list or dictionary, and runs where hashes are
    # compared, objects freed and memory is allocated. So a slot may be empty and holds any object; its class is tested
    # before fields of the object are read; and what is used after a call is held, or loaded again.

    def slot(self, obj: str, offset: int | str, otherwise: str) -> str:
        """The object in a slot, borrowed; go on at a label where the slot is empty."""
        value = self.load(obj, offset)
        self.present(value, otherwise)
        return value

    def type_of(self, obj: str) -> str:
        """The class of an object."""
        return self.load(obj, TYPE)

    def call(self, name: str, *args: str, result: str = "ptr") -> str:
        """Call a function; arguments are pointers where they name no type."""
        text = f"call {result} @{name}({', '.join(a if ' ' in a else f'ptr {a}' for a in args)})"
        if result == "void":
            self.do(text)
            return ""
        return self.get(text)

    def hold(self, *objects: str) -> None:
        """Own a reference to each object."""
        for o in objects:
            self.call("tenferro_incref", o, result="void")

    def drop(self, *objects: str) -> None:
        """Give up a reference to each object."""
        for o in objects:
            self.call("tenferro_decref", o, result="void")

    def same(self, x: str, y: str) -> str:
        """Whether two pointers are equal."""
        return self.get(f"icmp eq ptr {x}, {y}")

    def guard(self, condition: str, otherwise: str) -> None:
        """Go on where the condition holds, else at a label."""
        self._count += 1
        self.do(f"br i1 {condition}, label %go{self._count}, label %{otherwise}")
        self.label(f"go{self._count}")

    def require(self, pairs: Iterable[tuple[str, str]], otherwise: str) -> None:
        """Go on where all pairs of pointers are equal."""
        for x, y in pairs:
            self.guard(self.same(x, y), otherwise)

    def present(self, pointer: str, otherwise: str) -> None:
        """Go on where the pointer is not null."""
        self.guard(self.get(f"icmp ne ptr {pointer}, null"), otherwise)

    def branch(self, condition: str, yes: str, no: str) -> None:
        """Choose between two labels."""
        self.do(f"br i1 {condition}, label %{yes}, label %{no}")

    def jump(self, label: str) -> None:
        """Go to a label."""
        self.do(f"br label %{label}")

    def label(self, name: str) -> None:
        """Start a block."""
        self.lines.append(f"{name}:")

    def variable(self, kind: str = "ptr") -> str:
        """A stack slot; only before the first branch."""
        return self.get(f"alloca {kind}")

    def give(self, value: str) -> None:
        """Return."""
        self.do(f"ret ptr {value}")

    def text(self) -> str:
        """The finished function."""
        return "\n".join([*self.lines, "}\n"])


def item(b: Body, array: str, index: str) -> str:
    """Address of a word of an array."""
    return b.get(f"getelementptr i64, ptr {array}, i64 {index}")


def quotient(b: Body, x: str, y: str) -> str:
    """An integer over a positive one, rounded up."""
    up = b.get(f"sub i64 {b.get(f'add i64 {x}, {y}')}, 1")
    return b.get(f"udiv i64 {up}, {y}")


class Loop:
    """``with Loop(b, variable, count, name) as at:`` the counter runs from 0; `variable` holds it after the loop."""

    def __init__(self, b: Body, variable: str, count: str, name: str) -> None:
        self.b, self.variable, self.count, self.name = b, variable, count, name

    def __enter__(self) -> str:
        b = self.b
        b.store("0", self.variable, kind="i64")
        b.jump(f"{self.name}.test")
        b.label(f"{self.name}.test")
        self.at = b.load(self.variable, kind="i64")
        b.branch(b.get(f"icmp ult i64 {self.at}, {self.count}"), f"{self.name}.body", f"{self.name}.end")
        b.label(f"{self.name}.body")
        return self.at

    def __exit__(self, *_: object) -> None:
        b = self.b
        b.store(b.get(f"add i64 {self.at}, 1"), self.variable, kind="i64")
        b.jump(f"{self.name}.test")
        b.label(f"{self.name}.end")
