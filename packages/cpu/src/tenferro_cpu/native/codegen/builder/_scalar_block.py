"""`ScalarBlock`: a `Block` whose values are single numbers."""

from __future__ import annotations

from tenferro_cpu.native.codegen.builder._emitter import Module
from tenferro_cpu.native.codegen.builder._lanewise import declaration
from tenferro_cpu.native.codegen.builder._scalars import Flag
from tenferro_cpu.native.codegen.builder._types import LLVM_TYPES, number
from tenferro_cpu.native.codegen.builder._vectors import Block, Vec


class ScalarBlock(Block):
    """A function under construction in which a `Vec` is a single number, and vector types are element types.

    Code written for vectors with `Vec` emits scalar instructions here.

    Methods take:
        kind: element kind, as `Vec` lists them.
        value: a number.
        llvm: LLVM type of the register.
        scalar: name of a register.
        intrinsic: name of the LLVM intrinsic.
        function: name of the C library function.
        args: operands.
        unsigned: whether the integers are unsigned.
        x: a number.
        mask, usual: condition, and the result where it does not hold.

    Methods return:
        The resulting `Vec`, or the name or LLVM type of a register.

    Args:
        module: see `Block`.
        fused: see `Block`.
        lookups: whether vectors of this processor use table lookups; single numbers do not.
    """

    def __init__(self, module: Module, fused: bool = True, lookups: bool = False) -> None:
        super().__init__(module, 1, 1, fused, False)
        self.lookups = lookups

    def vector(self, kind: str) -> str:
        """LLVM type of a number."""
        return LLVM_TYPES[kind]

    def splat(self, kind: str, value: float) -> Vec:
        """A constant."""
        return Vec(self, kind, (number(kind, value),))

    def repeated(self, kind: str, llvm: str, scalar: str) -> Vec:
        """A number in a register."""
        return Vec(self, kind, (scalar,))

    def call(self, intrinsic: str, *args: Vec) -> Vec:
        """Call an intrinsic whose operands and result have the type of the first operand."""
        kind = args[0].kind
        t = self.vector(kind)
        return self.apply(f"call {t} @llvm.{intrinsic}.{kind}({', '.join([f'{t} %s'] * len(args))})", kind, *args)

    def saturated(self, x: Vec, kind: str, *, unsigned: bool) -> Vec:
        """Round towards zero to the nearest representable integer; NaN becomes 0."""
        name = f"llvm.fpto{'u' if unsigned else 's'}i.sat.{kind}.{x.kind}"
        return self.apply(f"call {self.vector(kind)} @{name}({self.vector(x.kind)} %s)", kind, x)

    def first_lane(self, x: Vec) -> str:
        """Name of the number."""
        return x.names[0]

    def any(self, mask: Vec) -> Flag:
        """Whether the mask is set."""
        return Flag(self, mask.names[0])

    def rare(self, mask: Vec, usual: Vec, function: str, *args: Vec) -> Vec:
        """`usual`, or where `mask` is set the C library's `function` of `args`; a branch skips it otherwise."""
        kind, t = usual.kind, self.vector(usual.kind)
        here, slow, join = self.label, self.new_label("slow"), self.new_label("join")
        self.module.require(function, lambda: declaration(function, kind, len(args)))
        self.branch(mask.names[0], slow, join, rarely=True)
        self.begin(slow)
        exact = self.apply(f"call {t} @{function}({', '.join([f'{t} %s'] * len(args))})", kind, *args)
        self.jump(join)
        self.begin(join)
        name = self.raw(f"phi {t} [ {usual.names[0]}, %{here} ], [ {exact.names[0]}, %{slow} ]")
        return Vec(self, kind, (name,))
