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
    """Pairs of an index of an output and an index of an operand: one pair for each value of the labels.

    Label ``k`` runs over ``range(extents[k])``. The same label on both sides ties indices to each other, a label on
    one side alone stands for all indices: ``x[i + 1]`` of an output ``y[i]`` has the operand index ``(1, ((0, 1),))``.

    Attributes:
        extents: number of values of each label.
        output: index along each axis of the output.
        operand: index along each axis of the operand.
        where: only values of the labels for which these forms are not negative count.
    """

    extents: tuple[DimLike, ...]
    output: tuple[IndexForm, ...]
    operand: tuple[IndexForm, ...]
    where: tuple[IndexForm, ...] = ()


class IndexEntries(NamedTuple):
    """Pairs of indices that are computed when all sizes are numbers.

    Attributes:
        compute: maps the sizes by name to two integer arrays of one extent, indices into the flat output and into
            the flat operand.
    """

    compute: Callable[[dict[str, int]], tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]]


class SparsityStep(NamedTuple):
    """One op, as the rule for its sparsity sees it.

    Attributes:
        op: the op; ``op.params`` are the metadata.
        ins: specs of the operands; sizes may be open.
        outs: specs of the outputs.
        values: for each operand that depends on no argument, a function of the sizes by name that returns it as a
            NumPy array; ``None`` for the other ones.
    """

    op: Op
    ins: tuple[Spec, ...]
    outs: tuple[Spec, ...]
    values: tuple[Callable[[dict[str, int]], np.ndarray[Any, Any]] | None, ...]


def index_map(output: Sequence[Hashable], operand: Sequence[Hashable], out: Spec, x: Spec) -> IndexMap:
    """The map in which axes of one name have one index.

    Args:
        output: a name for each axis of the output.
        operand: a name for each axis of the operand.
        out: spec of the output.
        x: spec of the operand.

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
