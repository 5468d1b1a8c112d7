"""Which elements of an operand an output of an op depends on, as affine relations between their indices."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np

from tenferro_tensor import Op, Spec
from tenferro_tensor_core import DimLike

__all__ = ["IndexEntries", "IndexForm", "IndexMap", "SparsityStep", "index_map"]


class IndexForm(NamedTuple):
    """The index ``offset + sum of step * label``.

    Attributes:
        offset: the index where all labels are 0.
        terms: pairs of the number of a label and a step that is not 0, in ascending order of the labels.
    """

    offset: DimLike
    terms: tuple[tuple[int, DimLike], ...] = ()


class IndexMap(NamedTuple):
    """Pairs of an output index and an operand index: one pair for each value of the labels.

    Label ``k`` runs over ``range(extents[k])``. A label on both sides ties their indices together, a label on one side
    runs over all its indices: ``x[i + 1]`` in an output ``y[i]`` has the operand index ``(1, ((0, 1),))``.

    Attributes:
        extents: number of values of each label.
        output: index along each axis of the output.
        operand: index along each axis of the operand.
        where: label values for which one of these forms is negative are excluded.
    """

    extents: tuple[DimLike, ...]
    output: tuple[IndexForm, ...]
    operand: tuple[IndexForm, ...]
    where: tuple[IndexForm, ...] = ()


class IndexEntries(NamedTuple):
    """Pairs of indices that are computed once all sizes are known.

    Attributes:
        compute: maps the sizes by name to two integer vectors of equal length, indices into the flattened output and
            the flattened operand.
    """

    compute: Callable[[dict[str, int]], tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]]


class SparsityStep(NamedTuple):
    """An op as its sparsity rule sees it.

    Attributes:
        op: the op; ``op.params`` are the metadata.
        ins: specs of the operands; sizes may be symbolic.
        outs: specs of the outputs.
        values: for each operand that depends on no argument, a function that maps the sizes by name to its value, a
            NumPy array; ``None`` for other operands.
    """

    op: Op
    ins: tuple[Spec, ...]
    outs: tuple[Spec, ...]
    values: tuple[Callable[[dict[str, int]], np.ndarray[Any, Any]] | None, ...]


def index_map(output: Sequence[Hashable], operand: Sequence[Hashable], out: Spec, x: Spec) -> IndexMap:
    """The index map in which axes with equal names have equal indices.

    Args:
        output: a name for each axis of the output.
        operand: a name for each axis of the operand.
        out: spec of the output.
        x: spec of the operand.

    Returns:
        The map.

    >>> from tenferro_tensor import Spec
    >>> out, x = Spec((2, 3), np.dtype("float64")), Spec((2, 4), np.dtype("float64"))
    >>> index_map("ij", "ik", out, x).extents
    (2, 3, 4)
    """
    extents: dict[Hashable, DimLike] = {}
    for name, n in zip((*output, *operand), (*out.shape, *x.shape), strict=True):
        extents.setdefault(name, n)
    numbers = {name: k for k, name in enumerate(extents)}
    rows, columns = (tuple([IndexForm(0, ((numbers[n], 1),)) for n in names]) for names in (output, operand))
    return IndexMap(tuple(extents.values()), rows, columns)
