"""Compressed Jacobians: each element of a value keeps derivatives only in the few variables that it depends on.

Slot a of element r stands for the variable ``columns[a, r]``, or for none (-1), with derivative zero. An operation can
run slot by slot if each element of an operand has the same variable in a slot as all elements of the result that read
it. Otherwise, or if there are as many slots as variables, there is one slot for each variable.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from tenferro_ad.sparse._entries import EntryWriter, scipy_sparse
from tenferro_ad.sparse._patterns import relations_of  # noqa: F401 - registers the readers of branches and loops
from tenferro_ad.sparse._read import Abstract, Reader, program_environment
from tenferro_ad.sparse._relation import identity
from tenferro_runtime.extension import Equation, Literal, Program, Spec, catalog, tensor

Columns = np.ndarray[Any, Any]


class Slots(NamedTuple):
    """The variables that the elements of a value depend on.

    Attributes:
        number: number of slots.
        columns: the variable of each slot and element; ``None`` if slot i is variable i.
        pattern: the dependences as a sparse matrix, elements by variables.
    """

    number: int
    columns: Columns | None
    pattern: Any


class SlotChoice(NamedTuple):
    """The map from slots of a result to slots of an operand.

    Attributes:
        slots: the operand's slot for each slot of the result and element; ``None`` for the identity.
        there: where the operand has such a slot; ``None`` for everywhere.
    """

    slots: Columns | None
    there: Columns | None


SAME: Final = SlotChoice(None, None)


class SlotStep(NamedTuple):
    """The slots of one equation.

    Attributes:
        number: number of slots; 0 for a constant result.
        picks: slot map of each operand, ``None`` for a constant operand.
        target: for a sum of slots into variables, the flat position of each slot and element; else ``None``.
    """

    number: int
    picks: tuple[SlotChoice | None, ...]
    target: Columns | None = None


CONSTANT: Final = SlotStep(0, ())


class SlotPlan:
    """The slots of all equations of a program.

    Attributes:
        total: number of variables of the function.
        arguments: number of inputs of the program that hold them.
        steps: the step of each equation.
        outputs: for each output, the map from variables to its slots; ``None`` for a constant.
    """

    def __init__(self, program: Program, sizes: Sequence[int]) -> None:
        self.total, self.arguments = sum(sizes), len(sizes)
        self._slots: dict[int, Slots] = {}
        self._known = program_environment(program, ())
        self._specs = program.specs
        start = 0
        for v, n in zip(program.input_ids, sizes, strict=False):
            columns = np.arange(start, start + n)[None]
            pattern = scipy_sparse().csr_array(
                (np.ones(n, np.bool_), columns[0], np.arange(n + 1)), shape=(n, self.total)
            )
            self._slots[v] = Slots(1, columns, pattern)
            start += n
        self.steps = [self._step(eq) for eq in program.equations]
        self.outputs = [
            _all_variables(self._slots[v], self.total) if v in self._slots else None for v in program.output_ids
        ]
        del self._slots, self._known, self._specs

    def _step(self, eq: Equation) -> SlotStep:
        moving = {
            i: self._slots[v] for i, v in enumerate(eq.operands) if not isinstance(v, Literal) and v in self._slots
        }
        outs = [v for v in eq.results if self._specs[v].inexact]
        if not moving or not outs:
            return CONSTANT
        if len(eq.results) > 1 or any(s.columns is None for s in moving.values()):
            return self._whole(eq, moving)
        local = self._local(eq, moving)
        pattern: Any = None
        for i, relation in local.items():
            part = relation @ moving[i].pattern
            pattern = part if pattern is None else pattern + part
        if pattern is None or not pattern.nnz:
            return CONSTANT
        found = _slots(scipy_sparse().csr_array(pattern))
        if 2 * found.number <= self.total:
            picks = {i: _aligned(relation, moving[i], found) for i, relation in local.items()}
            if all(p is not None for p in picks.values()):
                self._slots[eq.results[0]] = found
                return SlotStep(found.number, tuple([picks.get(i) for i in range(len(eq.operands))]))
        if eq.op.primitive is catalog.reduce_sum:
            return self._summed(eq, local[0], moving[0])
        return self._whole(eq, {i: moving[i] for i in local})

    def _whole(self, eq: Equation, moving: Mapping[int, Slots]) -> SlotStep:
        for v in eq.results:
            if self._specs[v].inexact:
                self._slots[v] = Slots(self.total, None, None)
        picks = {i: _all_variables(s, self.total) for i, s in moving.items()}
        return SlotStep(self.total, tuple([picks.get(i) for i in range(len(eq.operands))]))

    def _summed(self, eq: Equation, relation: Any, x: Slots) -> SlotStep:
        """A sum, which adds each slot of each element to the slot of its variable."""
        (v,) = eq.results
        size = relation.shape[0]
        rows = np.zeros(relation.shape[1], np.int64)
        entries = relation.tocoo()
        rows[entries.col] = entries.row
        assert x.columns is not None
        self._slots[v] = Slots(self.total, None, None)
        # Empty slots are added to an extra position after the last variable.
        target = np.where(x.columns >= 0, x.columns * size + rows, self.total * size)
        return SlotStep(self.total, (SAME,), target)

    def _local(self, eq: Equation, moving: Mapping[int, Slots]) -> dict[int, Any]:
        """The dependences of the result's elements on each operand's elements, as sparse matrices."""
        specs = tuple([tensor(v.value).spec if isinstance(v, Literal) else self._specs[v] for v in eq.operands])
        reader = Reader(len(specs))
        ins = [self._abstract(i, v, s, len(specs), moving) for i, (v, s) in enumerate(zip(eq.operands, specs))]
        found = reader.step(eq, ins, specs, tuple([self._specs[v] for v in eq.results]))[0]
        writer = EntryWriter({})
        return {i: writer.matrix(r) for i, r in enumerate(found.relations) if r is not None}

    def _abstract(self, i: int, v: Any, spec: Spec, count: int, moving: Mapping[int, Slots]) -> Abstract:
        if i in moving:
            return Abstract(tuple([identity(spec.shape) if i == j else None for j in range(count)]))
        if isinstance(v, Literal):
            return Abstract((None,) * count, lambda sizes: np.asarray(v.value))
        known = self._known.get(v)
        return Abstract((None,) * count, None if known is None else known.value)


def _slots(pattern: Any) -> Slots:
    pattern.sum_duplicates()
    counts = np.diff(pattern.indptr)
    count = int(counts.max(initial=0))
    columns = np.full((count, pattern.shape[0]), -1, np.int64)
    place = np.arange(pattern.nnz) - np.repeat(pattern.indptr[:-1], counts)
    columns[place, np.repeat(np.arange(len(counts)), counts)] = pattern.indices
    return Slots(count, columns, pattern)


def _aligned(relation: Any, x: Slots, out: Slots) -> SlotChoice | None:
    """The map from the result's slots to an operand's; ``None`` if elements that read one element disagree."""
    assert x.columns is not None
    assert out.columns is not None
    by_element = relation.tocsc()
    counts = np.diff(by_element.indptr)
    read = counts > 0
    seen = out.columns[:, by_element.indices]
    first = seen[:, by_element.indptr[:-1][read]]
    if not np.array_equal(seen, np.repeat(first, counts[read], axis=1)):
        return None
    wanted = np.full((out.number, len(counts)), -1, np.int64)
    wanted[:, read] = first
    if x.number == out.number and np.array_equal(x.columns[:, read], first):
        return SAME
    equal = (x.columns[:, None, :] == wanted[None]) & (wanted >= 0)[None]
    return _pick(equal.argmax(axis=0), equal.any(axis=0), x.number)


def _all_variables(x: Slots, total: int) -> SlotChoice:
    if x.columns is None:
        return SAME
    slots = np.zeros((total, x.columns.shape[1]), np.int64)
    there = np.zeros(slots.shape, np.bool_)
    a, r = np.nonzero(x.columns >= 0)
    slots[x.columns[a, r], r] = a
    there[x.columns[a, r], r] = True
    return _pick(slots, there, x.number)


def _pick(slots: Columns, there: Columns, count: int) -> SlotChoice:
    same = len(slots) == count and np.array_equal(np.where(there, slots, np.arange(count)[:, None]), slots)
    if same and np.array_equal(slots, np.broadcast_to(np.arange(count)[:, None], slots.shape)):
        return SAME if there.all() else SlotChoice(None, there)
    return SlotChoice(slots, None if there.all() else there)
