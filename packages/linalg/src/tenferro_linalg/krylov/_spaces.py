"""Unknowns in any containers as one flat vector of one dtype."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import tenferro_runtime as tr
from tenferro_linalg._operands import inexact
from tenferro_runtime import StructureError
from tenferro_runtime.extension import ArgumentError, DimLike, Spec
from tenferro_runtime.ir import here
from tenferro_runtime.trees import TreeDef, flatten, unflatten
from tenferro_tensor_core import DType, promote, require_equal


class FlatSpace:
    """The space of flat vectors for given leaves.

    Attributes:
        tree: their containers.
        specs: specs of the leaves.
        dtype: the dtype of the flat vector.
        size: its length.
    """

    def __init__(self, tree: TreeDef, specs: Sequence[Spec], what: str) -> None:
        self.tree, self.specs = tree, tuple(specs)
        if not self.specs:
            raise ArgumentError(f"{what} has no arrays{here()}; pass at least one")
        if len({s.cplx for s in self.specs}) > 1:
            raise ArgumentError(
                f"{what} mixes real and complex arrays{here()}, but a Krylov space is over one field; convert all of "
                "them to complex"
            )
        self.dtype = promote(*[s.dtype for s in self.specs])
        self.size: DimLike = sum([math.prod(s.shape) for s in self.specs])
        self.plain = len(self.specs) == 1 and self.specs[0].ndim == 1

    def flat(self, x: Any, what: str) -> Any:
        """Flatten a tree into a vector.

        Raises:
            StructureError: it has other containers, ranks or kinds of numbers than the vectors of this space.
            ShapeError: it has other extents.
        """
        leaves, tree = flatten(x)
        if tree is not self.tree:
            raise StructureError(
                f"{what}{here()} has the structure {tree.show()}, but {self.tree.show()} is needed; use the same "
                "nesting",
                expected=self.tree.show(),
                seen=tree.show(),
            )
        parts = []
        for leaf, spec, path in zip(leaves, self.specs, tree.paths(), strict=True):
            v = inexact(leaf)
            message = (
                f"{what}{here()} is {v.spec!r}{path and f' at {path}'}, but {spec!r} is needed there; reshape or "
                "convert it, or give the right-hand side the dtype of the result"
            )
            if v.spec.ndim != spec.ndim or (v.spec.cplx and not spec.cplx):
                raise StructureError(message, seen=repr(v.spec), expected=repr(spec))
            for n, m in zip(v.spec.shape, spec.shape, strict=True):
                require_equal(n, m, message)
            v = v if v.spec.dtype == self.dtype else tr.astype(v, self.dtype)
            parts.append(v if spec.ndim == 1 else tr.reshape(v, (-1,)))
        return parts[0] if len(parts) == 1 else tr.concat(parts)

    def tree_of(self, v: Any) -> Any:
        """Unflatten a vector into a tree."""
        if self.plain:
            return unflatten(self.tree, [v])
        leaves: list[Any] = []
        start: DimLike = 0
        for s in self.specs:
            stop = start + math.prod(s.shape)
            part = v if len(self.specs) == 1 else v[start:stop]
            part = tr.reshape(part, s.shape)
            leaves.append(part if s.dtype == self.dtype else tr.astype(part, s.dtype))
            start = stop
        return unflatten(self.tree, leaves)

    @property
    def spec(self) -> Spec:
        """Spec of the flat vector."""
        return Spec((self.size,), self.dtype, self.specs[0].place)


def space_of(x: Any, what: str, dtype: DType | None = None) -> tuple[FlatSpace, Any]:
    """The space of a tree, and the tree as a vector.

    Args:
        x: arrays in any containers; integers count as float64.
        what: its name in messages.
        dtype: dtype to promote the dtypes of the arrays with.
    """
    leaves, tree = flatten(x)
    values = [inexact(leaf) for leaf in leaves]
    if dtype is not None:
        values = [v if promote(v.spec.dtype, dtype) == v.spec.dtype else tr.astype(v, promote(v.spec.dtype, dtype))
                  for v in values]  # fmt: skip
    space = FlatSpace(tree, [v.spec for v in values], what)
    return space, space.flat(unflatten(tree, values), what)
