"""Refusals of exported functions: sizes that a program does not allow, and processors that lack instructions.

All of it is compiled for the oldest processor of its architecture, so that it runs where the program would not.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from tenferro_cpu.native.codegen.builder import Flag, Int, Module, ScalarBlock
from tenferro_cpu.native.codegen.whole._frame import EntryBlock
from tenferro_cpu.native.codegen.whole._render import NAME
from tenferro_cpu.native.codegen.whole._sizes import Sizes
from tenferro_tensor.backends import SizeCondition
from tenferro_tensor.loop_ir import LoopFunction
from tenferro_tensor_core import Dim, DimLike

MAX_BYTES: Final = float(1 << 60)
"""Total bytes of arrays above which a call is refused: below, no size overflows 64 bits."""

_COMPARISONS: Final = {"==": "eq", "!=": "ne", "<": "slt", "<=": "sle", ">": "sgt", ">=": "sge"}


class Needs(NamedTuple):
    """The instructions of a vector level on x86-64.

    Attributes:
        text: the level of the System V ABI, and its largest extensions.
        flags: bits of ``__cpu_model.__cpu_features``, the record of libgcc and compiler-rt.
    """

    text: str
    flags: int


def _bits(*numbers: int) -> int:
    return sum([1 << n for n in numbers])


NEEDS: Final = {
    "generic": Needs("x86-64-v2: SSE4.2", _bits(2, 8)),
    "avx2": Needs("x86-64-v3: AVX2, FMA and BMI2", _bits(2, 8, 10, 14, 16, 17)),
    "avx512": Needs("x86-64-v4: AVX-512 F, VL, BW, DQ and CD", _bits(2, 8, 10, 14, 15, 16, 17, 20, 21, 22, 23)),
}
"""What each level needs, also of the operating system, which saves wide registers; every AArch64 has ``"neon"``."""


def processor_of(level: str) -> str:
    """The processors that a level needs, in words."""
    return NEEDS[level].text if level in NEEDS else "every AArch64"


def baseline(level: str) -> str:
    """Function attributes of code that runs on every processor of the architecture of a level."""
    return '"target-cpu"="x86-64"' if level in NEEDS else ""


def supported(level: str) -> list[str]:
    """The function that returns whether this processor has the instructions of a level.

    The compiler's runtime library, which every linker adds, asks the processor once.
    """
    needs = NEEDS.get(level)
    if needs is None:
        return [f"define internal i1 @{NAME}.supported() {{", "  ret i1 true", "}"]
    b = EntryBlock(Module())
    b.begin("entry")
    b.do("call void @__cpu_indicator_init()")
    flags = b.raw(f"load i32, ptr {b.raw('getelementptr i8, ptr @__cpu_model, i64 12')}, align 4")
    has = b.raw(f"and i32 {flags}, {needs.flags}")
    b.do(f"ret i1 {b.raw(f'icmp eq i32 {has}, {needs.flags}')}")
    declared = ["@__cpu_model = external global [4 x i32]", "declare void @__cpu_indicator_init()"]
    return [*declared, f"define internal i1 @{NAME}.supported() {baseline(level)} {{", *b.lines, "}"]


def refuse(b: ScalarBlock, flag: str, code: int) -> None:
    """Return a code where a flag is set, and go on otherwise."""
    refused, accepted = b.new_label("refused"), b.new_label("accepted")
    b.branch(flag, refused, accepted)
    b.begin(refused)
    b.do(f"ret i32 {code}")
    b.begin(accepted)


def refuse_unmet(b: ScalarBlock, conditions: Iterable[SizeCondition], sizes: Sizes, first: int) -> None:
    """Return the code of the first condition that does not hold."""
    for k, c in enumerate(conditions):
        left, right = sizes.of(c.left), sizes.of(c.right)
        met = Flag(b, b.raw(f"icmp {_COMPARISONS[c.op]} i64 {left.name}, {right.name}"))
        for extent in c.when:
            met = Flag(b, b.raw(f"or i1 {met.name}, {(sizes.of(extent) < 1).name}"))
        refuse(b, met.opposite().name, first + k)


def refuse_overflow(
    b: ScalarBlock, f: LoopFunction, conditions: Iterable[SizeCondition], sizes: Sizes, code: int
) -> None:
    """Return a code if a size might not fit 64 bits, from upper bounds in floating point."""
    bounds = _UpperBounds(b, sizes)
    asked = [d for c in conditions for d in (c.left, c.right, *c.when)]
    total = "0.0"
    for buffer in (*f.inputs, *f.outputs, *f.temporaries):
        total = bounds.sum(total, bounds.product([str(float(buffer.dtype.itemsize)), *map(bounds.of, buffer.shape)]))
    for d in dict.fromkeys(asked):
        total = bounds.sum(total, bounds.of(d))
    refuse(b, b.raw(f"fcmp ugt double {total}, {MAX_BYTES:.1f}"), code)


class _UpperBounds:
    """Upper bounds of the magnitudes of sizes, as doubles."""

    def __init__(self, block: ScalarBlock, sizes: Sizes) -> None:
        self.block, self.sizes = block, sizes

    def of(self, size: DimLike) -> str:
        if not isinstance(size, Dim):
            return str(float(abs(size)))
        total = "0.0"
        for monomial, coefficient in size.terms:
            total = self.sum(total, self.product([str(float(abs(coefficient))), *map(self._atom, monomial)]))
        return total

    def _atom(self, atom: object) -> str:
        kind = atom.kind  # type: ignore[attr-defined]
        if kind == "var":
            register: Int = self.sizes.variables[atom.name]  # type: ignore[attr-defined]
            return self.block.raw(f"sitofp i64 {register.name} to double")
        args = atom.args[:1] if kind == "floordiv" else atom.args  # type: ignore[attr-defined]
        total = "1.0"  # a quotient of integers is rounded away from 0 at most to the next one
        for arg in args:
            total = self.sum(total, self.of(arg))
        return total

    def sum(self, x: str, y: str) -> str:
        return self.block.raw(f"fadd double {x}, {y}")

    def product(self, factors: list[str]) -> str:
        first, *rest = factors
        for factor in rest:
            first = self.block.raw(f"fmul double {first}, {factor}")
        return first
