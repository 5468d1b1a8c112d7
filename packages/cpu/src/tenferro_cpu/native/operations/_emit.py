"""Vectors as values: Python operators that write LLVM instructions.

A `Vec` stands for `interleave` SSA vectors that undergo the same instruction one after the other, so that a long
chain of dependent operations leaves no unit idle. Mathematics is written once, on `Vec`, like NumPy code.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Final

LLVM_TYPES: Final = {"f64": "double", "f32": "float"} | {f"i{bits}": f"i{bits}" for bits in (1, 8, 16, 32, 64)}
BITS: Final = {"f64": 64, "f32": 32, "i1": 1, "i8": 8, "i16": 16, "i32": 32, "i64": 64}


WEIGHTS: Final = '!0 = !{!"branch_weights", i32 1, i32 100000}'
INVALID: Final = """
define private void @invalid() noinline cold nounwind {
  %p = alloca double
  store volatile double 0.0, ptr %p
  %zero = load volatile double, ptr %p
  %nothing = fdiv double %zero, %zero
  store volatile double %nothing, ptr %p
  ret void
}"""


def number(kind: str, value: float) -> str:
    """A number as LLVM text.

    >>> number("f64", 1.0), number("i8", -3), number("i1", True)
    ('0x3FF0000000000000', '-3', 'true')
    """
    if kind[0] == "f":
        if kind == "f32":  # LLVM wants the bits of the double of equal value
            value = struct.unpack("f", struct.pack("f", value))[0]
        return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"
    return ("true" if value else "false") if kind == "i1" else str(int(value))


class Module:
    """Definitions beside the kernel: private functions, and external ones that they call."""

    def __init__(self) -> None:
        self.definitions: dict[str, str] = {}

    def require(self, name: str, text: Callable[[], str]) -> None:
        """Define `name` once."""
        if name not in self.definitions:
            self.definitions[name] = text()

    def text(self, *functions: str) -> str:
        """The module with the given functions."""
        return "\n".join([*self.definitions.values(), *functions])


class Block:
    """Instructions of one function in order, and the label of the basic block that they have reached.

    Args:
        module: what the function refers to.
        lanes: elements of a vector.
        interleave: vectors that undergo every instruction.
        fused: the processor multiplies and adds in one rounding.
        tables: it looks numbers up in registers, and scales by powers of two (AVX-512).
    """

    def __init__(
        self, module: Module, lanes: int, interleave: int = 1, fused: bool = True, tables: bool = False
    ) -> None:
        self.module, self.lanes, self.interleave, self.fused, self.tables = module, lanes, interleave, fused, tables
        self.lines: list[str] = []
        self.label = "entry"
        self._count = 0

    def fresh(self) -> str:
        """A name that no value has."""
        self._count += 1
        return f"%t{self._count}"

    def raw(self, text: str) -> str:
        """One instruction with a result, as written; gives the name."""
        name = self.fresh()
        self.lines.append(f"  {name} = {text}")
        return name

    def do(self, text: str) -> None:
        """One instruction without a result."""
        self.lines.append(f"  {text}")

    def begin(self, label: str) -> None:
        """Open a basic block."""
        self.lines.append(f"{label}:")
        self.label = label

    def vector(self, kind: str) -> str:
        """The vector type of a kind of element."""
        return f"<{self.lanes} x {LLVM_TYPES[kind]}>"

    def splat(self, kind: str, value: float) -> Vec:
        """A constant in every lane."""
        return Vec(self, kind, (f"splat ({LLVM_TYPES[kind]} {number(kind, value)})",) * self.interleave)

    def apply(self, template: str, kind: str, *args: Vec) -> Vec:
        """The instruction `template`, with ``%s`` for the operands, on every interleaved vector."""
        return Vec(self, kind, tuple([self.raw(template % names) for names in zip(*[a.names for a in args])]))

    def call(self, intrinsic: str, *args: Vec) -> Vec:
        """An intrinsic whose operands and result have the type of the first operand."""
        first = args[0]
        kind = first.kind
        where = ", ".join([f"{self.vector(kind)} %s"] * len(args))
        return self.apply(f"call {self.vector(kind)} @llvm.{intrinsic}.v{self.lanes}{kind}({where})", kind, *args)

    def cast(self, instruction: str, x: Vec, kind: str) -> Vec:
        """A conversion instruction, as in ``"sitofp"``."""
        if x.kind == kind and instruction != "bitcast":
            return x
        return self.apply(f"{instruction} {self.vector(x.kind)} %s to {self.vector(kind)}", kind, x)

    def where(self, mask: Vec, x: Vec, y: Vec | float) -> Vec:
        """Lanes of `x` where the mask is set, else of `y`."""
        y = x.like(y)
        form = f"select {self.vector('i1')} %s, {self.vector(x.kind)} %s, {self.vector(x.kind)} %s"
        return self.apply(form, x.kind, mask, x, y)

    def _any(self, mask: Vec) -> str:
        """Whether a lane of the mask is set, as one bit."""
        union = mask.names[0]
        for name in mask.names[1:]:
            union = self.raw(f"or {self.vector('i1')} {union}, {name}")
        return self.raw(f"call i1 @llvm.vector.reduce.or.v{self.lanes}i1({self.vector('i1')} {union})")

    def signal(self, mask: Vec) -> None:
        """Raise the processor's flag for an invalid operation where a lane of the mask is set."""
        hit = self._any(mask)
        here = self._count
        self.module.require("!prof", lambda: WEIGHTS)
        self.module.require("invalid", lambda: INVALID)
        self.do(f"br i1 {hit}, label %odd{here}, label %after{here}, !prof !0")
        self.begin(f"odd{here}")
        self.do("call void @invalid()")
        self.do(f"br label %after{here}")
        self.begin(f"after{here}")

    def rare(self, mask: Vec, usual: Vec, function: str, *args: Vec) -> Vec:
        """`usual`, but the C library's `function` of `args` in the lanes of `mask`; a branch where there are none."""
        kind = usual.kind
        hit = self._any(mask)
        here, slow, join = self.label, f"slow{self._count}", f"join{self._count}"
        self.do(f"br i1 {hit}, label %{slow}, label %{join}, !prof !0")
        self.begin(slow)
        lanewise = f"lanewise.{function}.{self.lanes}"
        self.module.require("!prof", lambda: WEIGHTS)
        self.module.require(lanewise, lambda: lane_loop(lanewise, function, kind, self.lanes, len(args)))
        typed = ", ".join([f"{self.vector(kind)} %s"] * (len(args) + 1))
        fixed = self.apply(
            f"call {self.vector(kind)} @{lanewise}({self.vector('i1')} %s, {typed})", kind, mask, usual, *args
        )
        self.do(f"br label %{join}")
        self.begin(join)
        names = [
            self.raw(f"phi {self.vector(kind)} [ {a}, %{here} ], [ {b}, %{slow} ]")
            for a, b in zip(usual.names, fixed.names)
        ]
        return Vec(self, kind, tuple(names))


def lane_loop(name: str, function: str, kind: str, lanes: int, arity: int) -> str:
    """A private function that calls a scalar C function in the lanes of a mask."""
    t = LLVM_TYPES[kind]
    v = f"<{lanes} x {t}>"
    arguments = ", ".join(f"{v} %x{k}" for k in range(arity))
    takes = "\n".join(f"  %a{k} = extractelement {v} %x{k}, i32 %i" for k in range(arity))
    typed = ", ".join(f"{t} %a{k}" for k in range(arity))
    return f"""
declare {t} @{function}({", ".join([t] * arity)})
define private {v} @{name}(<{lanes} x i1> %mask, {v} %usual, {arguments}) noinline cold nounwind {{
entry:
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %next, %step ]
  %out = phi {v} [ %usual, %entry ], [ %kept, %step ]
  %m = extractelement <{lanes} x i1> %mask, i32 %i
  br i1 %m, label %call, label %step
call:
{takes}
  %y = call {t} @{function}({typed})
  %put = insertelement {v} %out, {t} %y, i32 %i
  br label %step
step:
  %kept = phi {v} [ %out, %loop ], [ %put, %call ]
  %next = add i32 %i, 1
  %more = icmp ult i32 %next, {lanes}
  br i1 %more, label %loop, label %done
done:
  ret {v} %kept
}}"""


class Vec:
    """Interleaved SSA vectors of one kind of element: ``f64 f32 i1 i8 i16 i32 i64``."""

    __slots__ = ("block", "kind", "names")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, block: Block, kind: str, names: tuple[str, ...]) -> None:
        self.block, self.kind, self.names = block, kind, names

    def like(self, other: Vec | float) -> Vec:
        """`other` as a vector of this kind."""
        return other if isinstance(other, Vec) else self.block.splat(self.kind, other)

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
        """Of signed integers."""
        return self._binary("?", "ashr", self, other)

    def compare(self, floating: str, integer: str, other: Vec | float) -> Vec:
        """A mask by the predicates ``fcmp floating`` or ``icmp integer``."""
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
        """A mask of equal lanes; NaN equals nothing."""
        return self.compare("oeq", "eq", other)

    def differs(self, other: Vec | float) -> Vec:
        """A mask of unequal lanes; NaN differs from everything."""
        return self.compare("une", "ne", other)

    @property
    def is_nan(self) -> Vec:
        """A mask of NaN."""
        return self.compare("uno", "?", self)

    @property
    def bits(self) -> Vec:
        """The bits of floating-point lanes as integers."""
        return self.block.cast("bitcast", self, f"i{BITS[self.kind]}")

    @property
    def float(self) -> Vec:
        """Integers as the floating-point numbers of these bits."""
        return self.block.cast("bitcast", self, f"f{BITS[self.kind]}")
