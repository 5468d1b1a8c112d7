"""The nodes of `LoopIR`: registers, buffers, and the statements of a function of loop nests over them.

A function reads and writes memory through `Buffer`s, contiguous and row-major, and computes in registers, which are
assigned once. Registers hold scalars; arrays are buffers with loops over them. Extents are symbolic, so one function
serves all sizes.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any, TypeAlias

import numpy as np

from tenferro_tensor._primitive import Op
from tenferro_tensor._spec import Spec
from tenferro_tensor.loop_ir._affine import Affine, Reg
from tenferro_tensor_core import DimLike, key_of


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant number."""

    value: bool | int | float | complex
    dtype: np.dtype[Any]

    def __hash__(self) -> int:
        return hash((key_of(self.value), self.dtype))

    def __eq__(self, other: object) -> bool:
        # -0.0 differs from 0.0, and NaN equals itself.
        return isinstance(other, Literal) and (key_of(self.value), self.dtype) == (key_of(other.value), other.dtype)


Value: TypeAlias = Reg | Literal
"""An operand of an op: a register or a number."""


class Role(Enum):
    """The owner of a buffer's memory."""

    INPUT = "input"
    """Owned by the caller, read-only."""
    CONSTANT = "constant"
    """Owned by the function, read-only."""
    OUTPUT = "output"
    """Owned by the caller, written; initially undefined."""
    TEMPORARY = "temporary"
    """Owned by the arena; initially undefined."""


@dataclass(frozen=True, slots=True)
class Buffer:
    """A contiguous array in memory, in row-major order."""

    number: int
    dtype: np.dtype[Any]
    shape: tuple[DimLike, ...]
    role: Role = Role.TEMPORARY

    def __str__(self) -> str:
        return f"b{self.number}"


@dataclass(frozen=True, slots=True)
class Let:
    """``result = op(args)``, an element-wise op on scalars."""

    result: Reg
    op: Op
    args: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Position:
    """``result = index``: an index, a counter or an extent as a value of dtype `INDEX`."""

    result: Reg
    index: Affine


@dataclass(frozen=True, slots=True)
class Load:
    """``result = buffer[at]``, counted in elements."""

    result: Reg
    buffer: Buffer
    at: Affine


@dataclass(frozen=True, slots=True)
class Store:
    """``buffer[at] = value``."""

    buffer: Buffer
    at: Affine
    value: Value


@dataclass(frozen=True, slots=True)
class Carried:
    """A value carried from one loop iteration to the next.

    Attributes:
        inside: register that the body reads.
        first: initial value.
        following: value for the next iteration.
        result: register of the final value, `first` if there is no iteration.
    """

    inside: Reg
    first: Value
    following: Value
    result: Reg


class Order(Enum):
    """Permitted orders of the iterations of a counted loop."""

    ANY = "parallel"
    """Any order: no iteration reads or writes memory that another one writes. There are no carries."""
    GROUPED = "reduce"
    """Carries accumulate, ``following = op(inside, term)`` with an associative op, and may be summed in a fixed number
    of groups; otherwise the iterations are independent."""
    GIVEN = "for"
    """Sequential."""


@dataclass(frozen=True, slots=True)
class For:
    """A counted loop: `index` is 0, 1, ..., ``extent - 1``.

    Attributes:
        swaps: disjoint pairs of buffers of one dtype and number of elements that swap their memory at the end of each
            iteration and stay swapped.
    """

    index: Reg
    extent: DimLike
    body: tuple[Statement, ...]
    carries: tuple[Carried, ...] = ()
    order: Order = Order.GIVEN
    swaps: tuple[tuple[Buffer, Buffer], ...] = ()


@dataclass(frozen=True, slots=True)
class While:
    """A loop that runs while a condition, evaluated before each iteration, holds.

    Attributes:
        test: computes `condition` from the carries; writes nothing that the body or later statements read.
        condition: a boolean.
        index: number of the iteration.
        most: maximum number of iterations.
        swaps: as in `For`.
    """

    test: tuple[Statement, ...]
    condition: Value
    index: Reg
    body: tuple[Statement, ...]
    carries: tuple[Carried, ...] = ()
    most: DimLike | None = None
    swaps: tuple[tuple[Buffer, Buffer], ...] = ()


@dataclass(frozen=True, slots=True)
class Case:
    """One branch of a `Switch`, and its values."""

    body: tuple[Statement, ...]
    values: tuple[Value, ...] = ()


@dataclass(frozen=True, slots=True)
class Switch:
    """The branch ``cases[index]``; the index is clamped."""

    index: Value
    cases: tuple[Case, ...]
    results: tuple[Reg, ...] = ()


@dataclass(frozen=True, slots=True)
class View:
    """A strided part of a buffer that a `Call` or `Foreign` reads or writes.

    Attributes:
        buffer: the buffer.
        at: position of the first element.
        shape: extents.
        strides: strides in elements.
    """

    buffer: Buffer
    at: Affine
    shape: tuple[DimLike, ...]
    strides: tuple[DimLike, ...]


@dataclass(frozen=True, slots=True)
class Call:
    """``results = op(operands)`` by a kernel on whole arrays: a product, a decomposition, third-party code.

    Results are written to memory that no operand shares.

    Attributes:
        op: the op.
        operands: arrays.
        results: contiguous arrays.
        ins: specs of the operands; weakly typed Python numbers of the equation are arrays here.
        where: the user's source line.
        recourse: whether this is the fallback after a subroutine that failed, which usually raises, or handles extents
            that the loops in its place do not.
    """

    op: Op
    operands: tuple[View, ...]
    results: tuple[View, ...]
    ins: tuple[Spec, ...]
    where: str = ""
    recourse: bool = False


@dataclass(frozen=True, slots=True)
class Foreign:
    """A call of a BLAS or LAPACK subroutine by Fortran's convention: every argument is an address.

    Attributes:
        symbol: its lower-case name, as in ``"dgemm"``. With a dot, as in ``"small.svd.d"``, it is a `Backend.routine`,
            which takes 64-bit integers. If a backend lacks it, `info` is -1.
        arguments: letters, numbers (integers in the width of the library), and views, passed by the address of the
            first element.
        written: indices of the views that are written to.
        info: value of the last argument, an integer appended to `arguments`.
    """

    symbol: str
    arguments: tuple[str | Value | View, ...]
    written: tuple[int, ...]
    info: Reg | None = None


Statement: TypeAlias = Let | Position | Load | Store | For | While | Switch | Call | Foreign
"""The node type of a body."""
