"""Expands a relation to a sparse matrix for given sizes."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from math import prod
from typing import Any, Final

import numpy as np

from tenferro_ad.sparse._linear_forms import plus
from tenferro_ad.sparse._relation import ProductStep, Relation, SameElements, Shape
from tenferro_runtime.extension import IndexForm, IndexMap
from tenferro_tensor_core import ArgumentError, BackendUnavailableError, DimLike, evaluate
from tenferro_tensor_core.forks import importing

MAX_ENTRIES: Final = 2**31 - 1
"""Maximum number of entries of a sparse matrix."""


def scipy_sparse() -> Any:
    """The module `scipy.sparse`, imported on first use.

    Raises:
        BackendUnavailableError: SciPy is not installed.
    """
    loaded = sys.modules.get("scipy.sparse")
    if loaded is not None:
        return loaded
    try:
        with importing():
            import scipy.sparse
    except ImportError as error:
        raise BackendUnavailableError(
            "sparse derivatives are returned as arrays of scipy.sparse, but SciPy cannot be imported; install it, as "
            "in pip install scipy"
        ) from error
    return scipy.sparse


def _parts(relation: Relation) -> list[Relation]:
    """The relations that a relation is computed from."""
    found: list[Relation] = []
    for step in relation.later:
        if isinstance(step, ProductStep):
            found += [step.outer, step.inner]
        elif isinstance(step, SameElements):
            found.append(step.relation)
    return found


class EntryWriter:
    """Expands relations for given sizes; a relation that several others use is expanded once.

    Args:
        sizes: values of the symbolic sizes by name.
        roots: all relations that will be requested; others are dropped as soon as nothing needs them.
    """

    def __init__(self, sizes: Mapping[str, int], roots: Iterable[Relation] = ()) -> None:
        self.sizes = dict(sizes)
        self._known: dict[int, tuple[Any, Any]] = {}
        self._uses: Counter[int] = Counter()
        seen: set[int] = set()
        queue = list(roots)
        self._uses.update(map(id, queue))
        while queue:
            relation = queue.pop()
            if id(relation) not in seen:
                seen.add(id(relation))
                parts = _parts(relation)
                self._uses.update(map(id, parts))
                queue += parts

    def number(self, d: DimLike) -> int:
        return evaluate(d, self.sizes)

    def extent(self, shape: Shape) -> int:
        return prod(map(self.number, shape))

    def matrix(self, relation: Relation) -> Any:
        """The relation as a boolean `csr_array` over flat indices, its rows sorted."""
        stack = [relation]  # no recursion: the depth can be the number of a loop's steps
        while stack:
            one = stack[-1]
            missing = [] if id(one) in self._known else [r for r in _parts(one) if id(r) not in self._known]
            if missing:
                stack += missing
                continue
            stack.pop()
            if id(one) not in self._known:
                made = self._written(one)
                made.sum_duplicates()
                self._known[id(one)] = made, one
                for part in _parts(one):
                    self._release(part)
        return self._known[id(relation)][0]

    def _release(self, relation: Relation) -> None:
        if id(relation) in self._uses:
            self._uses[id(relation)] -= 1
            if not self._uses[id(relation)]:
                del self._known[id(relation)]

    def _written(self, relation: Relation) -> Any:
        sparse = scipy_sparse()
        shape = self.extent(relation.shape), self.extent(relation.source)
        parts = [self.pairs(m, relation.shape, relation.source) for m in relation.maps]
        total = None
        for step in relation.later:
            if isinstance(step, ProductStep):
                one = self._known[id(step.outer)][0] @ self._known[id(step.inner)][0]
            elif isinstance(step, SameElements):
                one = self._known[id(step.relation)][0]
            else:
                parts.append(step.compute(self.sizes))
                continue
            total = one if total is None else total + one
        if not parts and total is not None:
            return total.copy()
        rows = np.concatenate([p[0] for p in parts]) if parts else np.zeros(0, np.int32)
        columns = np.concatenate([p[1] for p in parts]) if parts else np.zeros(0, np.int32)
        ones = np.ones(len(rows), np.bool_)
        here = sparse.csr_array(sparse.coo_array((ones, (rows, columns)), shape=shape))
        return here if total is None else sparse.csr_array(here + total)

    def pairs(self, m: IndexMap, shape: Shape, source: Shape) -> tuple[Any, Any]:
        """Flat indices of the value and of the argument.

        Raises:
            ArgumentError: there are too many.
        """
        extents = [self.number(n) for n in m.extents]
        count = prod(extents) if all(n > 0 for n in extents) else 0
        if count > MAX_ENTRIES:
            raise ArgumentError(
                f"the sparsity pattern has {count} entries, which is too many for a sparse array: some value depends "
                "on all of a large argument; use jvp or vjp instead of a sparse derivative",
                entries=count,
            )
        if not count:
            return np.zeros(0, np.int32), np.zeros(0, np.int32)
        rows = self._flat(m.output, shape, extents)
        columns = self._flat(m.operand, source, extents)
        where = [*m.where, *self._outside(m.output, shape, extents), *self._outside(m.operand, source, extents)]
        if not where:
            return rows, columns
        kept = np.ones(tuple(extents), np.bool_)
        for form in where:
            kept &= self._values(form, extents, np.int64) >= 0
        chosen = kept.reshape(-1)
        return rows[chosen], columns[chosen]

    def _outside(self, forms: tuple[IndexForm, ...], shape: Shape, extents: list[int]) -> list[IndexForm]:
        """Conditions that keep indices in bounds: a composed map may have dropped some."""
        found = []
        for form, n in zip(forms, shape, strict=True):
            low = high = self.number(form.offset)
            for k, step in form.terms:
                span = self.number(step) * (extents[k] - 1)
                low, high = low + min(span, 0), high + max(span, 0)
            if low < 0:
                found.append(form)
            if high >= self.number(n):
                found.append(plus(IndexForm(n - 1), form, -1))
        return found

    def _flat(self, forms: tuple[IndexForm, ...], shape: Shape, extents: list[int]) -> Any:
        """The flat index of each value of the labels."""
        numbers = [self.number(n) for n in shape]
        total, steps = 0, [0] * len(extents)
        stride = 1
        for form, n in zip(reversed(forms), reversed(numbers), strict=True):
            total += stride * self.number(form.offset)
            for k, step in form.terms:
                steps[k] += stride * self.number(step)
            stride *= n
        dtype = np.int32 if stride <= MAX_ENTRIES else np.int64
        plain = IndexForm(total, tuple([(k, s) for k, s in enumerate(steps) if s]))
        return np.broadcast_to(self._values(plain, extents, dtype), tuple(extents)).reshape(-1)

    def _values(self, form: IndexForm, extents: list[int], dtype: Any) -> Any:
        total = np.full((1,) * len(extents), self.number(form.offset), dtype)
        for k, step in form.terms:
            axis = [1] * len(extents)
            axis[k] = extents[k]
            total = total + (np.arange(extents[k], dtype=dtype) * dtype(self.number(step))).reshape(axis)
        return total
