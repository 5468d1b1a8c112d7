"""The record of one step: 64-bit words, including addresses of tables, in the layout of `struct step` in `step.h`."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from tenferro_cpu.native.contraction._tables import Entries, filled

FIELDS: Final = (
    "kernel",  # one of `KERNELS`
    "a", "b", "c",  # indices of the base pointers of operands and result
    "a_at", "b_at", "c_at",  # byte offsets from them
    "split",  # what is cut into chunks: 0 the batch, 1 rows, 2 columns
    "unit",  # entries per unit
    "units", "pieces",  # number of units; chunks that the work pays for
    "scratch",  # bytes of the packed panels of one chunk
    "batch", "sums",  # entries of the batch; how many consecutive ones accumulate into one result
    "batch_a", "batch_b", "batch_c",  # tables of byte offsets
    "rows", "columns", "inner",  # sizes of the product
    "row_a", "row_c", "inner_a", "inner_b", "column_b", "column_c", "row_b", "inner_c",
    "row_flags", "row_inner_flags", "column_flags", "column_inner_flags",  # which blocks are contiguous, as bytes
    "tile_flags",  # how the result of each tile of rows is written
    "far_rows", "far_columns",  # `PREFETCHED` for operands whose rows or columns are prefetched before packing
    "row_block", "inner_block", "column_block",  # sizes packed at once
    "ahead",  # bytes of the next batch that a tile prefetches with each summed index
    "stream",  # `STREAM` if the result may be written past the caches, else 0
    "records", "parts", "room",  # steps of each block, their number, and bytes of what they copy
    "run",  # length of contiguous runs; for a copy, bytes between the runs that it writes
)  # fmt: skip
PLACE: Final = {name: number for number, name in enumerate(FIELDS)}
WORDS: Final = len(FIELDS)

SCATTER, CONTIGUOUS, STREAM = 2, 4, 1 << 16
"""Flags of tiles: rows are not full contiguous vectors; the first vector is contiguous, twice that for the second, and
so on; full vectors on whole cache lines are written past the caches.
"""

PREFETCHED: Final = 2
"""Flag of blocks to be packed: the following rows are prefetched."""

KERNELS: Final = (
    "gemm", "gemm direct rows", "gemm direct", "elementwise", "scaling", "gather", "dot", "lanes", "transpose", "fill",
    "blocks",
)  # fmt: skip
"""Kernels by number: products of packed panels, with rows read in place, or with both operands read in place; products
of runs, of a run and a number, of single elements; inner products of runs; products whose batch is a run; a copy in
another order; zeros; separate steps for each block of the batch.
"""

Places = tuple[tuple[int, int], ...]
"""Base pointer and byte offset of both operands and the result."""

_A, _B, _C, _A_AT, _B_AT, _C_AT = (PLACE[name] for name in ("a", "b", "c", "a_at", "b_at", "c_at"))


@dataclass
class Step:
    """A record and the tables that it points to.

    Attributes:
        kernel: its name.
        sizes: batch, rows, columns and summed size.
        swapped: whether the right operand provides the rows.
        words: fields that are numbers.
        fill: tables for the fields that are addresses; a table that refers to another comes after it.
        inside: steps of each block, with the addresses of their operands and result.
        cost: estimated nanoseconds on one core.
    """

    kernel: str
    sizes: tuple[int, int, int, int]
    swapped: bool = False
    words: dict[str, int] = field(default_factory=dict)
    fill: Callable[[], dict[str, Entries]] = dict
    cost: float = 0.0
    inside: tuple[tuple[Step, Places], ...] = ()

    def exchanged(self) -> Step:
        """The same step with the operands exchanged; the tables are shared."""
        _ = self._row
        made = object.__new__(Step)
        made.__dict__.update(self.__dict__, swapped=not self.swapped)
        return made

    @property
    def scratch(self) -> int:
        """Bytes for the packed panels of all chunks."""
        return self.words.get("scratch", 0) * max(1, self.words.get("pieces", 1))

    @property
    def nbytes(self) -> int:
        """Bytes of the record and its tables, including the inner steps."""
        row, *tables = self._row
        return 8 * (len(row) + sum(map(len, tables))) + sum([step.nbytes for step, _ in self.inside])

    @property
    def _row(self) -> tuple[array[int], ...]:
        """The record without addresses of operands, the memory of its tables, and the records of the inner steps.

        Plans of several threads share steps, and their records hold addresses of these tables: the first tables must
        therefore stay, whereas `cached_property` would let later ones replace them.
        """
        made: tuple[array[int], ...] | None = self.__dict__.get("_made")
        if made is None:
            made = self.__dict__.setdefault("_made", self._filled())
        return made

    def _filled(self) -> tuple[array[int], ...]:
        row = array("q", bytes(8 * WORDS))
        row[PLACE["kernel"]] = KERNELS.index(self.kernel)
        for name, value in self.words.items():
            row[PLACE[name]] = value
        room, addresses = filled(self.fill())
        for name, address in addresses.items():
            row[PLACE[name]] = address
        if not self.inside:
            return row, room
        records = array("q")
        for step, places in self.inside:
            records += step.record(places)
        row[PLACE["records"]] = records.buffer_info()[0]
        return row, room, records

    def record(self, places: Places) -> array[int]:
        """The words, for operands and result given by base pointer and byte offset; valid while the step lives."""
        row = self._row[0][:]
        left, right = (1, 0) if self.swapped else (0, 1)
        row[_A], row[_A_AT] = places[left]
        row[_B], row[_B_AT] = places[right]
        row[_C], row[_C_AT] = places[2]
        return row
