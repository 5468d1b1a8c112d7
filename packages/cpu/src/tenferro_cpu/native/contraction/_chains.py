"""Moves factors of large values to small ones: chains of scalings become one, or none.

Three rules on graphs; each keeps the number of steps and saves a pass over a large value:

- ``(a * b) * (c * d)`` becomes ``((a * b) * c) * d``, or any other order that reads and writes less;
- ``(x * s) y`` becomes ``x (s y)``, where `x * s` has the axes of `x` and ``s y`` is comparatively small;
- ``(x y) * s`` becomes ``(x * s) y``, where `x` has all axes of `s` and is small compared with the product.

The factors are the same, so results differ only in rounding, as long as the small products are in range.
"""

from collections import Counter
from dataclasses import replace
from math import prod

from tenferro_cpu.native.contraction import tuning
from tenferro_tensor.device_model import ContractionGraph, Labels


def folded(graph: ContractionGraph) -> ContractionGraph:
    """The graph with factors where they cost least; all values keep their indices.

    >>> import numpy as np
    >>> steps = (((0, 1), ((0, 1),)), ((0, 1), ((3, 2),)))
    >>> folded(ContractionGraph(np.dtype("float64"), ((0, 1), (0,), (1,)), (300, 300), steps, (4,))).steps
    (((0, 1), ((0, 1),)), ((0, 1), ((3, 2),)))
    >>> folded(ContractionGraph(np.dtype("float64"), ((0, 1), (0,), (0,)), (300, 300), steps, (4,))).steps
    (((0,), ((1, 2),)), ((0, 1), ((0, 3),)))
    """
    if max([prod([graph.extents[x] for x in labels]) for labels, _ in graph.steps]) < tuning.CHAIN_MIN_ELEMENTS:
        return graph
    return _Folding(graph).folded()


class _Folding:
    def __init__(self, graph: ContractionGraph) -> None:
        self.graph, self.count = graph, len(graph.operands)
        self.labels = list(graph.values)
        self.terms = [terms for _, terms in graph.steps]
        self.uses = Counter(v for terms in self.terms for term in terms for v in term)
        self.uses.update(graph.outputs)
        self.changed = False

    def folded(self) -> ContractionGraph:
        """Visit each step once: trees from their roots, then steps after those that produce their operands."""
        seen: set[int] = set()
        for number in reversed(range(self.count, len(self.labels))):
            if number not in seen and self.large(number):
                seen |= self.multiplied(number)
        for number in range(self.count, len(self.labels)):
            terms = self.terms[number - self.count]
            if len(terms) == 1 and len(terms[0]) == 2:
                for made, other in (terms[0], terms[0][::-1]):
                    if self.whole(made) and (self.gathered(number, made, other) or self.moved(number, made, other)):
                        self.changed = True
                        break
        if not self.changed:
            return self.graph
        return replace(self.graph, steps=tuple(zip(self.labels[self.count :], self.terms, strict=True)))

    def whole(self, value: int) -> bool:
        """Whether a value is large, the product of two, and used once."""
        return self.uses[value] == 1 and self.large(value)

    def large(self, value: int) -> bool:
        """Whether a value is large and the product of two."""
        if value < self.count or self.size(self.labels[value]) < tuning.CHAIN_MIN_ELEMENTS:
            return False
        terms = self.terms[value - self.count]
        return len(terms) == 1 and len(terms[0]) == 2 and self.distinct(value)

    def multiplied(self, root: int) -> set[int]:
        """A cheaper order for a tree of element-wise products, if there is one; the products of the tree."""
        places, factors = self.tree(root)
        if not 2 < len(places) < tuning.CHAIN_MAX_PRODUCTS or not all(map(self.distinct, factors)):
            return {*places}
        labels = {u: self.labels[u] for u in factors}
        steps: dict[int, tuple[int, int]] = {}
        before = sum([self.touched(*[self.labels[u] for u in (*self.terms[v - self.count][0], v)]) for v in places])
        after, costs = 0, dict[tuple[int, int], int]()
        for v in sorted(places):  # with more factors before it than products, as in the tree
            ready = [u for u in factors if u < v]
            pairs = [(x, y) for n, x in enumerate(ready) for y in ready[:n]]
            for x, y in pairs:
                if (x, y) not in costs:
                    costs[x, y] = self.worsened(labels[x], labels[y])
            x, y = steps[v] = min(pairs, key=costs.__getitem__)
            labels[v] = tuple(dict.fromkeys((*labels[x], *labels[y])))
            after += self.touched(labels[x], labels[y], labels[v])
            factors.remove(x)
            factors.remove(y)
            factors.append(v)
        if after <= tuning.CHAIN_GAIN * before:
            labels[root] = self.labels[root]
            for v in places:
                self.terms[v - self.count], self.labels[v] = (steps[v],), labels[v]
            self.changed = True
        return {*places}

    def tree(self, root: int) -> tuple[list[int], list[int]]:
        """Products about as large as the root that only it uses, and their factors."""
        places, factors, stack = [], [], [root]
        while stack:
            v = stack.pop()
            if v == root or (
                self.whole(v) and tuning.CHAIN_SIZE_FACTOR * self.size(self.labels[v]) >= self.size(self.labels[root])
            ):
                pair = self.terms[v - self.count][0]
                if {*self.labels[v]} == {x for u in pair for x in self.labels[u]}:
                    places.append(v)
                    stack += pair
                    continue
            factors.append(v)
        return places, factors

    def touched(self, x: Labels, y: Labels, made: Labels) -> int:
        """Elements that a product reads and writes; the smaller factor is laid out in another order."""
        small, large = sorted((self.size(x), self.size(y)))
        return self.size(made) + large + tuning.CHAIN_STRIDED_FACTOR * small

    def worsened(self, x: Labels, y: Labels) -> int:
        """Cost of a product, and the additional reads in another order that it causes."""
        made = tuple({*x, *y})
        return self.touched(x, y, made) + tuning.CHAIN_STRIDED_FACTOR * (self.size(made) - self.size(x) - self.size(y))

    def gathered(self, number: int, made: int, other: int) -> bool:
        """``(x * s) y`` as ``x (s y)``."""
        labels, result = self.labels[made], self.labels[number]
        for x, s in (self.terms[made - self.count][0], self.terms[made - self.count][0][::-1]):
            if {*self.labels[x]} != {*labels} or not {*self.labels[s]} <= {*labels} or other >= made:
                continue
            small = tuple(dict.fromkeys((*self.labels[s], *self.labels[other])))
            if tuning.CHAIN_SIZE_FACTOR * self.size(small) > self.size(labels) or not {*result} <= {*labels, *small}:
                continue
            self.put(number, made, (s, other), small, x)
            return True
        return False

    def moved(self, number: int, made: int, s: int) -> bool:
        """``(x y) * s`` as ``(x * s) y``."""
        labels, result = {*self.labels[made]}, {*self.labels[number]}
        pair = self.terms[made - self.count][0]
        have = {*self.labels[pair[0]], *self.labels[pair[1]]}
        if not {*self.labels[s]} <= labels <= have or not result <= labels or s >= made:
            return False
        for x, y in sorted([pair, pair[::-1]], key=lambda way: self.size(self.labels[way[0]])):
            mine = tuple(dict.fromkeys(self.labels[x]))
            if {*self.labels[s]} <= {*mine} and tuning.CHAIN_SIZE_FACTOR * self.size(mine) <= self.size(
                self.labels[made]
            ):
                self.put(number, made, (x, s), mine, y)
                return True
        return False

    def put(self, number: int, made: int, pair: tuple[int, int], labels: Labels, other: int) -> None:
        """Define the value `made` as the product of a pair, and combine it with `other`."""
        self.terms[made - self.count], self.labels[made] = (pair,), labels
        self.terms[number - self.count] = ((other, made),)

    def distinct(self, value: int) -> bool:
        return len({*self.labels[value]}) == len(self.labels[value])

    def size(self, labels: Labels) -> int:
        return prod([self.graph.extents[x] for x in labels])
