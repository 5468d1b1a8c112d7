"""Pytrees as vectors of a real vector space: a complex leaf contributes its real and imaginary parts.

The inner product is Re(conj(a) b), summed over all leaves. Functions that are linear only over the reals, such as the
derivatives of functions that conjugate, are linear here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tenferro_runtime as tr
from tenferro_ad.implicit._values import unknowns
from tenferro_runtime.trees import unflatten
from tenferro_tensor_core import DimLike, promote, real_of

Parts = list[Any]
"""Real 1-d arrays, two of them for a complex leaf."""


class RealSpace:
    """The space of trees with a given structure, shapes and dtypes.

    Attributes:
        dtype: the widest real dtype of a leaf.
        dimension: the number of real coordinates.
    """

    def __init__(self, like: Any) -> None:
        values, self.tree = unknowns(like, "the vector")
        self.specs = [v.spec for v in values]
        self.dtype = promote(*[real_of(s.dtype) for s in self.specs]) if self.specs else tr.float64
        self.dimension: DimLike = sum([s.size * (2 if s.cplx else 1) for s in self.specs])

    def parts(self, x: Any) -> Parts:
        """The coordinates of a tree."""
        found = []
        for v in unknowns(x, "the vector")[0]:
            flat = tr.reshape(v, (-1,))
            found += [tr.real(flat), tr.imag(flat)] if v.spec.cplx else [flat]
        return found

    def tree_of(self, parts: Parts) -> Any:
        """The tree with the given coordinates."""
        given = iter(parts)
        leaves = []
        for s in self.specs:
            flat = next(given)
            if s.cplx:
                flat = tr.astype(flat + 1j * next(given), s.dtype)
            leaves.append(tr.reshape(flat, s.shape))
        return unflatten(self.tree, leaves)

    def norm(self, a: Parts) -> Any:
        """The Euclidean norm."""
        return norm(a, self.dtype)


def dot(a: Sequence[Any], b: Sequence[Any], dtype: Any) -> Any:
    """The inner product in a dtype; for stacked vectors `a`, of each row."""
    return sum([tr.astype(p @ q, dtype) for p, q in zip(a, b, strict=True)], tr.zeros((), dtype=dtype))


def norm(a: Parts, dtype: Any) -> Any:
    """The Euclidean norm."""
    return tr.sqrt(dot(a, a, dtype))


def added(a: Parts, scale: Any, b: Parts) -> Parts:
    """``a + scale * b``."""
    return [p + tr.astype(scale, p.dtype) * q for p, q in zip(a, b, strict=True)]


def scaled(scale: Any, a: Parts) -> Parts:
    """``scale * a``."""
    return [tr.astype(scale, p.dtype) * p for p in a]
