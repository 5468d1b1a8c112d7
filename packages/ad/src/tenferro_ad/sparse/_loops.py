"""Relations through branches and loops: unions, and fixpoints over the carry."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from tenferro_ad.sparse._linear_forms import label
from tenferro_ad.sparse._read import STRUCTURED, Abstract, Reader
from tenferro_ad.sparse._relation import Relation, Shape, dense, of_maps
from tenferro_runtime.control_flow.primitives import cond, scan, while_loop
from tenferro_runtime.extension import IndexForm, IndexMap, Op, Program, Spec
from tenferro_tensor_core import DimLike

MAX_UNROLLED: Final = 16
"""Number of steps up to which a loop is followed step by step in any case."""

MAX_FOLLOWED: Final = 2000
"""Number of equations, those of all steps, up to which a loop without an exact fixpoint is followed step by step."""

EXACT_ROUNDS: Final = 3
"""Number of rounds in which the relation of a carry may grow before it is made larger than need be."""


def _cond(
    reader: Reader, op: Op, ins: Sequence[Abstract], in_specs: tuple[Spec, ...], out_specs: tuple[Spec, ...]
) -> list[Abstract]:
    outcomes = [reader.read(branch, ins[1:]) for branch in op.params["branches"]]
    return [reader.joined(each, spec) for each, spec in zip(zip(*outcomes, strict=True), out_specs, strict=True)]


def _while(
    reader: Reader, op: Op, ins: Sequence[Abstract], in_specs: tuple[Spec, ...], out_specs: tuple[Spec, ...]
) -> list[Abstract]:
    count, body = op.params["consts"], op.params["body"]
    consts = list(ins[:count])

    def after_one(carry: list[Abstract]) -> list[Abstract]:
        return Reader(reader.count, reader.lift, False).read(body, [*consts, *carry])

    return fixpoint(reader, [Abstract(x.relations) for x in ins[count:]], out_specs, after_one)


def fixpoint(
    reader: Reader, carry: list[Abstract], specs: Sequence[Spec], after_one: Any, larger_than_needed: Any = None
) -> list[Abstract]:
    """What a carry depends on after any number of steps.

    Args:
        reader: reads the body.
        carry: what it depends on before the first step.
        specs: its specs.
        after_one: maps what a carry depends on to that after one more step.
        larger_than_needed: called where the relation had to be made larger to come to an end.
    """
    turn = 0
    while True:
        new = [reader.joined((a, b), s) for a, b, s in zip(carry, after_one(carry), specs, strict=True)]
        if turn >= EXACT_ROUNDS:
            if turn == EXACT_ROUNDS and larger_than_needed is not None:
                larger_than_needed()
            larger = loosened if turn < 2 * EXACT_ROUNDS + len(carry) else _all
            new = [_larger(a, b, larger) for a, b in zip(carry, new, strict=True)]
        if all(_same(a, b) for a, b in zip(carry, new, strict=True)):
            return carry
        carry, turn = new, turn + 1


def _same(a: Abstract, b: Abstract) -> bool:
    return all(
        (r is None) == (s is None) and (r is None or s is None or r is s or r.same(s))
        for r, s in zip(a.relations, b.relations, strict=True)
    )


def _larger(before: Abstract, after: Abstract, larger: Any) -> Abstract:
    pairs = zip(before.relations, after.relations, strict=True)
    return Abstract(tuple([s if s is None or (r is not None and r.same(s)) else larger(s) for r, s in pairs]))


def _all(relation: Relation) -> Relation:
    return dense(relation.shape, relation.source)


def loosened(relation: Relation) -> Relation:
    """A larger relation out of a finite number: axes are tied as a whole, or not at all."""
    if not relation.closed:
        return _all(relation)
    found = []
    for m in relation.maps:
        extents: list[DimLike] = list(relation.shape)
        columns = []
        for form, n in zip(m.operand, relation.source, strict=True):
            tie = next(
                (a for a, (f, k) in enumerate(zip(m.output, relation.shape, strict=True)) if f == form and k == n), None
            )
            if tie is None or len(form.terms) != 1:
                columns.append(label(len(extents)))
                extents.append(n)
            else:
                columns.append(label(tie))
        rows = tuple([label(a) for a in range(len(relation.shape))])
        found.append(IndexMap(tuple(extents), rows, tuple(columns)))
    return of_maps(relation.shape, relation.source, found)


def _scan(
    reader: Reader, op: Op, ins: Sequence[Abstract], in_specs: tuple[Spec, ...], out_specs: tuple[Spec, ...]
) -> list[Abstract]:
    return _ScanRelations(reader, op, ins, in_specs, out_specs).outputs()


class _ScanRelations:
    """One scan.

    Attributes:
        reader: the reader of the program around it.
        inner: the reader of the body: values have one more axis, for the steps.
        body: the body.
        length: number of steps.
        consts: what the constants depend on.
        init: what the first carry depends on.
        stacked: what the arrays depend on of which each step gets a slice.
        loose: whether a fixpoint was reached only by making relations larger.
    """

    def __init__(
        self,
        reader: Reader,
        op: Op,
        ins: Sequence[Abstract],
        in_specs: tuple[Spec, ...],
        out_specs: tuple[Spec, ...],
    ) -> None:
        self.reader = reader
        self.body: Program = op.params["body"]
        self.length: DimLike = op.params["length"]
        self.reverse: bool = op.params["reverse"]
        first = op.params["consts"]
        self.carries: int = op.params["carry"]
        self.inner = Reader(reader.count, (*reader.lift, self.length), False)
        self.consts = list(ins[:first])
        self.init = [Abstract(x.relations) for x in ins[first : first + self.carries]]
        self.stacked = list(ins[first + self.carries :])
        self.in_specs, self.out_specs = in_specs, out_specs
        self.carry_specs = out_specs[: self.carries]
        self.loose = False

    def outputs(self) -> list[Abstract]:
        """What the last carry and the rows depend on."""
        length = self.length
        if length.__class__ is int and isinstance(length, int) and 0 < length <= MAX_UNROLLED:
            return self.step_by_step(length)
        found = self.by_shifts()
        if found is None:
            found = self.by_fixpoint()
            if self.loose and isinstance(length, int) and length * len(self.body.equations) <= MAX_FOLLOWED:
                found = self.step_by_step(length)
        return found

    def step_by_step(self, length: int) -> list[Abstract]:
        """Exactly: one step after the other."""
        reader, carry = self.reader, self.init
        rows = [reader.nothing] * (len(self.out_specs) - self.carries)
        order = range(length - 1, -1, -1) if self.reverse else range(length)
        slices = self.body.inputs[len(self.body.inputs) - len(self.stacked) :]
        for t in order:
            xs = [self.slice_at(x, s, t) for x, s in zip(self.stacked, slices, strict=True)]
            found = reader.read(self.body, [*self.consts, *carry, *xs])
            carry = found[: self.carries]
            for k, value in enumerate(found[self.carries :]):
                spec, out = self.body.outputs[self.carries + k], self.out_specs[self.carries + k]
                local = reader.local((self.at(t, spec),), out, spec)
                rows[k] = reader.joined((rows[k], reader.mapped(value, local)), out)
        return [*carry, *rows]

    def slice_at(self, x: Abstract, spec: Spec, t: int) -> Abstract:
        m = self.at(t, spec)
        whole = spec.with_(shape=(self.length, *spec.shape))
        found = self.reader.mapped(x, self.reader.local((IndexMap(m.extents, m.operand, m.output),), spec, whole))
        value = x.value
        return found if value is None else Abstract(found.relations, lambda sizes: np.asarray(value(sizes))[t])

    def at(self, t: DimLike, spec: Spec) -> IndexMap:
        """From a stack of values, at one step, to the value."""
        labels = tuple([label(k) for k in range(spec.ndim)])
        return IndexMap(spec.shape, (IndexForm(t), *labels), labels)

    def by_shifts(self) -> list[Abstract] | None:
        """Exactly, where what a step is given depends on few steps before it; else ``None``."""
        kept = {k for k in range(self.carries) if self.body.output_ids[k] == self.body.input_ids[len(self.consts) + k]}
        consts = [self.lifted(x, s) for x, s in zip(self.consts, self.in_specs, strict=False)]
        init = [self.lifted(x, s) for x, s in zip(self.init, self.carry_specs, strict=True)]
        start: DimLike = self.length - 1 if self.reverse else 0
        first = [
            x if k in kept else self.inner.mapped(x, self.moved(s, at=start))
            for k, (x, s) in enumerate(zip(init, self.carry_specs, strict=True))
        ]
        carry = first
        for _ in range(self.carries + 2):
            found = self.inner.read(self.body, [*consts, *carry, *self.slices()])
            new = [
                carry[k] if k in kept else self.inner.joined((first[k], self.inner.mapped(found[k], self.moved(s))), s)
                for k, s in enumerate(self.carry_specs)
            ]
            if all(_same(a, b) for a, b in zip(carry, new, strict=True)):
                last: DimLike = 0 if self.reverse else self.length - 1
                final = [self.dropped(x, s, last) for x, s in zip(found[: self.carries], self.carry_specs, strict=True)]
                initial = [self.init[k] if k in kept else x for k, x in enumerate(final)]
                return [*initial, *found[self.carries :]]
            carry = new
        return None

    def by_fixpoint(self) -> list[Abstract]:
        """A larger relation: what the first carry holds goes anywhere, a slice anywhere at a later step."""
        consts = [self.lifted(x, s) for x, s in zip(self.consts, self.in_specs, strict=False)]
        nowhere = [Abstract((None,) * self.reader.count) for _ in self.stacked]

        def from_first(carry: list[Abstract]) -> list[Abstract]:
            lifted = [self.lifted(x, s) for x, s in zip(carry, self.carry_specs, strict=True)]
            found = self.inner.read(self.body, [*consts, *lifted, *nowhere])
            return [self.dropped(x, s, None) for x, s in zip(found, self.carry_specs, strict=False)]

        def from_slices(carry: list[Abstract]) -> list[Abstract]:
            unused = [Abstract((None,) * self.reader.count) for _ in consts]
            return self.inner.read(self.body, [*unused, *carry, *self.slices()])[: self.carries]

        first = fixpoint(self.reader, self.init, self.carry_specs, from_first, self.loosen)
        # What went into the carry at a step, with the axis of that step.
        later = fixpoint(self.inner, [self.inner.nothing] * self.carries, self.carry_specs, from_slices, self.loosen)
        carry, last = [], []
        for x, y, spec in zip(first, later, self.carry_specs, strict=True):
            before = self.inner.mapped(y, self.after_steps(spec))
            carry.append(self.inner.joined((self.lifted(x, spec), before), spec))
            last.append(self.reader.joined((x, self.dropped(y, spec, None)), spec))
        return [*last, *self.inner.read(self.body, [*consts, *carry, *self.slices()])[self.carries :]]

    def loosen(self) -> None:
        """Take note of a relation that is larger than it need be."""
        self.loose = True

    def slices(self) -> list[Abstract]:
        """The slices at all steps: the stacked arrays themselves."""
        return [Abstract(x.relations) for x in self.stacked]

    def lifted(self, x: Abstract, spec: Spec) -> Abstract:
        """A value that is the same at each step."""
        shape = (*self.reader.lift, *spec.shape)
        loops, count = len(self.reader.lift), len(shape)
        rows = tuple([label(k) for k in (*range(loops), count, *range(loops, count))])
        local = of_maps(
            (*self.reader.lift, self.length, *spec.shape),
            shape,
            [IndexMap((*shape, self.length), rows, tuple([label(k) for k in range(count)]))],
        )
        return Abstract(self.inner.mapped(x, local).relations, x.value)

    def moved(self, spec: Spec, at: DimLike | None = None) -> Relation:
        """From the values at all steps to those at the next one; or to the value at one step, from the same."""
        shape = (*self.inner.lift, *spec.shape)
        loops, count = len(self.reader.lift), len(shape)
        rows, columns = [[label(k) for k in range(count)] for _ in range(2)]
        extents = list(shape)
        if at is not None:
            rows[loops] = columns[loops] = IndexForm(at)
            extents[loops] = 1
        else:
            extents[loops] = self.length - 1
            (columns if self.reverse else rows)[loops] = IndexForm(1, ((loops, 1),))
        return of_maps(shape, shape, [IndexMap(tuple(extents), tuple(rows), tuple(columns))])

    def after_steps(self, spec: Spec) -> Relation:
        """From the values at all steps to those at each later one."""
        shape = (*self.inner.lift, *spec.shape)
        loops, count = len(self.reader.lift), len(shape)
        rows, columns = [[label(k) for k in range(count)] for _ in range(2)]
        columns[loops] = label(count)
        sign = -1 if self.reverse else 1
        later = IndexForm(-1, ((loops, sign), (count, -sign)))
        return of_maps(shape, shape, [IndexMap((*shape, self.length), tuple(rows), tuple(columns), (later,))])

    def dropped(self, x: Abstract, spec: Spec, at: DimLike | None) -> Abstract:
        """The value at one step, or at any of them."""
        shape = (*self.reader.lift, *spec.shape)
        loops, count = len(self.reader.lift), len(shape)
        step = label(count) if at is None else IndexForm(at)
        extents: Shape = (*shape, self.length) if at is None else shape
        columns = [label(k) for k in range(count)]
        columns.insert(loops, step)
        local = of_maps(
            shape,
            (*self.reader.lift, self.length, *spec.shape),
            [IndexMap(extents, tuple([label(k) for k in range(count)]), tuple(columns))],
        )
        return self.reader.mapped(x, local)


STRUCTURED.update({cond: _cond, while_loop: _while, scan: _scan})
