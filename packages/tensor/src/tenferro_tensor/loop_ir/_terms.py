"""`ScalarFormula`: element-wise statements written as formulas."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tenferro_tensor._primitive import Op, Primitive
from tenferro_tensor._spec import Spec
from tenferro_tensor.catalog import arithmetic, comparison
from tenferro_tensor.loop_ir._affine import Reg
from tenferro_tensor.loop_ir._nodes import Let, Literal, Value
from tenferro_tensor.loop_ir._text import head


@dataclass(frozen=True, slots=True)
class OpStatements:
    """Statements that compute what one op does.

    Attributes:
        args: registers of its operands.
        body: the statements, with registers of their own.
        result: what it computes.
    """

    args: tuple[Reg, ...]
    body: tuple[Let, ...]
    result: Value

    def __str__(self) -> str:
        return "\n".join([head(s) for s in self.body])


class Term:
    """A value under construction; number operands become literals of the dtype."""

    __slots__ = ("_formula", "value")

    def __init__(self, formula: ScalarFormula, value: Value) -> None:
        self._formula, self.value = formula, value

    def __add__(self, other: Term | float) -> Term:
        return self._formula.apply(arithmetic.add, self, other)

    def __sub__(self, other: Term | float) -> Term:
        return self._formula.apply(arithmetic.sub, self, other)

    def __rsub__(self, other: float) -> Term:
        return self._formula.apply(arithmetic.sub, other, self)

    def __mul__(self, other: Term | float) -> Term:
        return self._formula.apply(arithmetic.mul, self, other)

    def __truediv__(self, other: Term | float) -> Term:
        return self._formula.apply(arithmetic.div, self, other)

    def __rtruediv__(self, other: float) -> Term:
        return self._formula.apply(arithmetic.div, other, self)

    def __neg__(self) -> Term:
        return self._formula.apply(arithmetic.neg, self)

    def __lt__(self, other: float) -> Term:
        return self._formula.apply(comparison.lt, self, other)

    def __ge__(self, other: float) -> Term:
        return self._formula.apply(comparison.ge, self, other)

    def equals(self, other: float) -> Term:
        """Whether the value equals a number."""
        return self._formula.apply(comparison.eq, self, other)

    def where(self, condition: Term, other: Term | float) -> Term:
        """This value where the condition holds, the other elsewhere."""
        return self._formula.apply(comparison.select, condition, self, other)

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


class ScalarFormula:
    """Statements on operands of one real dtype.

    Args:
        dtypes: dtypes of the operands; literals have the first.
    """

    def __init__(self, dtypes: Sequence[np.dtype[Any]]) -> None:
        self.dtype = dtypes[0]
        self._args = tuple([Reg(k, d) for k, d in enumerate(dtypes)])
        self._body: list[Let] = []
        self._known: dict[tuple[Op, tuple[Value, ...]], Reg] = {}

    def operands(self) -> list[Term]:
        """The operands."""
        return [Term(self, arg) for arg in self._args]

    def literal(self, value: float) -> Term:
        """A constant of the dtype."""
        return Term(self, Literal(self.dtype.type(value).item(), self.dtype))

    def apply(self, primitive: Primitive, *args: Term | float) -> Term:
        """Apply an op to values and numbers; an equal statement is added once."""
        values = tuple([(a if isinstance(a, Term) else self.literal(a)).value for a in args])
        op = primitive.op()
        found = self._known.get((op, values))
        if found is None:
            out = op.infer(*[Spec((), v.dtype) for v in values])
            assert isinstance(out, Spec)
            found = self._known[op, values] = Reg(len(self._args) + len(self._body), out.dtype)
            self._body.append(Let(found, op, values))
        return Term(self, found)

    def function(self, primitive: Primitive) -> Callable[..., Term]:
        """The op as a function of values."""
        return lambda *args: self.apply(primitive, *args)

    def expansion(self, result: Term) -> OpStatements:
        """The finished statements."""
        return OpStatements(self._args, tuple(self._body), result.value)
