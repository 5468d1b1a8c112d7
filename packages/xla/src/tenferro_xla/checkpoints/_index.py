"""The index of a checkpoint: its arrays, and the files of their parts.

A checkpoint is a folder. Its file ``index.json`` names one *generation*, a subfolder with a ``.npy`` file per part.
Writers replace the index atomically, after all parts: a reader sees the old checkpoint or the new one.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path, PureWindowsPath
from typing import Any, Final

import numpy as np

from tenferro_runtime.exporting.files import decode_tree, encode_tree
from tenferro_runtime.extension import TenferroError
from tenferro_runtime.trees import TreeDef
from tenferro_tensor_core import dtype

NAME: Final = "index.json"
FORMAT: Final = "tenferro-checkpoint"
VERSION: Final = (1, 0)

Region = tuple[tuple[int, int], ...]
"""Start and stop on each axis."""


class CheckpointError(TenferroError, ValueError):
    """A checkpoint cannot be written, is missing or damaged, or is not the expected one."""


@dataclass(frozen=True)
class StoredPart:
    """A file with a part of an array.

    Attributes:
        file: its path relative to the checkpoint's folder.
        region: start and stop of the part on each axis.
        crc32: checksum of the elements in row-major order and little-endian.
    """

    file: str
    region: Region
    crc32: int


@dataclass(frozen=True)
class StoredArray:
    """An array of a checkpoint.

    Attributes:
        shape: shape of the whole array.
        dtype: dtype of its elements.
        parts: files that cover the array without overlap.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    parts: tuple[StoredPart, ...]


@dataclass(frozen=True)
class Index:
    """The contents of a checkpoint.

    Attributes:
        generation: number of the subfolder with the parts.
        tree: structure of the containers.
        leaves: arrays and Python numbers.
    """

    generation: int
    tree: TreeDef
    leaves: tuple[StoredArray | complex, ...]

    def write(self, folder: Path) -> None:
        """Replace the index of a checkpoint's folder, atomically."""
        data = {
            "format": FORMAT,
            "version": VERSION,
            "generation": self.generation,
            "tree": encode_tree(_key, self.tree),
            "leaves": [_encoded(leaf) for leaf in self.leaves],
        }
        temporary = folder / f"{NAME}.part"
        with temporary.open("w") as file:
            json.dump(data, file, sort_keys=True, separators=(",", ":"), allow_nan=False)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, folder / NAME)
        synced(folder)

    @staticmethod
    def read(folder: Path) -> Index:
        """Read the index of a folder.

        Raises:
            CheckpointError: the folder has no index, or it has another format.
        """
        try:
            stored = (folder / NAME).read_bytes()
        except FileNotFoundError as cause:
            raise CheckpointError(
                f"{folder} holds no checkpoint: it has no {NAME}; an interrupted first write leaves none"
            ) from cause
        try:
            data = json.loads(stored)
            if data["format"] != FORMAT or data["version"][0] != VERSION[0]:
                raise ValueError(f"it is {data['format']!r} of version {data['version']}")
            tree = decode_tree(_key, data["tree"])
            leaves = tuple([_decoded(leaf) for leaf in data["leaves"]])
            if len(leaves) != tree.size:
                raise ValueError(f"it has {len(leaves)} leaves for {tree.show()}")
            return Index(int(data["generation"]), tree, leaves)
        except (KeyError, TypeError, ValueError, OverflowError, RecursionError) as cause:
            raise CheckpointError(
                f"{folder / NAME} is not a checkpoint index that this version can read: {cause}"
            ) from cause


def synced(folder: Path) -> None:
    """Flush the entries of a folder to disk."""
    if os.name == "nt":  # where folders cannot be opened
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _key(key: Any) -> Any:
    if not isinstance(key, (str, int)):
        raise TypeError(f"{key!r:.60} is neither a string nor an integer")
    return key


def _encoded(leaf: StoredArray | complex) -> Any:
    if isinstance(leaf, StoredArray):
        parts = [[part.file, part.region, part.crc32] for part in leaf.parts]
        return {"shape": leaf.shape, "dtype": leaf.dtype.name, "parts": parts}
    if isinstance(leaf, (bool, int)):
        return leaf
    if isinstance(leaf, float):
        return {"float": leaf.hex()}
    return {"complex": [leaf.real.hex(), leaf.imag.hex()]}


def _decoded(data: Any) -> StoredArray | complex:
    if isinstance(data, (bool, int)):
        return data
    if "float" in data:
        return float.fromhex(data["float"])
    if "complex" in data:
        return complex(*map(float.fromhex, data["complex"]))
    shape = tuple(map(int, data["shape"]))
    parts = []
    for file, region, crc in data["parts"]:
        found = tuple([(int(a), int(b)) for a, b in region])
        if len(found) != len(shape) or not all(0 <= a <= b <= n for (a, b), n in zip(found, shape, strict=True)):
            raise ValueError(f"{found} is not a part of an array of shape {shape}")
        parts.append(StoredPart(_inside(str(file)), found, int(crc)))
    _require_disjoint(np.array([part.region for part in parts], np.int64).reshape(len(parts), len(shape), 2))
    return StoredArray(shape, dtype(str(data["dtype"])), tuple(parts))


def _inside(file: str) -> str:
    """The name of a file if it is inside the folder on every system."""
    path = PureWindowsPath(file)  # it accepts both separators
    if path.drive or path.root or ".." in path.parts or not path.name or "\0" in file:
        raise ValueError(f"it names the file {file!r:.80}, which is outside the folder")
    return file


def _require_disjoint(regions: np.ndarray[Any, Any]) -> None:
    """Raise if two parts have elements in common: others would be missing where the total is right."""
    starts, stops = regions[..., 0], regions[..., 1]
    for k in range(1, len(regions)):
        if (np.maximum(starts[:k], starts[k]) < np.minimum(stops[:k], stops[k])).all(axis=1).any():
            raise ValueError(f"part {k} overlaps an earlier part of its array")
