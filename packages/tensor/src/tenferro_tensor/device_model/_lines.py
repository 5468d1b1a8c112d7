"""`Lines`: a kernel written as formulas."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tenferro_tensor._primitive import Primitive
from tenferro_tensor.catalog import arithmetic, comparison
from tenferro_tensor.device_model._kernel_ir import Apply, KernelIR, Literal, Operand


class Term:
    """A value of a kernel under construction; number operands become literals of its dtype."""

    __slots__ = ("_lines", "number")

    def __init__(self, lines: Lines, number: int) -> None:
        self._lines, self.number = lines, number

    def __add__(self, other: Term | float) -> Term:
        return self._lines.apply(arithmetic.add, self, other)

    def __sub__(self, other: Term | float) -> Term:
        return self._lines.apply(arithmetic.sub, self, other)

    def __rsub__(self, other: float) -> Term:
        return self._lines.apply(arithmetic.sub, other, self)

    def __mul__(self, other: Term | float) -> Term:
        return self._lines.apply(arithmetic.mul, self, other)

    def __truediv__(self, other: Term | float) -> Term:
        return self._lines.apply(arithmetic.div, self, other)

    def __rtruediv__(self, other: float) -> Term:
        return self._lines.apply(arithmetic.div, other, self)

    def __neg__(self) -> Term:
        return self._lines.apply(arithmetic.neg, self)

    def __lt__(self, other: float) -> Term:
        return self._lines.apply(comparison.lt, self, other)

    def __ge__(self, other: float) -> Term:
        return self._lines.apply(comparison.ge, self, other)

    def equals(self, other: float) -> Term:
        """Whether the value equals a number."""
        return self._lines.apply(comparison.eq, self, other)

    def where(self, condition: Term, other: Term | float) -> Term:
        """This value where the condition holds, the other elsewhere."""
        return self._lines.apply(comparison.select, condition, self, other)

    def power(self, exponent: int) -> Term:
        """The power with a positive integer exponent, by repeated squaring."""
        found: Term | None = None
        square, left = self, exponent
        while True:
            if left & 1:
                found = square if found is None else found * square
            left >>= 1
            if not left:
                assert found is not None
                return found
            square = square * square

    def polynomial(self, *coefficients: float) -> Term:
        """The polynomial in this value, lowest power first, by Horner's rule."""
        *rest, last = coefficients
        first, *others = reversed(rest)
        total = self * last + first
        for c in others:
            total = total * self + c
        return total


class Lines:
    """The lines of a kernel of one real dtype.

    Args:
        dtype: dtype of the inputs and of all literals.
        inputs: number of inputs.
    """

    def __init__(self, dtype: np.dtype[Any], inputs: int = 1) -> None:
        self.dtype = dtype
        self._inputs = (Operand(dtype),) * inputs
        self._lines: list[Literal | Apply] = []
        self._numbers: dict[Literal | Apply, int] = {}

    def input(self, number: int = 0) -> Term:
        """One of the inputs."""
        return Term(self, number)

    def literal(self, value: float) -> Term:
        """A constant of the dtype."""
        return self._line(Literal(self.dtype.type(value).item(), self.dtype))

    def apply(self, primitive: Primitive, *args: Term | float) -> Term:
        """Apply an op to values and numbers; an equal line is added once."""
        terms = [a if isinstance(a, Term) else self.literal(a) for a in args]
        return self._line(Apply(primitive.op(), tuple([t.number for t in terms])))

    def function(self, primitive: Primitive) -> Callable[..., Term]:
        """The op as a function of values."""
        return lambda *args: self.apply(primitive, *args)

    def kernel(self, result: Term) -> KernelIR:
        """The finished kernel, with one result."""
        return KernelIR(self._inputs, tuple(self._lines), (result.number,))

    def _line(self, line: Literal | Apply) -> Term:
        if line not in self._numbers:
            self._numbers[line] = len(self._inputs) + len(self._lines)
            self._lines.append(line)
        return Term(self, self._numbers[line])
