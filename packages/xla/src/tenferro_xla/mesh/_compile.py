"""`compile_on`: a function compiled for a mesh, once per structure, specs and shardings of its arguments."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import update_wrapper
from typing import Any

import numpy as np

from tenferro_runtime import trace
from tenferro_runtime.extension import (
    ArgumentError,
    BoundedCache,
    PlacementError,
    Program,
    Spec,
    Tensor,
    flatten,
    is_traced,
    tensor,
    unflatten,
)
from tenferro_runtime.trees import TreeDef, parts_like
from tenferro_tensor import SCALARS, Array
from tenferro_xla.mesh._array import ShardedArray
from tenferro_xla.mesh._executable import MeshExecutable
from tenferro_xla.mesh._mesh import Mesh
from tenferro_xla.mesh._spec import PartitionSpec

Choice = PartitionSpec | None


def compile_on(
    mesh: Mesh,
    f: Callable[..., Any],
    in_specs: Any = None,
    out_specs: Any = None,
    *,
    donate: int | Iterable[int] = (),
) -> MeshFunction:
    """Compile a function for all devices of a mesh.

    The function is written for whole arrays. XLA's partitioner splits its steps, guided by the specs of the arguments,
    of the results and of `with_sharding` inside, and inserts the communication between devices; up to rounding, the
    results do not depend on the specs.

    Args:
        mesh: the mesh.
        f: a function of arrays to arrays, both in any containers; for example a transform of a function.
        in_specs: how to split the arguments: one `PartitionSpec` for all, or a tuple with an entry for each argument,
            which is a spec, ``None``, or a tree prefix of these. Arrays on the mesh are resharded to the spec; ``None``
            keeps their sharding and replicates arrays in main memory.
        out_specs: how to split the results, in the same form; ``None`` lets XLA choose.
        donate: positions of donated arguments, whose `ShardedArray`s are invalid afterwards.

    Returns:
        A function of `ShardedArray`s, tensors, NumPy arrays and numbers, in the containers of `f`, that returns
        `ShardedArray`s.

    Raises:
        ArgumentError: `mesh` is not a `Mesh`, or `f` is not a function.

    See also:
        `shard_map`, for functions written for the part of one device.

    >>> from tenferro_xla.mesh import Mesh, P
    >>> mesh = Mesh({"data": 1})
    >>> product = compile_on(mesh, lambda x, w: x @ w, (P("data"), P()), P("data"))
    >>> product(np.ones((4, 3)), np.ones((3, 2)))
    ShardedArray(float64[4,2], P('data') of data=1)
    """
    if not isinstance(mesh, Mesh):
        raise ArgumentError(f"compile_on takes a Mesh first, got {mesh!r:.80}")
    if not callable(f):
        raise ArgumentError(f"compile_on takes a function, got {f!r:.80}")
    given = (donate,) if isinstance(donate, int) else tuple(donate)
    return MeshFunction(mesh, f, in_specs, out_specs, given)


class MeshFunction:
    """A function compiled for a mesh; see `compile_on`.

    Attributes:
        mesh: the mesh.
        executables: cache of the executables, by structure, specs and shardings of the arguments.
    """

    mesh: Mesh
    executables: BoundedCache[Any, tuple[MeshExecutable, TreeDef]]

    def __init__(self, mesh: Mesh, f: Callable[..., Any], in_specs: Any, out_specs: Any, donate: tuple[int, ...]):
        self.mesh, self._f, self._in, self._out, self._donate = mesh, f, in_specs, out_specs, donate
        name = getattr(f, "__qualname__", type(f).__name__)
        self.executables = BoundedCache(f"tenferro_xla: {name} on {mesh!r}", 64)
        update_wrapper(self, f, updated=())

    def __call__(self, *args: Any) -> Any:
        """Run on the mesh, after compiling for such arguments on the first call."""
        executable, tree, leaves = self._found(args)
        values = [_brought(self.mesh, x, p) for x, p in zip(leaves, executable.in_specs, strict=True)]
        return unflatten(tree, executable(*values))

    def executable(self, *args: Any) -> MeshExecutable:
        """Return the executable for these arguments, without running it.

        Args:
            args: arguments of the function.

        Returns:
            The executable, compiled if necessary.
        """
        return self._found(args)[0]

    def program(self, *args: Any) -> Program:
        """Return the program of whole arrays for these arguments.

        Args:
            args: arguments of the function.

        Returns:
            The program.
        """
        return self._found(args)[0].program

    def explain(self, *args: Any) -> str:
        """Explain the executable for these arguments; see `MeshExecutable.explain`.

        Args:
            args: arguments of the function.

        Returns:
            The explanation.
        """
        return self._found(args)[0].explain()

    def _found(self, args: tuple[Any, ...]) -> tuple[MeshExecutable, TreeDef, list[Any]]:
        leaves, tree = flatten(args)
        for x, path in zip(leaves, tree.paths(), strict=True):
            _require_plain(self.mesh, x, path)
        asked = spread_arguments(self._in, args, tree)
        specs = tuple([_spec_of(x) for x in leaves])
        splits = tuple([_split_of(x, p) for x, p in zip(leaves, asked, strict=True)])
        key = (tree, specs, splits)
        executable, out_tree = self.executables.get_or_make(key, lambda: self._made(tree, specs, splits))
        return executable, out_tree, leaves

    def _made(
        self, tree: TreeDef, specs: tuple[Spec, ...], splits: tuple[PartitionSpec, ...]
    ) -> tuple[MeshExecutable, TreeDef]:
        results: list[TreeDef] = []

        def flat(*xs: Any) -> tuple[Any, ...]:
            leaves, shape = flatten(self._f(*unflatten(tree, list(xs))))
            results.append(shape)
            return tuple([tensor(x) if x.__class__ in SCALARS else x for x in leaves])

        program = trace(flat, *specs)
        out_specs = spread_specs(self._out, results[0], "out_specs", "the result")
        donated = [i for i, k in enumerate(_owners(tree)) if k in self._donate]
        return MeshExecutable(self.mesh, program, splits, out_specs, donated), results[0]

    def __repr__(self) -> str:
        return f"<{getattr(self, '__qualname__', 'function')} on {self.mesh!r}>"


def spread_specs(prefix: Any, tree: TreeDef, name: str, what: str) -> list[Choice]:
    """Return a spec for each leaf of a tree, from a tree prefix of specs.

    Raises:
        ArgumentError: the containers do not fit, or a leaf is neither a spec nor ``None``.
    """
    if prefix is None or isinstance(prefix, PartitionSpec):
        return [prefix] * tree.size
    if flatten(prefix)[1].kind is None:
        raise ArgumentError(f"{name} holds PartitionSpecs or None, got {prefix!r:.60}; write P('data', None)")
    parts = parts_like(tree, prefix)
    if parts is None:
        raise ArgumentError(
            f"{name}={prefix!r:.80} does not fit {what}, which is {tree.show()}; pass one spec for a container, or the "
            "same container with a spec for each part"
        )
    return [p for part, child in zip(parts, tree.children, strict=True) for p in spread_specs(part, child, name, what)]


def spread_arguments(prefix: Any, args: tuple[Any, ...], tree: TreeDef) -> list[Choice]:
    """Return a spec for each leaf of the arguments of a call."""
    if isinstance(prefix, list):
        prefix = tuple(prefix)
    if prefix.__class__ is tuple and len(prefix) != len(args):
        raise ArgumentError(
            f"in_specs has {len(prefix)} entries, but the function was called with {len(args)} arguments; pass one "
            "entry for each, or one spec for all"
        )
    return spread_specs(prefix, tree, "in_specs", "the arguments")


def _owners(tree: TreeDef) -> list[int]:
    """Return the position of the argument that each leaf belongs to."""
    return [i for i, child in enumerate(tree.children) for _ in range(child.size)]


def _require_plain(mesh: Mesh, x: Any, path: str) -> None:
    if isinstance(x, ShardedArray) and x.mesh != mesh:
        raise PlacementError(
            f"args{path}, {x!r}, is on another mesh than the function, {mesh!r}; move it with x.reshard(spec, mesh)"
        )
    if isinstance(x, (ShardedArray, Tensor, np.ndarray, np.generic)) or x.__class__ in SCALARS:
        return
    if isinstance(x, Array):
        kind = "traced" if is_traced(x) else "differentiated or batched"
        raise PlacementError(
            f"args{path} of a function on a mesh is a {kind} value, {x.spec!r}, but such a function takes concrete "
            "arrays; put the transform inside: compile_on(mesh, grad(f)) instead of grad(compile_on(mesh, f))"
        )
    raise ArgumentError(f"args{path} is a {type(x).__name__}, neither an array nor a number; close over it", path=path)


def _spec_of(x: Any) -> Spec:
    if isinstance(x, ShardedArray):
        return Spec(x.shape, x.dtype)
    return x.spec if isinstance(x, Tensor) else tensor(x).spec


def _split_of(x: Any, asked: Choice) -> PartitionSpec:
    if asked is not None:
        return asked
    return x.spec if isinstance(x, ShardedArray) else PartitionSpec()


def _brought(mesh: Mesh, x: Any, spec: PartitionSpec) -> ShardedArray:
    if not isinstance(x, ShardedArray):
        return mesh.shard(x, spec)
    return x if x.spec == spec else x.reshard(spec)
