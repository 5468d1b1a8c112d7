"""The positions of the entries of a sparse matrix."""

from __future__ import annotations

from functools import cached_property
from hashlib import blake2b
from typing import Any

import numpy as np

from tenferro_runtime import asarray
from tenferro_runtime.extension import ArgumentError, ShapeError
from tenferro_tensor import ComputeDevice

Indices = np.ndarray[Any, np.dtype[Any]]


def device_of(x: Any) -> ComputeDevice | None:
    """The device for numbers beside a value; ``None`` in main memory, where they follow the scope."""
    place = x.spec.place
    return None if place.on_host else place.device


def beside(x: Any, *indices: Any) -> Any:
    """Indices in the memory of a value: as they are in main memory, else tensors."""
    device = device_of(x)
    found = indices if device is None else tuple([asarray(i, device=device) for i in indices])
    return found[0] if len(found) == 1 else found


class RowStructure:
    """Positions of entries in compressed rows: columns ascend in each row, without duplicates.

    Structures with the same positions compare equal and have equal hashes, so they key programs and ops.

    Attributes:
        shape: extents of the matrix.
        starts: for each row the index of its first entry, followed by the number of entries.
        columns: column index of each entry.
    """

    def __init__(self, shape: tuple[int, int], starts: Indices, columns: Indices) -> None:
        self.shape: tuple[int, int] = shape
        self.starts: Indices = starts
        self.columns: Indices = columns
        for array in (starts, columns):
            array.flags.writeable = False
        digest = blake2b(repr((shape, starts.dtype.char)).encode(), digest_size=16)
        digest.update(starts.tobytes())
        digest.update(columns.tobytes())
        self._key = digest.digest()

    @property
    def count(self) -> int:
        """Number of entries."""
        return self.columns.size

    @cached_property
    def rows(self) -> Indices:
        """Row index of each entry."""
        numbers = np.arange(self.shape[0], dtype=self.columns.dtype)
        return np.repeat(numbers, np.diff(self.starts))

    @cached_property
    def transposed(self) -> tuple[RowStructure, Indices]:
        """The structure of the transpose, and for each of its entries the index of the same entry here."""
        order = np.argsort(self.columns, kind="stable")
        starts = np.zeros(self.shape[1] + 1, self.starts.dtype)
        np.cumsum(np.bincount(self.columns, minlength=self.shape[1]), out=starts[1:])
        return RowStructure((self.shape[1], self.shape[0]), starts, self.rows[order]), order

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, RowStructure) and self._key == other._key)

    def __hash__(self) -> int:
        return hash(self._key)

    def __repr__(self) -> str:
        return f"{self.shape[0]}x{self.shape[1]}, {self.count} entries"


def structure_of(rows: Any, columns: Any, shape: tuple[int, int]) -> tuple[RowStructure, Indices, Indices | None]:
    """The structure of given positions, the sorting permutation, and for each sorted entry its index in the structure.

    The last is ``None`` if no position occurs twice.

    Raises:
        ArgumentError: the indices are not integer vectors of the same length.
        ShapeError: a position is outside the matrix.
    """
    rows, columns = np.asarray(rows), np.asarray(columns)
    if rows.shape != columns.shape or rows.ndim != 1 or any(x.dtype.kind not in "iu" for x in (rows, columns)):
        raise ArgumentError(
            "rows and columns of a sparse matrix are integer vectors of equal length, got "
            f"{rows.dtype}{list(rows.shape)} and {columns.dtype}{list(columns.shape)}"
        )
    for places, extent, what in ((rows, shape[0], "row"), (columns, shape[1], "column")):
        if places.size and not (0 <= places.min() and places.max() < extent):
            raise ShapeError(
                f"a sparse matrix of shape {shape} has no {what} {places[(places < 0) | (places >= extent)][0]}",
                shape=shape,
            )
    order = np.lexsort((columns, rows))
    r, c = rows[order], columns[order]
    new = np.ones(r.size, bool)
    new[1:] = (r[1:] != r[:-1]) | (c[1:] != c[:-1])
    index = np.int32 if max(*shape, r.size) < 2**31 else np.int64
    starts = np.zeros(shape[0] + 1, index)
    np.cumsum(np.bincount(r[new], minlength=shape[0]), out=starts[1:])
    structure = RowStructure(shape, starts, c[new].astype(index))
    return structure, order, None if new.all() else np.cumsum(new) - 1
