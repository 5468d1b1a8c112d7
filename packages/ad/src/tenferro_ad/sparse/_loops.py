"""Relations of branches and loops: unions, and fixpoints over the carry."""

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
"""Maximum number of steps of a loop that is always unrolled."""

MAX_UNROLLED_EQUATIONS: Final = 2000
"""Maximum number of equations, over all steps, for unrolling a loop without an exact fixpoint."""

EXACT_ROUNDS: Final = 3
"""Number of fixpoint rounds before relations are widened to force convergence."""


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
    """The dependences of a carry after any number of steps.

    Args:
        reader: the reader of the enclosing program.
        carry: dependences before the first step.
        specs: specs of the carry.
        after_one: maps dependences to those after one more step.
        larger_than_needed: called if relations had to be widened to reach a fixpoint.
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
    """Widen a relation to one of finitely many: each axis is tied as a whole, or not at all."""
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
    """The relations of one scan.

    Attributes:
        reader: the reader of the enclosing program.
        inner: the reader of the body, where values have a further axis for the steps.
        body: the body.
        length: number of steps.
        consts: dependences of the constants.
        init: dependences of the initial carry.
        stacked: dependences of the sliced arrays.
        loose: whether relations had to be widened to reach a fixpoint.
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
        """The dependences of the last carry and the rows."""
        length = self.length
        if length.__class__ is int and isinstance(length, int) and 0 < length <= MAX_UNROLLED:
            return self.step_by_step(length)
        found = self.by_shifts()
        if found is None:
            found = self.by_fixpoint()
            if self.loose and isinstance(length, int) and length * len(self.body.equations) <= MAX_UNROLLED_EQUATIONS:
                found = self.step_by_step(length)
        return found

    def step_by_step(self, length: int) -> list[Abstract]:
        """The exact dependences, by unrolling the loop."""
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
        """The map from a stack of values, at one step, to the value."""
        labels = tuple([label(k) for k in range(spec.ndim)])
        return IndexMap(spec.shape, (IndexForm(t), *labels), labels)

    def by_shifts(self) -> list[Abstract] | None:
        """The exact dependences if each step depends only on few previous steps, else ``None``."""
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
        """A superset of the dependences: the initial carry reaches every step, a slice every later step."""
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
        # Dependences on slices, with an axis for the step of the slice.
        later = fixpoint(self.inner, [self.inner.nothing] * self.carries, self.carry_specs, from_slices, self.loosen)
        carry, last = [], []
        for x, y, spec in zip(first, later, self.carry_specs, strict=True):
            before = self.inner.mapped(y, self.after_steps(spec))
            carry.append(self.inner.joined((self.lifted(x, spec), before), spec))
            last.append(self.reader.joined((x, self.dropped(y, spec, None)), spec))
        return [*last, *self.inner.read(self.body, [*consts, *carry, *self.slices()])[self.carries :]]

    def loosen(self) -> None:
        """Record that a relation was widened."""
        self.loose = True

    def slices(self) -> list[Abstract]:
        """The slices at all steps: the stacked arrays themselves."""
        return [Abstract(x.relations) for x in self.stacked]

    def lifted(self, x: Abstract, spec: Spec) -> Abstract:
        """A value that is the same at all steps, with an axis for the steps."""
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
        """The map from values at all steps to those one step later, or, with `at`, the restriction to one step."""
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
        """The map from values at each step to values at all later steps."""
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
