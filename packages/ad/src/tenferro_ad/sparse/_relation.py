"""`Relation`: which elements of an argument each element of a value depends on, for symbolic sizes.

A relation is a union of index maps (its closed form) and of deferred steps, which become products of sparse matrices
once all sizes are numbers. It is a superset of the nonzero derivatives.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from math import prod
from typing import Any, Final

from tenferro_ad.sparse._compose import EMPTY, composed, contains, kind, simplified
from tenferro_ad.sparse._linear_forms import label, plus
from tenferro_runtime.extension import IndexEntries, IndexForm, IndexMap
from tenferro_tensor_core import DimLike

Shape = tuple[DimLike, ...]

MAX_MAPS: Final = 96
"""Maximum number of index maps of a relation in closed form."""


class Union:
    """A union of index maps, free of maps that others contain.

    Only maps of one kind are compared, so that many rows cost their number and not its square.
    """

    __slots__ = ("_kinds", "count")

    def __init__(self, maps: Iterable[IndexMap] = ()) -> None:
        """Begin with maps of which none contains another."""
        self.count = 0
        self._kinds: dict[Hashable, list[IndexMap]] = {}
        for m in maps:
            self._kinds.setdefault(kind(m), []).append(m)
            self.count += 1

    def add(self, new: IndexMap) -> None:
        """Add a map, and drop those that it contains."""
        known = self._kinds.setdefault(kind(new), [])
        if any(contains(m, new) for m in known):
            return
        kept = [m for m in known if not contains(new, m)]
        self.count += len(kept) + 1 - len(known)
        known[:] = [*kept, new]

    def maps(self) -> list[IndexMap]:
        """All maps, those of one kind together."""
        return [m for known in self._kinds.values() for m in known]


class ProductStep:
    """The composition of an op's relation with that of its operand."""

    __slots__ = ("inner", "outer")

    def __init__(self, outer: Relation, inner: Relation) -> None:
        self.outer, self.inner = outer, inner


class SameElements:
    """A relation with the same flat indices as another relation, in other shapes."""

    __slots__ = ("relation",)

    def __init__(self, relation: Relation) -> None:
        self.relation = relation


Later = ProductStep | SameElements | IndexEntries
"""A part of a relation that is computed once all sizes are numbers."""


class Relation:
    """Pairs of an index of a value and an index of an argument.

    Attributes:
        shape: shape of the value.
        source: shape of the argument.
        maps: the closed form.
        later: the deferred parts.
    """

    __slots__ = ("later", "maps", "shape", "source")

    def __init__(self, shape: Shape, source: Shape, maps: Iterable[IndexMap] = (), later: Iterable[Later] = ()) -> None:
        self.shape, self.source = shape, source
        self.maps = tuple(maps)
        self.later = tuple({id(x): x for x in later}.values())

    @property
    def closed(self) -> bool:
        """Whether it is a union of index maps."""
        return not self.later

    @property
    def empty(self) -> bool:
        """Whether there are no pairs."""
        return not self.maps and not self.later

    def is_identity(self) -> bool:
        """Whether each element depends exactly on the element at the same index."""
        return self.closed and self.shape == self.source and self.maps == identity(self.shape).maps

    def is_dense(self) -> bool:
        """Whether each element depends on all elements."""
        return self.closed and self.maps == dense(self.shape, self.source).maps

    def __or__(self, other: Relation) -> Relation:
        if self is other or other.empty or self.is_dense():
            return self
        if self.empty or other.is_dense():
            return other
        for a, b in ((self, other), (other, self)):
            step = b.only_product()
            if step is not None and step.inner is a and step.outer.closed and a.shape == b.shape:
                outer = identity(a.shape) | step.outer
                return Relation(a.shape, a.source, (), (ProductStep(outer, a),))
        union = Union(self.maps)
        for m in other.maps:
            union.add(m)
        return Relation(self.shape, self.source, union.maps(), _merged([*self.later, *other.later]))

    def only_product(self) -> ProductStep | None:
        """The product, if the relation is a single product; else ``None``."""
        if self.maps or len(self.later) != 1:
            return None
        step = self.later[0]
        return step if isinstance(step, ProductStep) else None

    def after(self, inner: Relation) -> Relation:
        """The composition with the relation of the operand, `inner`."""
        if self.is_identity() and self.shape == inner.shape:
            return inner
        if inner.is_identity():
            return Relation(self.shape, inner.source, self.maps, self.later)
        if self.empty or inner.empty:
            return Relation(self.shape, inner.source)
        step = inner.only_product()
        if step is not None and self.closed and step.outer.closed:
            outer = self.after(step.outer)
            if outer.closed:
                return Relation(self.shape, inner.source, (), (ProductStep(outer, step.inner),))
        product = Relation(self.shape, inner.source, (), (ProductStep(self, inner),))
        if not (self.closed and inner.closed):
            return product
        union = Union()
        for outer_map in self.maps:
            for inner_map in inner.maps:
                found = composed(outer_map, inner_map)
                if found is None or union.count > MAX_MAPS:
                    return product
                if isinstance(found, IndexMap):
                    union.add(found)
        return Relation(self.shape, inner.source, union.maps())

    def same(self, other: Relation) -> bool:
        """Whether two relations are known to have the same pairs."""
        return set(self.maps) == set(other.maps) and {*map(id, self.later)} == {*map(id, other.later)}

    def __repr__(self) -> str:
        return f"Relation({self.shape} <- {self.source}, {len(self.maps)} maps, {len(self.later)} later)"


def _merged(steps: Sequence[Later]) -> list[Later]:
    """Merge products with the same inner relation if their outer relations have a closed form."""
    found: dict[int, Later] = {}
    for step in steps:
        closed = isinstance(step, ProductStep) and step.outer.closed
        key = id(step.inner) if closed and isinstance(step, ProductStep) else id(step)
        known = found.get(key)
        if isinstance(known, ProductStep) and isinstance(step, ProductStep) and known is not step:
            step = ProductStep(known.outer | step.outer, step.inner)
        found[key] = step
    return list(found.values())


def of_maps(shape: Shape, source: Shape, parts: Sequence[IndexMap | IndexEntries]) -> Relation:
    """The relation of a rule's result."""
    union = Union()
    for part in parts:
        found = simplified(part) if isinstance(part, IndexMap) else EMPTY
        if isinstance(found, IndexMap):
            union.add(found)
    return Relation(shape, source, union.maps(), [p for p in parts if isinstance(p, IndexEntries)])


def identity(shape: Shape) -> Relation:
    """Each element depends on the element at the same index."""
    forms = tuple([label(k) for k in range(len(shape))])
    return of_maps(shape, shape, [IndexMap(shape, forms, forms)])


def dense(shape: Shape, source: Shape) -> Relation:
    """Each element depends on all elements."""
    count = len(shape)
    rows = tuple([label(k) for k in range(count)])
    columns = tuple([label(k + count) for k in range(len(source))])
    return of_maps(shape, source, [IndexMap((*shape, *source), rows, columns)])


def reshaped(relation: Relation, shape: Shape) -> Relation:
    """The relation of a value with the same elements in another shape."""
    if shape == relation.shape:
        return relation
    local = reshape_map(shape, relation.shape)
    if local is not None:
        found = of_maps(shape, relation.shape, [local]).after(relation)
        if found.closed:
            return found
    return Relation(shape, relation.source, (), (SameElements(relation),))


def reshape_map(shape: Shape, before: Shape) -> IndexMap | None:
    """The map of a reshape that only merges or splits axes, else ``None``."""
    rows: list[IndexForm] = []
    columns: list[IndexForm] = []
    extents: list[DimLike] = []
    for new, old in _groups(shape, before):
        if len(new) > 1 and len(old) > 1:
            return None
        fine, coarse, forms = (old, rows, columns) if len(old) > 1 or len(new) == 0 else (new, columns, rows)
        joined = IndexForm(0)
        for k, n in enumerate(fine):
            one = label(len(extents))
            forms.append(one)
            joined = plus(joined, one, prod(fine[k + 1 :]))
            extents.append(n)
        other = new if fine is old else old
        if len(other) == 1:
            coarse.append(joined)
    return IndexMap(tuple(extents), tuple(rows), tuple(columns))


def _groups(shape: Shape, before: Shape) -> list[tuple[Shape, Shape]]:
    """The shortest runs of axes with equal total size in both shapes."""
    found: list[tuple[Shape, Shape]] = []
    i = j = a = b = 0
    while i < len(shape) or j < len(before):
        p, q = prod(shape[a:i]), prod(before[b:j])
        if (i > a or j > b) and p == q:
            found.append((shape[a:i], before[b:j]))
            a, b = i, j
        elif j == len(before) or (i < len(shape) and not _smaller(q, p)):
            i += 1
        else:
            j += 1
    if i > a or j > b:
        found.append((shape[a:i], before[b:j]))
    return found


def _smaller(q: Any, p: Any) -> bool:
    """Whether to take an axis of the old shape next."""
    if isinstance(p, int) and isinstance(q, int):
        return q < p
    return isinstance(q, int)
