"""`ContractionGraph`: contractions that share intermediate values, as in a gradient, with one or more results."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from tenferro_tensor_core import ArgumentError
from tenferro_tensor_core.forks import cached_property

Labels = tuple[int, ...]
"""One number for each axis of a value; axes with the same label have the same extent."""

Term = tuple[int, ...]
GraphStep = tuple[Labels, tuple[Term, ...]]
"""Labels of a new value, and its terms: each has the numbers of the one or two values that it multiplies."""


@dataclass(frozen=True)
class ContractionGraph:
    """Values computed one after the other, each a sum of contractions of one or two earlier values.

    Values are numbered: the operands first, then the result of each step. A step sums each of its terms over the labels
    that the new value lacks, and broadcasts it along the labels that the term lacks. A value with a repeated label is
    zero where the two indices differ. Values may be used any number of times, so that the derivative of a graph is a
    graph.

    Attributes:
        dtype: dtype of every operand and value.
        operands: labels of each operand; a repeated label denotes its diagonal.
        extents: extent of each label, by label.
        steps: labels and terms of each computed value.
        outputs: numbers of computed values, at least one and all different.
        conjugated: if nonzero, this many leading operands are conjugated first, and all outputs at the end.

    Raises:
        ArgumentError: labels, terms or outputs are inconsistent.

    >>> product_and_gradient = ContractionGraph(
    ...     np.dtype("float64"), ((0,), (0,), ()), (5,), (((), ((0, 1),)), ((0,), ((2, 1),))), (3, 4)
    ... )
    >>> product_and_gradient.values
    ((0,), (0,), (), (), (0,))
    >>> product_and_gradient.flops
    20
    """

    dtype: np.dtype[Any]
    operands: tuple[Labels, ...]
    extents: tuple[int, ...]
    steps: tuple[GraphStep, ...]
    outputs: tuple[int, ...]
    conjugated: int = 0

    def __post_init__(self) -> None:
        count, known = len(self.operands), len(self.extents)
        if any(not 0 <= label < known for labels in self.values for label in labels):
            raise ArgumentError(f"the labels of values are among 0..{known - 1}, got {self.values}")
        for number, (_, terms) in enumerate(self.steps, count):
            if not terms or any(len(t) not in (1, 2) or not all(0 <= v < number for v in t) for t in terms):
                raise ArgumentError(f"value {number} has terms of one or two values before it, got {terms}")
        distinct = {*self.outputs}
        if not 0 < len(self.outputs) == len(distinct) or any(not count <= v < len(self.values) for v in distinct):
            raise ArgumentError(f"outputs are results of steps, at least one and each once, got {self.outputs}")

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash((self.dtype.num, self.operands, self.extents, self.steps, self.outputs, self.conjugated))

    @cached_property
    def values(self) -> tuple[Labels, ...]:
        """The labels of every value."""
        return (*self.operands, *[labels for labels, _ in self.steps])

    @cached_property
    def flops(self) -> int:
        """Real multiplications and additions of all terms."""
        factor = 8 if self.dtype.kind == "c" else 2
        spaces = [{x for v in term for x in self.values[v]} for _, terms in self.steps for term in terms]
        return sum(factor * prod(self.extents[label] for label in space) for space in spaces)

    def shape(self, value: int) -> tuple[int, ...]:
        """Shape of a value, one axis for each label.

        Args:
            value: number of the value.

        Returns:
            The shape.
        """
        return tuple([self.extents[label] for label in self.values[value]])
