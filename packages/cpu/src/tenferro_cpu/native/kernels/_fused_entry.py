"""Entries of kernels of rows: operands in simple layouts, small enough that call overhead matters (fused.c).

Everything else goes to the fallback, which plans for any layout.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from tenferro_cpu.native._extension import compiled
from tenferro_cpu.native.codegen.machine._jit import engine
from tenferro_cpu.native.kernels._limits import COMBINED_ROWS, TEAM_MIN_NS, UNBOUNDED
from tenferro_cpu.native.memory._pool import pool
from tenferro_cpu.native.threads._team import team

ENTRY_MIN_ROW: Final = 8
"""Shorter rows are reduced side by side, one per lane, which entries do not support."""

SHORT_ROW_MAX: Final = 16
"""Maximum length of rows of which as many are reduced at once as a vector has lanes."""

ROW_BY_ROW_MAX_ELEMENTS: Final = 1 << 13
"""Maximum elements for which an entry reduces such rows one by one: planning takes longer."""

LONG_ROW_MIN_NS: Final = 600_000.0
"""Work per row (nanoseconds) above which it is reduced in parts, which entries do not support."""

POOLED_MIN_BYTES: Final = 1 << 20
"""Smallest result in bytes that comes from the pool."""


@dataclass(frozen=True, slots=True)
class Rows:
    """An iteration space as rows of contiguous elements.

    Attributes:
        trailing: number of trailing axes in a row; 0 for all axes.
        reduced: whether rows are reduced to one element.
        combined: whether rows are combined element by element.
    """

    trailing: int = 0
    reduced: bool = False
    combined: bool = False


def unpooled(written: np.dtype[Any]) -> int:
    """Elements of the largest result of a dtype that does not come from the pool."""
    return (POOLED_MIN_BYTES - 1) // written.itemsize


def long_row(cost: float) -> int:
    """Length of the longest row that is reduced as one, if an element takes `cost` nanoseconds."""
    return int(LONG_ROW_MIN_NS / cost)


def entry(
    address: int,
    inputs: tuple[np.dtype[Any], ...],
    written: np.dtype[Any],
    rows: Rows,
    fallback: Callable[..., Any],
    *,
    cost: float,
    near: int | None = None,
    longest: int = UNBOUNDED,
    most: int | None = None,
    scan: bool = False,
    rest: int = 0,
    widest: int = UNBOUNDED,
    large: Callable[..., Any] | None = None,
    partible: bool = False,
) -> Callable[..., Any]:
    """A callable of arrays that runs a kernel.

    Args:
        address: machine code for the accesses of `rows`.
        inputs: dtypes of the operands.
        written: dtype of the result.
        rows: the iteration space.
        fallback: called with the same arguments for everything else.
        cost: nanoseconds per element, which decides the number of threads.
        near: maximum elements of large results from the pool; by default the capacity of the caches, because the
            fallback writes larger ones past them.
        longest: length of the longest row that the kernel takes.
        most: larger spaces go to the fallback.
        scan: whether calls whose only, reduced result is not finite go to the fallback.
        rest: machine code that combines the partial results of chunks of rows; without it there is one chunk at most.
        widest: length of the longest rows that are combined.
        large: called instead of `fallback` for spaces beyond `near` and `most`.
        partible: whether rows are reduced, in a way in which parts of them can be combined.
    """
    dtypes = (*inputs, written)
    team()
    if rows.combined:
        longest = min(longest, COMBINED_ROWS * (COMBINED_ROWS if rest else 1))
        widest = min(widest, unpooled(written))
    elif partible:
        longest = min(longest, long_row(cost))

    def make(most: int, large: Callable[..., Any]) -> Callable[..., Any]:
        return compiled.FusedEntry(
            kernel=address, dtypes=dtypes, inputs=len(inputs), fallback=fallback, large=large,
            trailing=rows.trailing, reduced=rows.reduced, combined=rows.combined, most=most,
            shortest=0 if not rows.reduced else ENTRY_MIN_ROW if rows.trailing else 1, longest=longest, widest=widest,
            paired=SHORT_ROW_MAX if partible and rows.trailing and not rows.combined else 0,
            few=ROW_BY_ROW_MAX_ELEMENTS, shared=int(TEAM_MIN_NS / cost),
            scan=part_size(written) if scan else 0, rest=rest,
        )  # fmt: skip

    large = fallback if large is None else large
    if rows.reduced or rows.combined:
        return make(UNBOUNDED if most is None else most, large)
    bound = engine().host.near_bytes // sum([d.itemsize for d in dtypes]) if near is None else near
    have, limit = pool(), unpooled(written)
    if have is not None:
        large = have.giving_way(make(bound, large))
    return make(min(UNBOUNDED if most is None else most, limit if have is not None else bound), large)


def part_size(dtype: np.dtype[Any]) -> int:
    """Bytes of a real number of a dtype, or of a part of a complex one."""
    return dtype.itemsize // (2 if dtype.kind == "c" else 1)
