"""`Checkpoint`: inspects a checkpoint without restoring it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from tenferro_runtime.extension import ArgumentError, Spec, Tensor
from tenferro_xla.checkpoints._index import Index, Region, StoredArray
from tenferro_xla.checkpoints._parts import open_part, read_region, require_checksum


class Checkpoint:
    """A checkpoint on disk, of which only the index has been read.

    Args:
        path: its folder.

    Attributes:
        path: its folder.
        index: its index.

    Raises:
        CheckpointError: the folder has no checkpoint, or its index cannot be read.
    """

    path: Path
    index: Index

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.index = Index.read(self.path)
        self._known: set[str] = set()

    def _region(self, entry: StoredArray, region: Region) -> np.ndarray[Any, Any]:
        """A region of an array, with the checksums of its parts compared."""
        return read_region(self.path, entry, region, self._known)

    @property
    def arrays(self) -> dict[str, Spec]:
        """Shape and dtype of each array, by its path in the tree."""
        named = zip(self.index.tree.paths(), self.index.leaves, strict=True)
        return {path: Spec(x.shape, x.dtype) for path, x in named if isinstance(x, StoredArray)}

    def read(self, name: str, index: tuple[slice, ...] = ()) -> Tensor:
        """Read a part of an array; only the files that hold elements of it are opened.

        A file is read as a whole when it is first used, to compare its checksum.

        Args:
            name: path of the array in the tree, one of `arrays`.
            index: a slice with step 1 for each axis; by default whole axes.

        Returns:
            The part as a tensor in main memory, of the array's dtype and the shape of the slices.

        Raises:
            ArgumentError: the checkpoint has no such array, or the index does not fit it.
            CheckpointError: a file is missing or damaged.
        """
        entry = dict(zip(self.index.tree.paths(), self.index.leaves, strict=True)).get(name)
        if not isinstance(entry, StoredArray):
            raise ArgumentError(f"the checkpoint has no array {name!r}; it has {', '.join(self.arrays)}")
        if len(index) > len(entry.shape) or any(s.step not in (None, 1) for s in index):
            raise ArgumentError(
                f"{index} does not select a part of an array with shape {entry.shape}; pass a slice with step 1 for "
                "each axis"
            )
        full = (*index, *[slice(None)] * (len(entry.shape) - len(index)))
        ends = [s.indices(n)[:2] for s, n in zip(full, entry.shape, strict=True)]
        region = tuple([(a, max(a, b)) for a, b in ends])
        return wrapped(self._region(entry, region))

    def verify(self) -> None:
        """Read all elements and compare their checksums with the index.

        Raises:
            CheckpointError: a file is missing or damaged.
        """
        for entry in self.index.leaves:
            if not isinstance(entry, StoredArray):
                continue
            for part in entry.parts:
                require_checksum(self.path, part, open_part(self.path, part, entry))

    def __repr__(self) -> str:
        return f"Checkpoint({str(self.path)!r}, {len(self.arrays)} arrays in {self.index.tree.show()})"


def wrapped(array: Any) -> Tensor:
    """Return an array without other owners as a tensor, without a copy."""
    return Tensor.wrap(array if array.shape else array[()], Spec(array.shape, array.dtype))
