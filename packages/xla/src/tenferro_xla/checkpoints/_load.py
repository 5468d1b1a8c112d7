"""`load_sharded`: restores a checkpoint on any mesh; each process reads only the parts of its devices."""

from __future__ import annotations

import os
from typing import Any

from tenferro_runtime.extension import Tensor, flatten, unflatten
from tenferro_xla.checkpoints._checkpoint import Checkpoint, wrapped
from tenferro_xla.checkpoints._index import CheckpointError, StoredArray
from tenferro_xla.mesh import Mesh, PartitionSpec, ShardedArray
from tenferro_xla.mesh._compile import spread_specs


def load_sharded(path: str | os.PathLike[str], mesh: Mesh | None = None, specs: Any = None, *, like: Any = None) -> Any:
    """Restore a checkpoint, on any mesh and in any layout.

    The files are memory-mapped, and a process opens only those that its devices need. Checksums of all of them are
    compared, each file once.

    Args:
        path: folder of the checkpoint.
        mesh: the mesh to place the arrays on; by default they are tensors in main memory.
        specs: how to split the arrays: one `PartitionSpec` for all, or a tree prefix of these; ``None`` replicates.
        like: a tree of the expected structure, of arrays or specs with the expected shapes and dtypes.

    Returns:
        The tree that was saved, with the same shapes and dtypes: arrays as `ShardedArray`s of the mesh or as tensors,
        numbers unchanged.

    Raises:
        CheckpointError: the checkpoint or a file is missing or damaged, or the tree differs from `like`.
        ArgumentError: `specs` does not fit the tree.
        AxisError: a spec names an axis that the mesh or the array does not have.
        ShapeError: an extent is not divisible by the number of parts.

    See also:
        `save_sharded`, the inverse, and `Checkpoint`, which reads single arrays.

    >>> import tempfile
    >>> import numpy as np
    >>> from tenferro_xla.checkpoints import save_sharded
    >>> from tenferro_xla.mesh import P
    >>> folder = tempfile.mkdtemp()
    >>> save_sharded(folder, {"x": np.arange(4.0), "step": 3})
    >>> load_sharded(folder, Mesh({"data": 1}), P("data"))
    {'x': ShardedArray(float64[4], P('data') of data=1), 'step': 3}
    """
    checkpoint = Checkpoint(path)
    tree, leaves = checkpoint.index.tree, checkpoint.index.leaves
    if like is not None:
        _require_like(checkpoint, like)
    splits = spread_specs(specs, tree, "specs", "the checkpoint")
    return unflatten(tree, [_restored(checkpoint, x, mesh, p) for x, p in zip(leaves, splits, strict=True)])


def _restored(
    checkpoint: Checkpoint, leaf: StoredArray | complex, mesh: Mesh | None, spec: PartitionSpec | None
) -> Any:
    if not isinstance(leaf, StoredArray):
        return leaf
    if mesh is None:
        return _whole(checkpoint, leaf)
    if not leaf.shape:
        spec = None  # a spec for all leaves does not apply to scalars
    read = lambda index: checkpoint._region(leaf, tuple([(s.start, s.stop) for s in index]))
    return ShardedArray.from_callback(mesh, leaf.shape, spec or PartitionSpec(), read)


def _whole(checkpoint: Checkpoint, leaf: StoredArray) -> Tensor:
    return wrapped(checkpoint._region(leaf, tuple([(0, n) for n in leaf.shape])))


def _require_like(checkpoint: Checkpoint, like: Any) -> None:
    tree, found = checkpoint.index.tree, checkpoint.index.leaves
    values, wanted = flatten(like)
    if wanted is not tree:
        raise CheckpointError(f"the checkpoint {checkpoint.path} holds {tree.show()}, expected {wanted.show()}")
    for path, x, leaf in zip(tree.paths(), values, found, strict=True):
        if hasattr(x, "shape") != isinstance(leaf, StoredArray):
            raise CheckpointError(
                f"{path} of the checkpoint {checkpoint.path} is {_shown(leaf)}, expected {type(x).__name__}"
            )
        if isinstance(leaf, StoredArray) and (tuple(x.shape), x.dtype) != (leaf.shape, leaf.dtype):
            raise CheckpointError(
                f"{path} of the checkpoint {checkpoint.path} is {_shown(leaf)}, expected {x.dtype}{tuple(x.shape)}"
            )


def _shown(leaf: StoredArray | complex) -> str:
    return f"{leaf.dtype.name}{leaf.shape}" if isinstance(leaf, StoredArray) else repr(leaf)
