"""Parts of arrays as ``.npy`` files."""

from __future__ import annotations

import os
import zlib
from collections.abc import Sequence
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from tenferro_tensor_core import kind_of
from tenferro_xla.checkpoints._index import CheckpointError, Region, StoredArray, StoredPart


def stored_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the little-endian dtype of an array in a file; narrow floats that NumPy lacks are stored as bits."""
    known = dtype.kind != "V" or kind_of(dtype) != "f"
    return (dtype if known else np.dtype(f"u{dtype.itemsize}")).newbyteorder("<")


def write_part(path: Path, array: np.ndarray[Any, Any]) -> int:
    """Write a part and flush it to disk; return the checksum of its elements."""
    plain = array if stored_dtype(array.dtype).kind == array.dtype.kind else array.view(stored_dtype(array.dtype))
    plain = np.asarray(plain, stored_dtype(array.dtype), order="C")
    with path.open("xb") as file:
        np.lib.format.write_array(file, plain, version=(1, 0), allow_pickle=False)
        file.flush()
        os.fsync(file.fileno())
    return zlib.crc32(plain.reshape(-1).view(np.uint8).data)


def open_part(folder: Path, part: StoredPart, entry: StoredArray) -> np.ndarray[Any, Any]:
    """Memory-map the elements of a part.

    Raises:
        CheckpointError: the file is missing, or its length, shape or dtype differs from the index.
    """
    path = folder / part.file
    shape = tuple([b - a for a, b in part.region])
    try:
        with path.open("rb") as file:
            version = np.lib.format.read_magic(file)
            found, fortran, kind = np.lib.format.read_array_header_1_0(file) if version == (1, 0) else ((), True, None)
            begin, length = file.tell(), os.fstat(file.fileno()).st_size
    except FileNotFoundError as cause:
        raise CheckpointError(
            f"the checkpoint in {folder} lacks the file {part.file}; it is damaged or an incomplete copy", path=path
        ) from cause
    except ValueError as cause:
        raise CheckpointError(f"{path} is not a part of a checkpoint: {cause}", path=path) from cause
    wanted = stored_dtype(entry.dtype)
    if (found, fortran, kind) != (shape, False, wanted):
        raise CheckpointError(
            f"{path} has {kind} elements of shape {found}, but the index of the checkpoint lists {wanted} of {shape}",
            path=path,
        )
    if length != begin + prod(shape) * wanted.itemsize:
        raise CheckpointError(f"{path} is truncated: it has {length} bytes", path=path)
    if not prod(shape):
        return np.empty(shape, entry.dtype)
    mapped = np.memmap(path, wanted, "r", begin, shape)
    return mapped if wanted.kind == entry.dtype.kind else mapped.view(entry.dtype)


def read_region(folder: Path, entry: StoredArray, region: Region) -> np.ndarray[Any, Any]:
    """Read a region of an array from the parts that it intersects; no other file is opened.

    Raises:
        CheckpointError: a part is missing or damaged, or the parts do not cover the region.
    """
    out = np.empty([b - a for a, b in region], entry.dtype)
    filled = 0
    for part in entry.parts:
        both = [(max(a, c), min(b, d)) for (a, b), (c, d) in zip(region, part.region, strict=True)]
        if any(a >= b for a, b in both):
            continue
        out[_within(both, region)] = open_part(folder, part, entry)[_within(both, part.region)]
        filled += prod([b - a for a, b in both])
    if filled != out.size:
        raise CheckpointError(
            f"the parts in the index of {folder} cover {filled} of {out.size} elements of {region}; it is damaged"
        )
    return out


def checksum(array: np.ndarray[Any, Any]) -> int:
    """Return the checksum of the elements of a memory-mapped part."""
    return zlib.crc32(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)


def _within(both: Sequence[tuple[int, int]], region: Region) -> tuple[slice, ...]:
    return tuple([slice(a - c, b - c) for (a, b), (c, _) in zip(both, region, strict=True)])
