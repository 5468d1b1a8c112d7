"""The nodes of `LoopIR`: registers, buffers, and the statements of a function of loop nests over them.

A function reads and writes memory through `Buffer`s, row-major and without gaps, and computes in registers, which are
set once. There are no values with axes: those are buffers and the loops over them. Extents are symbolic, so one
function serves all sizes.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any, TypeAlias

import numpy as np

from tenferro_tensor._primitive import Op
from tenferro_tensor._spec import Spec
from tenferro_tensor.device_model._kernel_ir import Literal
from tenferro_tensor.loop_ir._affine import Affine, Reg
from tenferro_tensor_core import DimLike

Value: TypeAlias = Reg | Literal
"""What an op takes: a register or a number."""


class Role(Enum):
    """The owner of a buffer's memory."""

    INPUT = "input"
    """The caller's, read only."""
    CONSTANT = "constant"
    """The function's, read only."""
    OUTPUT = "output"
    """The caller's, written; what is in it at first is not defined."""
    TEMPORARY = "temporary"
    """The arena's; what is in it at first is not defined."""


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
    """Independent of each other: no iteration reads or writes what another one writes. There are no carries."""
    GROUPED = "reduce"
    """Carries accumulate, ``following = op(inside, term)`` with an associative op, and may be summed in groups of
    which the number is fixed; otherwise independent."""
    GIVEN = "for"
    """One after the other."""


@dataclass(frozen=True, slots=True)
class For:
    """A counted loop: `index` is 0, 1, ..., ``extent - 1``.

    Attributes:
        swaps: disjoint pairs of buffers of one dtype and number of elements that swap their memory at the end of each
            iteration, permanently.
    """

    index: Reg
    extent: DimLike
    body: tuple[Statement, ...]
    carries: tuple[Carried, ...] = ()
    order: Order = Order.GIVEN
    swaps: tuple[tuple[Buffer, Buffer], ...] = ()


@dataclass(frozen=True, slots=True)
class While:
    """A loop that runs while a condition holds, which is evaluated before each iteration.

    Attributes:
        test: computes `condition` from the carries; writes nothing that the body or later statements read.
        condition: a boolean.
        index: number of the iteration.
        most: largest number of iterations.
        swaps: as of `For`.
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
    """A strided part of a buffer, which a `Call` reads or writes.

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
    """A BLAS or LAPACK subroutine, called as from Fortran: every argument is an address.

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
"""What a body consists of."""
