"""Composition of two index maps, by elimination of labels from equations between affine forms.

Output ``o`` depends on operand ``i`` if some index ``m`` of the intermediate value is in both maps. So the labels of
both maps are free except for one equation per axis of that value. Each equation is solved for a label with step 1 or
-1; the label's range becomes a range of another label, or a condition of the result. Sizes are assumed positive.
"""

from __future__ import annotations

from collections.abc import Hashable
from math import gcd
from typing import Final

from tenferro_ad.sparse._linear_forms import (
    always_negative,
    bounds,
    is_zero,
    never_negative,
    plus,
    renumbered,
    replaced,
)
from tenferro_runtime.extension import IndexForm, IndexMap
from tenferro_tensor_core import DimLike, decide, dim_max, dim_min, floordiv

EMPTY: Final = "empty"
"""The result without any pair."""

Outcome = bool | str
"""Whether an equation is solved, or `EMPTY`."""


def composed(outer: IndexMap, inner: IndexMap) -> IndexMap | str | None:
    """The map from the outputs of one map to the operands of the other; `EMPTY`, or ``None`` if it has no such form."""
    count = len(outer.extents)
    shift = {k: k + count for k in range(len(inner.extents))}
    system = _System(
        {**dict(enumerate(outer.extents)), **{k + count: n for k, n in enumerate(inner.extents)}},
        list(outer.output),
        [renumbered(form, shift) for form in inner.operand],
        [*outer.where, *[renumbered(form, shift) for form in inner.where]],
        [plus(a, renumbered(b, shift), -1) for a, b in zip(outer.operand, inner.output, strict=True)],
    )
    return system.solved()


def simplified(given: IndexMap) -> IndexMap | str:
    """The map in canonical form, or `EMPTY`."""
    system = _System(dict(enumerate(given.extents)), list(given.output), list(given.operand), list(given.where), [])
    found = system.solved()
    assert found is not None, "there is no equation to fail at"
    return found


class _System:
    """Labels with their ranges, and forms over them.

    Attributes:
        extents: number of values of each label.
        rows: index of the output.
        columns: index of the operand.
        where: forms that are not negative.
        equations: forms that are zero.
    """

    def __init__(
        self,
        extents: dict[int, DimLike],
        rows: list[IndexForm],
        columns: list[IndexForm],
        where: list[IndexForm],
        equations: list[IndexForm],
    ) -> None:
        self.extents, self.rows, self.columns = extents, rows, columns
        self.where, self.equations = where, equations

    def solved(self) -> IndexMap | str | None:
        """Solve all equations: the resulting map."""
        for k, n in list(self.extents.items()):
            if n.__class__ is int and n == 1:
                self.substitute(k, IndexForm(0))
        stuck = 0
        while self.equations:
            equation = self.equations.pop(0)
            outcome = self.solve(equation)
            if outcome is EMPTY:
                return EMPTY
            stuck = 0 if outcome else stuck + 1
            if not outcome:
                self.equations.append(equation)
                if stuck == len(self.equations):
                    return None
        return self.result()

    def substitute(self, k: int, by: IndexForm) -> None:
        """Replace a label by a form of other labels everywhere."""
        del self.extents[k]
        self.rewrite(k, by)

    def rewrite(self, k: int, by: IndexForm) -> None:
        for forms in (self.rows, self.columns, self.where, self.equations):
            forms[:] = [replaced(form, k, by) for form in forms]

    def solve(self, equation: IndexForm) -> Outcome:
        """Solve ``equation == 0`` for a label."""
        if not equation.terms:
            known = decide(equation.offset, "==", 0)
            if known is None:
                self.where += [equation, plus(IndexForm(0), equation, -1)]
                return True
            return True if known else EMPTY
        divided = _divided(equation)
        if divided is EMPTY or isinstance(divided, str):
            return EMPTY
        parts = self.split(divided)
        if parts is not None:
            self.equations[:0] = parts
            return True
        if len(divided.terms) == 1:
            return self.solve_single(divided)
        # Eliminate labels of the inner map first, so that the result is in labels of the output.
        for k, step in sorted(divided.terms, reverse=True):
            if step.__class__ is int and step in (1, -1):
                rest = IndexForm(divided.offset, tuple([t for t in divided.terms if t[0] != k]))
                return self.eliminate(k, plus(IndexForm(0), rest, -step))
        return False

    def split(self, equation: IndexForm) -> list[IndexForm] | None:
        """Split an equation like the digits of a mixed-radix number: if ``big * radix + small`` is 0 and `small` is
        always between ``-radix`` and ``radix``, both are 0."""
        for radix in {step: None for _, step in equation.terms}:
            if decide(radix, "<", 0) is not False:
                continue
            big = [(k, s, _quotient(s, radix)) for k, s in equation.terms]
            high = tuple([(k, q) for k, _, q in big if q is not None])
            low = tuple([(k, s) for k, s, q in big if q is None])
            if not low or not high:
                continue
            whole = floordiv(equation.offset, radix)
            small = IndexForm(equation.offset - whole * radix, low)
            known = bounds(small, self.extents)
            if known is not None and decide(known[0], ">", -radix) and decide(known[1], "<", radix):
                return [small, IndexForm(whole, high)]
        return None

    def solve_single(self, equation: IndexForm) -> Outcome:
        """Solve an equation for its only label."""
        ((k, step),) = equation.terms
        value = 0 if is_zero(equation.offset) else _quotient(-equation.offset, step)
        if value is None:
            integers = step.__class__ is int and equation.offset.__class__ is int
            return EMPTY if integers else False
        return self.eliminate(k, IndexForm(value))

    def eliminate(self, k: int, by: IndexForm) -> Outcome:
        """Replace a label by a form, which must stay in the range of the label."""
        for condition in (by, plus(IndexForm(self.extents[k] - 1), by, -1)):
            if always_negative(condition, self.extents):
                return EMPTY
            if not never_negative(condition, self.extents):
                self.where.append(condition)
        self.substitute(k, by)
        return self.narrow()

    def narrow(self) -> Outcome:
        """Turn conditions on single labels into ranges of these."""
        changed = True
        while changed:
            changed = False
            for i, form in enumerate(self.where):
                if always_negative(form, self.extents):
                    return EMPTY
                if never_negative(form, self.extents):
                    del self.where[i]
                    changed = True
                    break
                if len(form.terms) == 1 and form.terms[0][1].__class__ is int:
                    del self.where[i]
                    self.clip(form)
                    changed = True
                    break
        return True

    def clip(self, form: IndexForm) -> None:
        """Keep the values of a label for which ``offset + step * label`` is not negative."""
        ((k, step),) = form.terms
        n = self.extents[k]
        assert isinstance(step, int)
        if step < 0:
            self.extents[k] = dim_max(dim_min(n, floordiv(form.offset, -step) + 1), 0)
            return
        first = dim_max(floordiv(step - 1 - form.offset, step), 0)
        self.extents[k] = dim_max(n - first, 0)
        self.rewrite(k, IndexForm(first, ((k, 1),)))

    def result(self) -> IndexMap | str:
        """The map in canonical form: only used labels, in order of appearance, each first with a positive step."""
        if self.narrow() is EMPTY or any(decide(n, "<=", 0) for n in self.extents.values()):
            return EMPTY
        used = dict.fromkeys([k for form in (*self.rows, *self.columns) for k, _ in form.terms])
        for k in [k for k in self.extents if k not in used]:
            conditions = [form for form in self.where if k in dict(form.terms)]
            for form in conditions:  # some value of the label satisfies it: dropping it may enlarge the relation
                self.where.remove(form)
            if decide(self.extents[k], ">=", 1):
                del self.extents[k]
            else:
                self.extents[k] = dim_min(self.extents[k], 1)
                used[k] = None
        for k in used:
            first = next((dict(f.terms)[k] for f in (*self.rows, *self.columns) if k in dict(f.terms)), 1)
            if decide(first, "<", 0):
                self.rewrite(k, IndexForm(self.extents[k] - 1, ((k, -1),)))
        numbers = {k: i for i, k in enumerate(used)}
        rows, columns, where = (
            tuple([renumbered(form, numbers) for form in forms]) for forms in (self.rows, self.columns, self.where)
        )
        return IndexMap(tuple([self.extents[k] for k in used]), rows, columns, tuple(dict.fromkeys(where)))


def _quotient(a: DimLike, b: DimLike) -> DimLike | None:
    """``a / b`` if that is an integer or polynomial, else ``None``."""
    if is_zero(b):
        return None
    q = floordiv(a, b)
    return q if q * b == a else None


def _divided(equation: IndexForm) -> IndexForm | str:
    """The equation divided by the common factor of its steps; `EMPTY` if that does not divide the offset."""
    steps = [s for _, s in equation.terms]
    if not all(s.__class__ is int for s in steps):
        return equation
    factor = gcd(*[s for s in steps if isinstance(s, int)])
    offset = _quotient(equation.offset, factor)
    if offset is None:
        return EMPTY if equation.offset.__class__ is int else equation
    return IndexForm(offset, tuple([(k, s // factor) for k, s in equation.terms]))


def kind(m: IndexMap) -> Hashable:
    """What `m` has in common with every map that contains it or that it contains: steps, and offsets up to a shift.

    A label with step 1 or -1 in some form is shifted so that this form has the offset 0.
    """
    shifts: dict[int, DimLike] = {}
    offsets: list[DimLike | None] = []
    forms = (*m.output, *m.operand)
    for form in forms:
        if len(form.terms) == 1:
            ((k, step),) = form.terms
            if step.__class__ is int and step in (1, -1):
                shifts.setdefault(k, form.offset * step)
        known = all(k in shifts for k, _ in form.terms)
        offsets.append(form.offset - sum([step * shifts[k] for k, step in form.terms]) if known else None)
    return len(m.extents), tuple([form.terms for form in forms]), tuple(offsets)


def contains(a: IndexMap, b: IndexMap) -> bool:
    """Whether all pairs of `b` are known to be pairs of `a`: equal steps, and label ranges within those of `a`."""
    if len(a.extents) != len(b.extents) or (a.where and a.where != b.where):
        return False
    shifts: dict[int, DimLike] = {}
    left = []
    for f, g in zip((*a.output, *a.operand), (*b.output, *b.operand), strict=True):
        if f.terms != g.terms:
            return False
        gap = g.offset - f.offset
        if len(f.terms) == 1:
            ((k, step),) = f.terms
            shift = _quotient(gap, step)
            if shift is None or shifts.setdefault(k, shift) != shift:
                return False
        else:
            left.append((f, gap))
    for f, gap in left:
        total: DimLike = 0
        for k, step in f.terms:
            total = total + step * shifts.setdefault(k, 0)
        if total != gap:
            return False
    if a.where and any(not is_zero(s) for s in shifts.values()):
        return False
    return all(
        decide(s, ">=", 0) is True and decide(s + b.extents[k], "<=", a.extents[k]) is True
        for k, s in ((k, shifts.get(k, 0)) for k in range(len(a.extents)))
    )
