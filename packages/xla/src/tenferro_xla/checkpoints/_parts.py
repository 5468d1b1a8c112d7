"""Parts of arrays as ``.npy`` files."""

from __future__ import annotations

import os
import stat
import zlib
from collections.abc import Sequence
from math import prod
from pathlib import Path
from typing import Any, Final

import numpy as np

from tenferro_tensor_core import kind_of
from tenferro_xla.checkpoints._index import CheckpointError, Region, StoredArray, StoredPart

CHUNK_BYTES: Final = 1 << 22
"""Bytes of an array whose elements are not adjacent that a checksum copies at a time."""


def stored_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the little-endian dtype of an array in a file; narrow floats that NumPy lacks are stored as bits."""
    known = dtype.kind != "V" or kind_of(dtype) != "f"
    return (dtype if known else np.dtype(f"u{dtype.itemsize}")).newbyteorder("<")


def write_part(path: Path, array: np.ndarray[Any, Any]) -> int:
    """Write a part and flush it to disk; return the checksum of its elements."""
    plain = _plain(array)
    with path.open("xb") as file:
        np.lib.format.write_array(file, plain, version=(1, 0), allow_pickle=False)
        file.flush()
        os.fsync(file.fileno())
    return checksum(plain)


def _plain(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """An array as files store it: row-major and little-endian."""
    stored = stored_dtype(array.dtype)
    return np.asarray(array if stored.kind == array.dtype.kind else array.view(stored), stored, order="C")


def open_part(folder: Path, part: StoredPart, entry: StoredArray) -> np.ndarray[Any, Any]:
    """Memory-map the elements of a part.

    Raises:
        CheckpointError: the file is missing or outside the folder, or its length, shape or dtype differs from the
            index.
    """
    path = folder / part.file
    shape, wanted = tuple([b - a for a, b in part.region]), stored_dtype(entry.dtype)
    count = prod(shape)
    try:
        _require_inside(folder, path)
        with path.open("rb") as file:
            version = np.lib.format.read_magic(file)
            found, fortran, kind = np.lib.format.read_array_header_1_0(file) if version == (1, 0) else ((), True, None)
            begin, length = file.tell(), os.fstat(file.fileno()).st_size
            right = (found, fortran, kind, length) == (shape, False, wanted, begin + count * wanted.itemsize)
            mapped = np.memmap(file, wanted, "r", begin, shape) if right and count else None
    except FileNotFoundError as cause:
        raise CheckpointError(
            f"the checkpoint in {folder} lacks the file {part.file}; it is damaged or an incomplete copy", path=path
        ) from cause
    except CheckpointError:
        raise
    except ValueError as cause:
        raise CheckpointError(f"{path} is not a part of a checkpoint: {cause}", path=path) from cause
    if (found, fortran, kind) != (shape, False, wanted):
        raise CheckpointError(
            f"{path} has {kind} elements of shape {found}, but the index of the checkpoint lists {wanted} of {shape}",
            path=path,
        )
    if not right:
        raise CheckpointError(f"{path} is truncated: it has {length} bytes", path=path)
    if mapped is None:
        return np.empty(shape, entry.dtype)
    return mapped if wanted.kind == entry.dtype.kind else mapped.view(entry.dtype)


def _require_inside(folder: Path, path: Path) -> None:
    """Raise unless a path is a file of the folder; a link to another one is none."""
    found = path.resolve(strict=True)
    if not found.is_relative_to(folder.resolve()) or not stat.S_ISREG(found.stat().st_mode):
        raise CheckpointError(
            f"{path} is a link out of the folder of the checkpoint, or no file; copy the checkpoint with its files, "
            "and load the copy",
            path=path,
        )


def read_region(folder: Path, entry: StoredArray, region: Region, known: set[str]) -> np.ndarray[Any, Any]:
    """Read a region of an array from the parts that it intersects; no other file is opened.

    Checksums are compared: those of whole parts with the elements in memory, those of others once with the file.

    Args:
        folder: folder of the checkpoint.
        entry: the array.
        region: start and stop on each axis.
        known: names of files whose checksums were right, to which more are added.

    Raises:
        CheckpointError: a part is missing or damaged, or the parts do not cover the region.
    """
    out = np.empty([b - a for a, b in region], entry.dtype)
    filled = 0
    for part in entry.parts:
        both = [(max(a, c), min(b, d)) for (a, b), (c, d) in zip(region, part.region, strict=True)]
        if any(a >= b for a, b in both):
            continue
        stored, piece = open_part(folder, part, entry), out[(*_within(both, region), ...)]
        piece[...] = stored[_within(both, part.region)]
        if tuple(both) == part.region:
            require_checksum(folder, part, piece)
        elif part.file not in known:
            require_checksum(folder, part, stored)
            known.add(part.file)
        filled += prod([b - a for a, b in both])
    if filled != out.size:
        raise CheckpointError(
            f"the parts in the index of {folder} cover {filled} of {out.size} elements of {region}; it is damaged"
        )
    return out


def checksum(array: np.ndarray[Any, Any]) -> int:
    """Return the checksum of the elements of a part."""
    if array.flags.c_contiguous or array.nbytes <= CHUNK_BYTES:
        return zlib.crc32(_plain(array).reshape(-1).view(np.uint8).data)
    found, rows = 0, max(1, CHUNK_BYTES * len(array) // array.nbytes)
    for k in range(0, len(array), rows):
        found = zlib.crc32(_plain(array[k : k + rows]).reshape(-1).view(np.uint8).data, found)
    return found


def require_checksum(folder: Path, part: StoredPart, array: np.ndarray[Any, Any]) -> None:
    """Compare the checksum of the elements of a part with the index.

    Raises:
        CheckpointError: they differ.
    """
    found, path = checksum(array), folder / part.file
    if found != part.crc32:
        raise CheckpointError(
            f"{path} is damaged: its checksum is {found:08x} instead of {part.crc32:08x}; use an older checkpoint",
            path=path,
        )


def _within(both: Sequence[tuple[int, int]], region: Region) -> tuple[Any, ...]:
    return tuple([slice(a - c, b - c) for (a, b), (c, _) in zip(both, region, strict=True)])
