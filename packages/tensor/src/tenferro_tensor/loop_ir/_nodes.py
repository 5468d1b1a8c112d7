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
    """Whose memory a buffer is."""

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
    """Elements in memory, row-major and without gaps."""

    number: int
    dtype: np.dtype[Any]
    shape: tuple[DimLike, ...]
    role: Role = Role.TEMPORARY

    def __str__(self) -> str:
        return f"b{self.number}"


@dataclass(frozen=True, slots=True)
class Let:
    """``result = op(args)``, an element-wise op on numbers."""

    result: Reg
    op: Op
    args: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Position:
    """``result = index``: an index, a counter or an extent as a number of dtype `INDEX`."""

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
    """A number that a loop hands from one iteration to the next.

    Attributes:
        inside: what the body reads.
        first: its value in the first iteration.
        following: what the body computed for the next iteration.
        result: the last value; `first` where there was no iteration.
    """

    inside: Reg
    first: Value
    following: Value
    result: Reg


class Order(Enum):
    """What may be done to the iterations of a counted loop."""

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
        swaps: pairs of buffers of one dtype and number of elements, none in two pairs, that trade their memory at the
            end of each iteration, and stay traded.
    """

    index: Reg
    extent: DimLike
    body: tuple[Statement, ...]
    carries: tuple[Carried, ...] = ()
    order: Order = Order.GIVEN
    swaps: tuple[tuple[Buffer, Buffer], ...] = ()


@dataclass(frozen=True, slots=True)
class While:
    """A loop as long as a condition holds, which is computed before each iteration.

    Attributes:
        test: computes `condition` from the carries; stores nothing that the body or what follows reads.
        condition: a boolean.
        index: number of the iteration.
        most: iterations after which the loop ends in any case.
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
    """One branch of a `Switch`, and the values that it gives."""

    body: tuple[Statement, ...]
    values: tuple[Value, ...] = ()


@dataclass(frozen=True, slots=True)
class Switch:
    """The case ``cases[index]``; an index outside means the nearest one."""

    index: Value
    cases: tuple[Case, ...]
    results: tuple[Reg, ...] = ()


@dataclass(frozen=True, slots=True)
class View:
    """Part of a buffer as an array: what a `Call` reads or writes.

    Attributes:
        buffer: where.
        at: the first element.
        shape: extents.
        strides: distances of neighbours along each axis, in elements.
    """

    buffer: Buffer
    at: Affine
    shape: tuple[DimLike, ...]
    strides: tuple[DimLike, ...]


@dataclass(frozen=True, slots=True)
class Call:
    """``results = op(operands)`` by a kernel for whole arrays: a product, a decomposition, a third party's code.

    Results are written to memory that no operand shares.

    Attributes:
        op: what is done.
        operands: arrays.
        results: arrays without gaps.
        ins: specs of the operands; weak Python numbers among the operands of the equation are arrays here.
        where: the line of user code.
        recourse: whether this is the second attempt after a subroutine that did not succeed, which mostly raises, or
            serves extents that the loops in its place do not.
    """

    op: Op
    operands: tuple[View, ...]
    results: tuple[View, ...]
    ins: tuple[Spec, ...]
    where: str = ""
    recourse: bool = False


@dataclass(frozen=True, slots=True)
class Foreign:
    """A subroutine of BLAS or LAPACK, called as Fortran does: every argument is an address.

    Attributes:
        symbol: its name in small letters, as in ``"dgemm"``. One with a point, as in ``"small.svd.d"``, is a
            `Backend.routine`, which takes integers of 64 bits. A backend may lack it: then `info` holds -1.
        arguments: letters, numbers (integers in the width of the library), and views, of which the address of the first
            element is passed.
        written: positions of the views that are written to.
        info: what the last argument, an integer that is added to `arguments`, holds afterwards.
    """

    symbol: str
    arguments: tuple[str | Value | View, ...]
    written: tuple[int, ...]
    info: Reg | None = None


Statement: TypeAlias = Let | Position | Load | Store | For | While | Switch | Call | Foreign
"""What a body consists of."""
