"""Short rows side by side: as many whole vectors as a row has elements hold as many rows as a vector has lanes.

No lane is idle while neighbours are combined; the columns are taken apart only where a row has an odd number of
elements.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tenferro_cpu.native.codegen.builder import Vec
from tenferro_cpu.native.codegen.operations._value import Value
from tenferro_cpu.native.codegen.whole._values import joined, parts
from tenferro_tensor import Op


class Comb:
    """Contiguous rows of as many elements as there are vectors.

    Args:
        vectors: their elements in order.
    """

    def __init__(self, vectors: Sequence[Value]) -> None:
        self.vectors = vectors
        self._neighbours: dict[Op, Comb] = {}

    def column(self, k: int) -> Value:
        """Element `k` of every row."""
        length, lanes = len(self.vectors), parts(self.vectors[0])[0].block.lanes
        return _picked(self.vectors, range(k, length * lanes, length))

    def neighbours(self, op: Op, combine: Callable[[Value, Value], Value]) -> Comb:
        """Elements 2 k and 2 k + 1 of every row, combined by `op`; there is an even number of them."""
        found = self._neighbours.get(op)
        if found is None:
            lanes = parts(self.vectors[0])[0].block.lanes
            even, odd = range(0, 2 * lanes, 2), range(1, 2 * lanes, 2)
            pairs = list(zip(self.vectors[::2], self.vectors[1::2], strict=True))
            made = [combine(_picked(pair, even), _picked(pair, odd)) for pair in pairs]
            found = self._neighbours[op] = Comb(made)
        return found


def _picked(values: Sequence[Value], places: Sequence[int]) -> Value:
    """The elements at these positions of the concatenation of several vectors."""
    return joined([_gathered(column, places) for column in zip(*map(parts, values), strict=True)])


def _gathered(vectors: Sequence[Vec], places: Sequence[int]) -> Vec:
    lanes = vectors[0].block.lanes
    found, order = vectors[0], [p if p < lanes else -1 for p in places]
    for k, vector in enumerate(vectors[1:], 1):
        inside = [p // lanes == k for p in places]
        if any(inside):
            order = [lanes + p % lanes if here else o for p, here, o in zip(places, inside, order, strict=True)]
            found = found.block.shuffled(found, order, vector)
            order = [i if p // lanes <= k else -1 for i, p in enumerate(places)]
    return found
