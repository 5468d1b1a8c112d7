"""Zeros of constants: a product has no derivative where the other factor is 0, nor has an unselected operand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from tenferro_runtime.extension import IndexEntries, SparsityStep, Spec, Tensor, catalog
from tenferro_tensor_core import DimLike, evaluate

MAX_CONSTANT: Final = 10_000_000
"""Maximum size of a constant, in elements, whose zeros are looked up."""

NONZERO_MAX_SHARE: Final = 0.5
"""Maximum share of nonzero elements for which a constant's nonzeros are enumerated."""

Compute = Callable[[dict[str, int]], Any]


def chosen_elements(step: SparsityStep) -> tuple[IndexEntries | None, ...] | None:
    """For each operand of an elementwise op, the elements that a constant does not mask; ``None`` for all."""
    p = step.op.primitive
    if p in (catalog.mul, catalog.absorbing_mul):
        for i in (0, 1):
            factor = constant(step, i)
            if factor is not None and not factor.all():
                found: list[IndexEntries | None] = [None, None]
                found[1 - i] = _elements(factor != 0)
                return tuple(found)
    elif p is catalog.select:
        which = constant(step, 0)
        if which is not None and which.ndim and not (which.all() or not which.any()):
            return None, _elements(which), _elements(~which)
    return None


def constant(step: SparsityStep, i: int) -> np.ndarray[Any, Any] | None:
    """An operand as an array if it is a constant of known size, else ``None``."""
    value, spec = step.values[i], step.ins[i]
    if value is None or spec.symbolic or not spec.ndim or int(spec.size) > MAX_CONSTANT:  # type: ignore[arg-type]
        return None
    found: Any = value({})
    return found.numpy() if isinstance(found, Tensor) else None


def _elements(mask: np.ndarray[Any, Any]) -> IndexEntries:
    there = np.flatnonzero(mask)
    return IndexEntries(lambda sizes: (there, there))


class MatrixEntries(NamedTuple):
    """A contraction with a sparse constant, each nonzero element of which ties output and operand.

    Attributes:
        nonzero: indices of the nonzero elements along each axis of the constant.
        output: for each axis of the output, an axis of the constant, or a free axis of the operand.
        operand: for each axis of the operand, an axis of the constant, or a free axis.
        shapes: shapes of output and operand.
        free: extents of the free axes.
    """

    nonzero: tuple[np.ndarray[Any, Any], ...]
    output: tuple[tuple[str, int], ...]
    operand: tuple[tuple[str, int], ...]
    shapes: tuple[tuple[DimLike, ...], tuple[DimLike, ...]]
    free: tuple[DimLike, ...]

    def compute(self, sizes: dict[str, int]) -> tuple[Any, Any]:
        free = [evaluate(n, sizes) for n in self.free]
        count = len(free) + 1
        values: dict[tuple[str, int], Any] = {}
        for a, along in enumerate(self.nonzero):
            values["constant", a] = along.astype(np.int64).reshape(-1, *[1] * len(free))
        for a, n in enumerate(free):
            values["free", a] = np.arange(n).reshape([n if k == a + 1 else 1 for k in range(count)])
        whole = (len(self.nonzero[0]), *free)
        flat = []
        for names, shape in zip((self.output, self.operand), self.shapes, strict=True):
            total: Any = np.zeros((1,) * count, np.int64)
            for name, extent in zip(names, shape, strict=True):
                total = total * evaluate(extent, sizes) + values[name]
            flat.append(np.broadcast_to(total, whole).reshape(-1))
        return flat[0], flat[1]


def contracted_with(
    matrix: np.ndarray[Any, Any],
    names: Sequence[Any],
    others: Sequence[Any],
    output: Sequence[Any],
    out: Spec,
    x: Spec,
) -> IndexEntries | None:
    """The pairs of output and operand of a contraction with a constant; ``None`` if the constant has few zeros.

    Args:
        matrix: the constant.
        names: a name for each of its axes.
        others: names of the axes of the operand.
        output: names of the axes of the output.
        out: spec of the output.
        x: spec of the operand.
    """
    if np.count_nonzero(matrix) > NONZERO_MAX_SHARE * matrix.size:
        return None
    free = [n for n in others if n not in names]

    def place(name: Any) -> tuple[str, int]:
        return ("constant", names.index(name)) if name in names else ("free", free.index(name))

    extents = tuple([x.shape[others.index(n)] for n in free])
    made = MatrixEntries(
        np.nonzero(matrix), tuple(map(place, output)), tuple(map(place, others)), (out.shape, x.shape), extents
    )
    return IndexEntries(made.compute)
