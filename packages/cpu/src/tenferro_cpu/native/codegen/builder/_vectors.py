"""`Vec`: vectors as values, whose Python operators write instructions; `Block`, the function that they are written to.

A `Vec` stands for `interleave` SSA vectors that undergo the same instruction one after the other, so that a long
chain of dependent operations leaves no execution unit idle. Mathematics is written once, on `Vec`, like NumPy code.
"""

from __future__ import annotations

from typing import ClassVar

from tenferro_cpu.native.codegen.builder._emitter import Emitter
from tenferro_cpu.native.codegen.builder._lanewise import INVALID, declaration, lane_loop
from tenferro_cpu.native.codegen.builder._scalars import Flag, Int
from tenferro_cpu.native.codegen.builder._types import BITS, LLVM_TYPES, indices, number


class Block(Emitter):
    """A function under construction, and the operations on its vectors.

    Methods take:
        kind: element kind, as `Vec` lists them.
        value: a number.
        llvm: LLVM type of the register.
        scalar: name of a register.
        start, end: first lane index, and bound.
        template: instruction with ``%s`` for the operands.
        args: operands.
        intrinsic: name of the LLVM intrinsic.
        instruction: name of the conversion instruction.
        function: name of the C library function.
        unsigned: whether the integers are unsigned.
        mask, usual: mask of lanes, and the result in all others.
        x, y: vectors.
        order, lanes: lane indices.

    Methods return:
        The resulting `Vec`, or the name or LLVM type of a register.
    """

    def vector(self, kind: str) -> str:
        """The LLVM type of a vector of a kind of element."""
        return f"<{self.lanes} x {LLVM_TYPES[kind]}>"

    def splat(self, kind: str, value: float) -> Vec:
        """A constant in every lane."""
        return Vec(self, kind, (f"splat ({LLVM_TYPES[kind]} {number(kind, value)})",) * self.interleave)

    def repeated(self, kind: str, llvm: str, scalar: str) -> Vec:
        """Broadcast a number in a register to every lane of one vector."""
        v = f"<{self.lanes} x {llvm}>"
        first = self.raw(f"insertelement {v} poison, {llvm} {scalar}, i64 0")
        name = self.raw(f"shufflevector {v} {first}, {v} poison, <{self.lanes} x i32> zeroinitializer")
        return Vec(self, kind, (name,))

    def lane_numbers(self) -> Vec:
        """The vector 0, 1, 2, ..."""
        return Vec(self, "i64", (f"<{', '.join(f'i64 {k}' for k in range(self.lanes))}>",))

    def below(self, start: Int, end: Int) -> Vec:
        """Mask of the lanes whose index, counted from `start`, is below `end`."""
        return self.lane_numbers() < self.repeated("i64", "i64", (end - start).name)

    def apply(self, template: str, kind: str, *args: Vec) -> Vec:
        """Write the instruction `template` for every interleaved vector."""
        return Vec(self, kind, tuple([self.raw(template % names) for names in zip(*[a.names for a in args])]))

    def call(self, intrinsic: str, *args: Vec) -> Vec:
        """Call an intrinsic whose operands and result have the type of the first operand."""
        kind = args[0].kind
        where = ", ".join([f"{self.vector(kind)} %s"] * len(args))
        return self.apply(f"call {self.vector(kind)} @llvm.{intrinsic}.v{self.lanes}{kind}({where})", kind, *args)

    def saturated(self, x: Vec, kind: str, *, unsigned: bool) -> Vec:
        """Round floating-point lanes towards zero to the nearest representable integer; NaN becomes 0."""
        name = f"llvm.fpto{'u' if unsigned else 's'}i.sat.v{self.lanes}{kind}.v{self.lanes}{x.kind}"
        return self.apply(f"call {self.vector(kind)} @{name}({self.vector(x.kind)} %s)", kind, x)

    def cast(self, instruction: str, x: Vec, kind: str) -> Vec:
        """Apply a conversion instruction such as ``"sitofp"``."""
        if x.kind == kind and instruction != "bitcast":
            return x
        return self.apply(f"{instruction} {self.vector(x.kind)} %s to {self.vector(kind)}", kind, x)

    def where(self, mask: Vec, x: Vec, y: Vec | float) -> Vec:
        """Lanes of `x` where the mask is set, otherwise of `y`."""
        y = x.like(y)
        form = f"select {self.vector('i1')} %s, {self.vector(x.kind)} %s, {self.vector(x.kind)} %s"
        return self.apply(form, x.kind, mask, x, y)

    def shuffled(self, x: Vec, order: list[int], y: Vec | None = None) -> Vec:
        """Permute lanes of `x` and `y`, counted through both; lanes with negative indices are unspecified."""
        v = self.vector(x.kind)
        if y is None:
            return self.apply(f"shufflevector {v} %s, {v} poison, {indices(order)}", x.kind, x)
        return self.apply(f"shufflevector {v} %s, {v} %s, {indices(order)}", x.kind, x, y)

    def chosen(self, lanes: list[bool], x: Vec, y: Vec) -> Vec:
        """`x` in the named lanes, otherwise `y`."""
        mask = ", ".join(f"i1 {'true' if lane else 'false'}" for lane in lanes)
        v = self.vector(x.kind)
        return self.apply(f"select <{self.lanes} x i1> <{mask}>, {v} %s, {v} %s", x.kind, x, y)

    def first_lane(self, x: Vec) -> str:
        """Name of the number in the first lane of one vector."""
        return self.raw(f"extractelement {self.vector(x.kind)} {x.names[0]}, i64 0")

    def fence(self) -> None:
        """Write a memory fence: earlier writes complete before later ones."""
        self.do("fence seq_cst")

    def any(self, mask: Vec) -> Flag:
        """Whether any lane of the mask is set."""
        union = mask.names[0]
        for name in mask.names[1:]:
            union = self.raw(f"or {self.vector('i1')} {union}, {name}")
        name = self.raw(f"call i1 @llvm.vector.reduce.or.v{self.lanes}i1({self.vector('i1')} {union})")
        return Flag(self, name)

    def signal(self, mask: Vec) -> None:
        """Raise the processor's invalid-operation flag if a lane of the mask is set."""
        hit, odd, after = self.any(mask).name, self.new_label("odd"), self.new_label("after")
        self.module.require("invalid", lambda: INVALID)
        self.branch(hit, odd, after, rarely=True)
        self.begin(odd)
        self.do("call void @invalid()")
        self.jump(after)
        self.begin(after)

    def rare(self, mask: Vec, usual: Vec, function: str, *args: Vec) -> Vec:
        """`usual`, except for the C library's `function` of `args` in the lanes of `mask`; skipped by a branch if there
        are none.
        """
        kind, hit = usual.kind, self.any(mask).name
        here, slow, join = self.label, self.new_label("slow"), self.new_label("join")
        self.branch(hit, slow, join, rarely=True)
        self.begin(slow)
        lanewise = f"lanewise.{function}.{self.lanes}"
        self.module.require(function, lambda: declaration(function, kind, len(args)))
        self.module.require(lanewise, lambda: lane_loop(lanewise, function, kind, self.lanes, len(args)))
        typed = ", ".join([f"{self.vector(kind)} %s"] * (len(args) + 1))
        fixed = self.apply(
            f"call {self.vector(kind)} @{lanewise}({self.vector('i1')} %s, {typed})", kind, mask, usual, *args
        )
        self.jump(join)
        self.begin(join)
        names = [
            self.raw(f"phi {self.vector(kind)} [ {a}, %{here} ], [ {b}, %{slow} ]")
            for a, b in zip(usual.names, fixed.names)
        ]
        return Vec(self, kind, tuple(names))


class Vec:
    """Interleaved SSA vectors of one kind of element: ``f64 f32 f16 i1 i8 i16 i32 i64``.

    Methods take:
        names: registers.
        other: a `Vec`, or a number.
        number: index of an interleaved vector.
        floating, integer: predicates of ``fcmp`` and ``icmp``.

    Methods return:
        The resulting `Vec`.
    """

    __slots__ = ("block", "kind", "names")
    __hash__: ClassVar[None] = None  # type: ignore[assignment]

    def __init__(self, block: Block, kind: str, names: tuple[str, ...]) -> None:
        self.block: Block = block
        self.kind: str = kind
        self.names: tuple[str, ...] = names

    @property
    def types(self) -> tuple[str, ...]:
        """LLVM types of its registers."""
        return (self.block.vector(self.kind),) * len(self.names)

    def renamed(self, names: tuple[str, ...]) -> Vec:
        """A value of this type in other registers."""
        return Vec(self.block, self.kind, names)

    def like(self, other: Vec | float) -> Vec:
        """Convert `other` to a vector of this kind."""
        return other if isinstance(other, Vec) else self.block.splat(self.kind, other)

    def one(self, number: int) -> Vec:
        """One of the interleaved vectors."""
        return Vec(self.block, self.kind, (self.names[number],))

    def _binary(self, floating: str, integer: str, x: Vec | float, y: Vec | float) -> Vec:
        x, y = self.like(x), self.like(y)
        word = floating if self.kind[0] == "f" else integer
        return self.block.apply(f"{word} {self.block.vector(self.kind)} %s, %s", self.kind, x, y)

    def __add__(self, other: Vec | float) -> Vec:
        return self._binary("fadd", "add", self, other)

    def __radd__(self, other: float) -> Vec:
        return self._binary("fadd", "add", other, self)

    def __sub__(self, other: Vec | float) -> Vec:
        return self._binary("fsub", "sub", self, other)

    def __rsub__(self, other: float) -> Vec:
        return self._binary("fsub", "sub", other, self)

    def __mul__(self, other: Vec | float) -> Vec:
        return self._binary("fmul", "mul", self, other)

    def __rmul__(self, other: float) -> Vec:
        return self._binary("fmul", "mul", other, self)

    def __truediv__(self, other: Vec | float) -> Vec:
        return self._binary("fdiv", "sdiv", self, other)

    def __rtruediv__(self, other: float) -> Vec:
        return self._binary("fdiv", "sdiv", other, self)

    def unsigned_quotient(self, other: Vec) -> Vec:
        """Quotient of unsigned integers."""
        return self._binary("?", "udiv", self, other)

    def __neg__(self) -> Vec:
        if self.kind[0] == "f":
            return self.block.apply(f"fneg {self.block.vector(self.kind)} %s", self.kind, self)
        return 0 - self

    def __and__(self, other: Vec | int) -> Vec:
        return self._binary("?", "and", self, other)

    def __or__(self, other: Vec | int) -> Vec:
        return self._binary("?", "or", self, other)

    def __xor__(self, other: Vec | int) -> Vec:
        return self._binary("?", "xor", self, other)

    def __invert__(self) -> Vec:
        return self ^ (1 if self.kind == "i1" else -1)

    def __lshift__(self, other: Vec | int) -> Vec:
        return self._binary("?", "shl", self, other)

    def __rshift__(self, other: Vec | int) -> Vec:
        """Shift signed integers to the right."""
        return self._binary("?", "ashr", self, other)

    def unsigned_shift(self, other: Vec | int) -> Vec:
        """Shift unsigned integers to the right."""
        return self._binary("?", "lshr", self, other)

    def compare(self, floating: str, integer: str, other: Vec | float) -> Vec:
        """Mask of the predicate ``fcmp floating`` or ``icmp integer``."""
        word = f"fcmp {floating}" if self.kind[0] == "f" else f"icmp {integer}"
        return self.block.apply(f"{word} {self.block.vector(self.kind)} %s, %s", "i1", self, self.like(other))

    def __lt__(self, other: Vec | float) -> Vec:
        return self.compare("olt", "slt", other)

    def __le__(self, other: Vec | float) -> Vec:
        return self.compare("ole", "sle", other)

    def __gt__(self, other: Vec | float) -> Vec:
        return self.compare("ogt", "sgt", other)

    def __ge__(self, other: Vec | float) -> Vec:
        return self.compare("oge", "sge", other)

    def equals(self, other: Vec | float) -> Vec:
        """Mask of equal lanes; NaN equals nothing."""
        return self.compare("oeq", "eq", other)

    def differs(self, other: Vec | float) -> Vec:
        """Mask of unequal lanes; NaN differs from everything."""
        return self.compare("une", "ne", other)

    @property
    def is_nan(self) -> Vec:
        """Mask of NaN lanes."""
        return self.compare("uno", "?", self)

    @property
    def bits(self) -> Vec:
        """The bits of floating-point lanes as integers."""
        return self.block.cast("bitcast", self, f"i{BITS[self.kind]}")

    @property
    def float(self) -> Vec:
        """Reinterpret integers as the floating-point numbers with these bits."""
        return self.block.cast("bitcast", self, f"f{BITS[self.kind]}")
