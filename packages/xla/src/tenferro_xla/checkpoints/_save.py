"""`save_sharded`: each process writes its own parts; process 0 writes the index last."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tenferro_runtime.extension import ArgumentError, Tensor, flatten
from tenferro_tensor import SCALARS
from tenferro_xla.checkpoints._agreement import agreed_number, all_succeed, process
from tenferro_xla.checkpoints._index import CheckpointError, Index, Region, StoredArray, StoredPart, synced
from tenferro_xla.checkpoints._parts import write_part
from tenferro_xla.mesh import ShardedArray


class _Leaf(NamedTuple):
    """An array as parts: all regions in order, and the parts that this process writes, by the index of the region."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    regions: list[Region]
    own: Any


def save_sharded(path: str | os.PathLike[str], tree: Any) -> None:
    """Write a tree of sharded and other arrays as a checkpoint.

    Each part is written once, by a process that has it; no process gathers an array. In a run of several processes, all
    of them call this function with the same path on a shared file system. Writing is atomic: the previous checkpoint of
    `path` is replaced when all parts are on disk, and is kept if anything fails or a process is lost.

    Args:
        path: folder of the checkpoint; it is created.
        tree: `ShardedArray`s, tensors, NumPy arrays and Python numbers in containers, with arrays of any shape and
            dtype. Leaves that are not sharded must be equal in all processes; process 0 writes them.

    Raises:
        ArgumentError: a leaf has another type.
        CheckpointError: a process could not write its parts.
        ProcessLostError: another process of the run is lost.

    See also:
        `load_sharded`, the inverse.

    >>> import tempfile
    >>> from tenferro_xla.mesh import Mesh, P
    >>> folder = tempfile.mkdtemp()
    >>> x = Mesh({"data": 1}).shard(np.arange(4.0), P("data"))
    >>> save_sharded(f"{folder}/last", {"x": x, "step": 3})
    >>> from tenferro_xla.checkpoints import Checkpoint
    >>> Checkpoint(f"{folder}/last").arrays
    {"['x']": float64[4]}
    """
    values, shape = flatten(tree)
    leaves = [x if x.__class__ in SCALARS else _leaf(x, name) for x, name in zip(values, shape.paths(), strict=True)]
    folder = Path(path)
    number = agreed_number(lambda: _started(folder))
    parts = folder / str(number)
    with all_succeed(f"writing the parts of the checkpoint {folder}"):
        for k, leaf in enumerate(leaves):
            if isinstance(leaf, _Leaf):
                for n, array in leaf.own():
                    _write(parts, k, n, array)
        if parts.is_dir():
            synced(parts)
    with all_succeed(f"completing the checkpoint {folder}"):
        if process() == 0:
            entries: list[Any] = [
                _entry(folder, number, k, x) if isinstance(x, _Leaf) else x for k, x in enumerate(leaves)
            ]
            Index(number, shape, tuple(entries)).write(folder)
    if process() == 0:
        _remove_other_generations(folder, number)


def _leaf(x: Any, name: str) -> _Leaf:
    if isinstance(x, ShardedArray):
        array = x.array
        regions = sorted({_region(i, x.shape) for i in array.sharding.devices_indices_map(x.shape).values()})

        def own() -> Iterator[tuple[int, np.ndarray[Any, Any]]]:
            for shard in array.addressable_shards:
                if shard.replica_id == 0:
                    yield regions.index(_region(shard.index, x.shape)), np.asarray(shard.data)

        return _Leaf(x.shape, x.dtype, regions, own)
    if isinstance(x, (Tensor, np.ndarray, np.generic)):
        whole = x._concrete() if isinstance(x, Tensor) else np.asarray(x)
        found = [(0, np.asarray(whole))] if process() == 0 else []
        return _Leaf(whole.shape, whole.dtype, [tuple([(0, n) for n in whole.shape])], lambda: iter(found))
    raise ArgumentError(
        f"save_sharded takes sharded arrays, tensors, NumPy arrays and numbers, got a {type(x).__name__} at {name}"
    )


def _region(index: tuple[slice, ...], shape: tuple[int, ...]) -> Region:
    return tuple([s.indices(n)[:2] for s, n in zip(index, shape, strict=True)])


def _started(folder: Path) -> int:
    """Make an empty folder for a new generation; return its number."""
    folder.mkdir(parents=True, exist_ok=True)
    try:
        number = Index.read(folder).generation + 1
    except CheckpointError:
        number = 1
    shutil.rmtree(folder / str(number), ignore_errors=True)  # left by an interrupted write
    (folder / str(number)).mkdir()
    return number


def _write(parts: Path, leaf: int, region: int, array: np.ndarray[Any, Any]) -> None:
    """Write a part to a file whose name includes the checksum."""
    temporary = parts / f"{leaf}.{region}.part"
    temporary.rename(parts / f"{leaf}.{region}.{write_part(temporary, array):08x}.npy")


def _entry(folder: Path, number: int, leaf: int, x: _Leaf) -> StoredArray:
    parts = []
    for n, region in enumerate(x.regions):
        found = list((folder / str(number)).glob(f"{leaf}.{n}.*.npy"))
        if len(found) != 1:
            raise CheckpointError(
                f"part {n} of array {leaf} is not in {folder}; all processes must write to a shared file system"
            )
        parts.append(StoredPart(f"{number}/{found[0].name}", region, int(found[0].name.split(".")[2], 16)))
    return StoredArray(x.shape, x.dtype, tuple(parts))


def _remove_other_generations(folder: Path, number: int) -> None:
    """Remove the generations that the index no longer names."""
    for other in folder.iterdir():
        if other.is_dir() and other.name.isdigit() and other.name != str(number):
            shutil.rmtree(other, ignore_errors=True)
