"""The index of a checkpoint: which arrays there are, and which file has which part of them.

A checkpoint is a folder. Its file ``index.json`` names one *generation*, a folder inside with a ``.npy`` file for each
part. Writers put the index in place in one step, after all parts: a reader sees the old checkpoint or the new one.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from tenferro_runtime.extension import TenferroError
from tenferro_runtime.files import decode_tree, encode_tree
from tenferro_runtime.trees import TreeDef
from tenferro_tensor_core import dtype

NAME: Final = "index.json"
FORMAT: Final = "tenferro-checkpoint"
VERSION: Final = (1, 0)

Region = tuple[tuple[int, int], ...]
"""Begin and end on each axis."""


class CheckpointError(TenferroError, ValueError):
    """A checkpoint cannot be written, or a folder holds no whole checkpoint, or another one than was expected."""


@dataclass(frozen=True)
class StoredPart:
    """A file with a part of an array.

    Attributes:
        file: its name, from the checkpoint's folder.
        region: the part.
        crc32: checksum of the elements, row-major and little-endian.
    """

    file: str
    region: Region
    crc32: int


@dataclass(frozen=True)
class StoredArray:
    """An array of a checkpoint.

    Attributes:
        shape: of the whole array.
        dtype: of its elements.
        parts: files that cover it, each element once.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    parts: tuple[StoredPart, ...]


@dataclass(frozen=True)
class Index:
    """What is in a checkpoint.

    Attributes:
        generation: number of the folder with the parts.
        tree: the containers around the leaves.
        leaves: arrays, and Python numbers.
    """

    generation: int
    tree: TreeDef
    leaves: tuple[StoredArray | complex, ...]

    def write(self, folder: Path) -> None:
        """Put the index into the folder of a checkpoint, in one step."""
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
        """The index in a folder.

        Raises:
            CheckpointError: there is none, or it cannot be understood.
        """
        try:
            text = (folder / NAME).read_text()
        except FileNotFoundError as cause:
            raise CheckpointError(
                f"there is no checkpoint in {folder}: it has no {NAME}; a checkpoint whose writing was broken off "
                "leaves none"
            ) from cause
        try:
            data = json.loads(text)
            if data["format"] != FORMAT or data["version"][0] != VERSION[0]:
                raise ValueError(f"it is {data['format']!r} of version {data['version']}")
            tree = decode_tree(_key, data["tree"])
            leaves = tuple([_decoded(leaf) for leaf in data["leaves"]])
            if len(leaves) != tree.size:
                raise ValueError(f"it has {len(leaves)} leaves for {tree.show()}")
            return Index(int(data["generation"]), tree, leaves)
        except (KeyError, TypeError, ValueError) as cause:
            raise CheckpointError(
                f"{folder / NAME} is no index of a checkpoint that this version reads: {cause}"
            ) from cause


def synced(folder: Path) -> None:
    """Make names in a folder durable."""
    if os.name == "nt":  # folders cannot be opened there
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
    parts = [
        StoredPart(str(file), tuple([(int(a), int(b)) for a, b in region]), int(crc))
        for file, region, crc in data["parts"]
    ]
    return StoredArray(tuple(map(int, data["shape"])), dtype(str(data["dtype"])), tuple(parts))
