"""`Reg`, a number assigned once, and `Affine`, a position in memory: a sum of registers times extents."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tenferro_tensor_core import Dim, DimLike, evaluate

INDEX = np.dtype("int64")
"""The dtype of counters and of the registers in an `Affine`."""


@dataclass(frozen=True, slots=True)
class Reg:
    """A register, assigned once; in the body of a loop, once in each iteration."""

    number: int
    dtype: np.dtype[Any]

    def __str__(self) -> str:
        return f"r{self.number}"


@dataclass(frozen=True, slots=True)
class Affine:
    """``constant + sum(register * coefficient)``; the coefficients are known at the call.

    It is evaluated in 64-bit integers, which wrap around.

    Attributes:
        constant: the part without registers.
        terms: integer registers with their nonzero coefficients, ascending by number.

    >>> import numpy as np
    >>> from tenferro_tensor.loop_ir import Reg
    >>> i = Affine.of(Reg(0, np.dtype("int64")))
    >>> print((i + 2) * 3 - i)
    6 + 2*r0
    """

    constant: DimLike = 0
    terms: tuple[tuple[Reg, DimLike], ...] = ()

    @staticmethod
    def of(value: Affine | Reg | DimLike) -> Affine:
        """Convert a register or an extent to an index.

        Args:
            value: register, extent or index.

        Returns:
            The index.
        """
        if isinstance(value, Affine):
            return value
        if isinstance(value, int | Dim):
            return Affine(value)
        return Affine(0, ((value, 1),))

    def __add__(self, other: Affine | Reg | DimLike) -> Affine:
        other = Affine.of(other)
        if not other.terms:
            return Affine(self.constant + other.constant, self.terms)
        terms = {reg.number: (reg, by) for reg, by in self.terms}
        for reg, by in other.terms:
            terms[reg.number] = reg, terms[reg.number][1] + by if reg.number in terms else by
        kept = [terms[n] for n in sorted(terms) if terms[n][1] != 0]
        return Affine(self.constant + other.constant, tuple(kept))

    def __mul__(self, by: DimLike) -> Affine:
        if by.__class__ is int and by == 0:
            return Affine()
        return Affine(self.constant * by, tuple([(reg, c * by) for reg, c in self.terms]))

    def __neg__(self) -> Affine:
        return self * -1

    def __sub__(self, other: Affine | Reg | DimLike) -> Affine:
        return self + -Affine.of(other)

    def coefficient(self, reg: Reg) -> DimLike:
        """The coefficient of a register.

        Args:
            reg: the register.

        Returns:
            The coefficient, 0 if the register does not occur.
        """
        return next((by for r, by in self.terms if r.number == reg.number), 0)

    def evaluate(self, registers: Mapping[int, int], sizes: Mapping[str, int]) -> int:
        """The value of the index.

        Args:
            registers: values by number of the register.
            sizes: values of the symbolic sizes by name.

        Returns:
            An integer.
        """
        return evaluate(self.constant, sizes) + sum([registers[r.number] * evaluate(by, sizes) for r, by in self.terms])

    def __str__(self) -> str:
        parts = [
            f"r{reg.number}" if by.__class__ is int and by == 1 else f"{by}*r{reg.number}" for reg, by in self.terms
        ]
        if not parts or not (self.constant.__class__ is int and self.constant == 0):
            parts.insert(0, str(self.constant))
        return " + ".join(parts)
