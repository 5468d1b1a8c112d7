"""`Sizes`: symbolic sizes as 64-bit integers, each expression computed once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tenferro_cpu.native.codegen.builder import Int, ScalarBlock
from tenferro_tensor_core import Dim, DimLike


class Sizes:
    """Values of symbolic sizes in registers.

    Args:
        block: where they are computed, before any use.
        variables: the register of each name.
    """

    def __init__(self, block: ScalarBlock, variables: Mapping[str, Int]) -> None:
        self.block, self.variables = block, variables
        self._known: dict[Any, Int] = {}

    def of(self, size: DimLike) -> Int:
        """The value of a size."""
        if not isinstance(size, Dim):
            return Int(self.block, str(size))
        found = self._known.get(size)
        if found is None:
            found = self._known[size] = self._sum(size)
        return found

    def _sum(self, size: Dim) -> Int:
        total: Int | None = None
        for monomial, coefficient in size.terms:
            product: Int | int = 1
            for atom in monomial:
                value = self._atom(atom)
                product = value if isinstance(product, int) else product.times(value)
            term = Int(self.block, str(coefficient)) if isinstance(product, int) else product.times(coefficient)
            total = term if total is None else total.plus(term)
        assert total is not None
        return total

    def _atom(self, atom: Any) -> Int:
        found = self._known.get(atom)
        if found is None:
            found = self._known[atom] = self._made(atom)
        return found

    def _made(self, atom: Any) -> Int:
        if atom.kind == "var":
            return self.variables[atom.name]
        args = [self.of(arg) for arg in atom.args]
        if atom.kind == "floordiv":
            return self._quotient(args[0], args[1], *atom.args)
        first, *rest = args
        for other in rest:
            first = self._raw(f"call i64 @llvm.s{atom.kind}.i64(i64 {first.name}, i64 {other.name})")
        return first

    def _quotient(self, a: Int, b: Int, dividend: DimLike, divisor: DimLike) -> Int:
        """Floor quotient; unspecified for a zero divisor, which is refused earlier."""
        if not isinstance(divisor, int):
            b = self._raw(f"select i1 {b.equals(0).name}, i64 1, i64 {b.name}")
        low, least = (d if isinstance(d, int) else d.lower for d in (dividend, divisor))
        if low is not None and low >= 0 and least is not None and least >= 0:
            return self._raw(f"udiv i64 {a.name}, {b.name}")
        quotient = self._raw(f"sdiv i64 {a.name}, {b.name}")
        rest = a - quotient * b
        down = rest.differs(0) & (self._raw(f"xor i64 {rest.name}, {b.name}") < 0)
        return down.choose(quotient - 1, quotient)

    def _raw(self, text: str) -> Int:
        return Int(self.block, self.block.raw(text))
