"""Entries of fused kernels: operands that lie simply, small enough that the call itself counts.

Like the entries of single operations, they are built-in functions that read arrays in place; whatever they do not
take goes to the fallback, which plans for any layout.
"""

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import cache, partial
from typing import Any, Final, Self

import numpy as np

from tenferro_cpu.native.kernels._combine import LOCATED
from tenferro_cpu.native.kernels._combined_text import CHUNK, MOST
from tenferro_cpu.native.kernels._driver import PAYS
from tenferro_cpu.native.kernels._fused_entry_text import fused_entry_text
from tenferro_cpu.native.machine._jit import engine
from tenferro_cpu.native.memory._pool import pool
from tenferro_cpu.native.python._builtin import FASTCALL, MethodDef, builtin, definition
from tenferro_cpu.native.python._interpreter import interpreter
from tenferro_cpu.native.python._layout import SCALARS
from tenferro_cpu.native.threads._team import team
from tenferro_tensor.device_model import Access, KernelIR, Operand, Region

SHORT: Final = 8
"""Shorter rows are reduced side by side, one per lane, which entries do not do."""

LONGEST_SHORT: Final = 16
"""Elements of the longest row of which as many are reduced at once as a vector has lanes."""

FEW: Final = 1 << 13
"""Elements up to which an entry reduces such rows one by one: planning takes longer."""

LONG_WORK: Final = 600_000.0
"""Nanoseconds of work in a row from which it is reduced in parts, which entries do not do."""

POOLED: Final = 1 << 20
"""Bytes from which results come from the pool."""

NEVER: Final = 2**62
"""More elements than there are: a bound that does not bind."""


class Kind(IntEnum):
    """How an operand covers an iteration space of rows."""

    WHOLE = 0
    """One element for each of the space."""
    ROW = 1
    """One row, the same for all rows."""
    COLUMN = 2
    """One element for each row."""
    NUMBER = 3
    """One element, as an array without axes or as a NumPy scalar."""


@dataclass(frozen=True, slots=True)
class Rows:
    """An iteration space as rows of contiguous elements.

    Attributes:
        inputs: how each input covers it; one of them covers it whole.
        trailing: number of trailing axes that a row consists of; 0 for all axes.
        reduced: whether rows are reduced to one element.
        combined: whether rows are combined element by element.
    """

    inputs: tuple[Kind, ...]
    trailing: int = 0
    reduced: bool = False
    combined: bool = False

    @classmethod
    def of(cls, region: Region) -> Self | None:
        """The rows of a region, or None where its operands cover it in another way.

        >>> from tenferro_tensor.catalog import mul
        >>> from tenferro_tensor.device_model import Apply, Operand
        >>> import numpy as np
        >>> f8 = Operand(np.dtype("float64"))
        >>> kernel = KernelIR((f8, f8), (Apply(mul.op(), (0, 1)),), (2,))
        >>> Rows.of(Region(kernel, 3, ((0, 1, 2), (0,))))
        Rows(inputs=(<Kind.WHOLE: 0>, <Kind.COLUMN: 2>), trailing=2, reduced=False, combined=False)
        """
        rank, every = region.rank, tuple(range(region.rank))
        kinds, lengths = [], set()
        for axes in region.axes:
            if axes == every:
                kinds.append(Kind.WHOLE)
            elif not axes:
                kinds.append(Kind.NUMBER)
            elif axes == every[rank - len(axes) :]:
                kinds.append(Kind.ROW)
                lengths.add(len(axes))
            elif axes == every[: len(axes)]:
                kinds.append(Kind.COLUMN)
                lengths.add(rank - len(axes))
            else:
                return None
        gone = len(region.reduced)
        trailing = gone > 0 and region.reduced == every[rank - gone :]
        leading = gone > 0 and not trailing and region.reduced == every[:gone]
        if gone:
            lengths.add(gone if trailing else rank - gone)
        if len(lengths) > 1 or Kind.WHOLE not in kinds or (gone and not trailing and not leading):
            return None
        length = lengths.pop() if lengths else 0
        return cls(tuple(kinds), 0 if length == rank else length, trailing, leading)

    @property
    def reads(self) -> tuple[Access, ...]:
        """Access of each input along a row."""
        return tuple([Access.UNIT if kind in (Kind.WHOLE, Kind.ROW) else Access.FIXED for kind in self.inputs])


def unpooled(written: Sequence[Operand]) -> int:
    """Elements of the largest results of which none comes from the pool."""
    return (POOLED - 1) // max([o.dtype.itemsize for o in written])


def long_row(cost: float) -> int:
    """Elements of the longest row that is reduced in one piece, where an element takes `cost` nanoseconds."""
    return int(LONG_WORK / cost)


@cache
def _definition() -> MethodDef | None:
    have, helpers = interpreter(), team()
    if have is None or helpers is None:
        return None
    text = fused_entry_text(have.tuple_items)
    return definition("fused", engine().function(text, "fused", have.symbols | helpers.symbols, level=2), FASTCALL)


def entry(
    address: int,
    kernel: KernelIR,
    rows: Rows,
    fallback: Callable[..., Any],
    *,
    cost: float,
    context: np.ndarray[Any, Any] | None = None,
    near: int | None = None,
    longest: int = NEVER,
    most: int | None = None,
    scan: bool = False,
    rest: int = 0,
    widest: int = NEVER,
    large: Callable[..., Any] | None = None,
) -> Callable[..., Any]:
    """A built-in function of arrays that runs a kernel, or `fallback` where entries cannot be had.

    Args:
        address: machine code for the accesses of `rows`.
        kernel: what it computes.
        rows: the iteration space.
        fallback: called with the same arguments for everything else.
        cost: nanoseconds that one element takes, for the decision about more threads.
        context: words that the kernel is handed.
        near: elements up to which results from the pool are taken; by default what the caches hold, because beyond
            that the fallback writes past them.
        longest: elements of the longest row that the kernel takes.
        most: larger spaces go to the fallback.
        scan: so do calls of which the only result, which is reduced, is not finite.
        rest: machine code that combines what is left of chunks of rows; without it there is one chunk at most.
        widest: elements of the longest rows that are combined.
        large: called instead of `fallback` for spaces beyond `near` and `most`.
    """
    made, written = _definition(), kernel.written
    if made is None or len(kernel.inputs) + len(written) > MOST or Kind.WHOLE not in rows.inputs:
        return fallback
    items = [o.dtype.itemsize for o in (*kernel.inputs, *written)]
    reduces = rows.reduced or rows.combined
    have = None if reduces else pool()
    make = partial(
        _builtin, made, address, kernel, rows, cost=cost, context=context, longest=longest, rest=rest, widest=widest
    )
    large = fallback if large is None else large
    if have is not None:
        bound = engine().host.near_bytes // sum(items) if near is None else near
        large = have.giving_way(make(fallback, bound, large))
    limit = NEVER if reduces else unpooled(written)
    return make(fallback, limit if most is None else min(most, limit), large, scan=scan)


def _builtin(
    made: MethodDef,
    address: int,
    kernel: KernelIR,
    rows: Rows,
    fallback: Callable[..., Any],
    most: int,
    large: Callable[..., Any],
    *,
    cost: float,
    context: np.ndarray[Any, Any] | None,
    longest: int,
    scan: bool = False,
    rest: int = 0,
    widest: int = NEVER,
) -> Callable[..., Any]:
    """The entry for at most so many elements."""
    written, shared = kernel.written, int(PAYS / cost)
    least = 0 if not rows.reduced else SHORT if rows.trailing else 1
    partible = kernel.reduction is not None and kernel.reduction.kind not in LOCATED
    numbers = [address, len(rows.inputs), len(written), most, rows.trailing, least]
    longest = min(longest, CHUNK * (CHUNK if rest else 1) if rows.combined else long_row(cost) if partible else NEVER)
    short = LONGEST_SHORT if partible and rows.trailing and not rows.combined else 0
    numbers += [longest, short, FEW, shared, rows.inputs.index(Kind.WHOLE), rows.combined]
    part = written[0].dtype
    scanned = part.itemsize // (2 if part.kind == "c" else 1) if scan else 0
    numbers += [0 if context is None else context.ctypes.data, scanned, rest]
    numbers += [min(unpooled(written), widest) if rows.combined else NEVER]
    kept: list[Any] = [context]
    for operand, kind in zip((*kernel.inputs, *written), (*rows.inputs, *[Kind.WHOLE] * len(written))):
        scalar = operand.dtype.type if kind is Kind.NUMBER and operand.dtype.name in SCALARS else None
        numbers += [id(operand.dtype), operand.dtype.itemsize, kind, 0 if scalar is None else id(scalar)]
        kept += [operand.dtype, scalar]
    receiver = (struct.pack(f"={len(numbers)}Q", *numbers), fallback, tuple(kept), large)
    return builtin(made, receiver)  # type: ignore[no-any-return]
