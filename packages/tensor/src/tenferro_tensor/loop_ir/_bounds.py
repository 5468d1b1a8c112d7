"""Proofs that every access of a function is inside its buffer, for all sizes that the function accepts.

An access is certain to be inside if that follows from

- the extents of the loops around it, which are positive where it is executed;
- the law of each register: a counter is below the extent of its loop, ``max(x, 0)`` is not negative, and so on;
- the conditions of the branches around it, such as ``0 <= x`` and ``x < n``;
- the `Requirement`s of the function, which every call checks.

No extent is taken to be positive for another reason: ``remainder(x, n)`` is below ``n`` only where ``n > 0``, and
``min(x, n - 1)`` is -1 where ``n == 0``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from tenferro_tensor import catalog
from tenferro_tensor.loop_ir._affine import INDEX, Affine, Reg
from tenferro_tensor.loop_ir._disjoint import positive, within
from tenferro_tensor.loop_ir._function import LoopFunction, Requirement
from tenferro_tensor.loop_ir._nodes import (
    Call,
    Case,
    For,
    Foreign,
    Let,
    Literal,
    Load,
    Position,
    Statement,
    Store,
    Switch,
    Value,
    While,
)
from tenferro_tensor.loop_ir._text import declared, head
from tenferro_tensor.loop_ir._traversal import Touch, registers, touches
from tenferro_tensor_core import Dim, DimLike, always, dim, dim_max, dim_min

Range = tuple[DimLike | None, DimLike | None]
"""Lower and upper bound; None if there is none."""

Bounded = tuple[DimLike, DimLike]

UNKNOWN: Final[Range] = (None, None)

TRUTH: Final = {catalog.bitwise_and: True, catalog.bitwise_or: False}
"""For which truth of ``x op y`` both operands are known."""

COMPARED: Final = {
    catalog.le: (0, 1, 0), catalog.lt: (0, 1, 1), catalog.ge: (1, 0, 0), catalog.gt: (1, 0, 1),
}  # fmt: skip
"""Each comparison as ``args[low] + distance <= args[high]``."""


@dataclass(frozen=True)
class Unproved:
    """An access that may leave its buffer.

    Its position is `data` plus a number from `low` to the end of the buffer less `room`.

    Attributes:
        touch: the access, at a position in terms of registers that are not indices themselves.
        data: the part of the position that must be kept in bounds; nothing if it depends on counters only.
        low: least value of the rest, in sizes.
        room: distance from the largest value of the rest to the last element, in sizes.
        needs: sizes that are not certain to be at least 0, and must be.
        clamped: whether `data` must be kept between ``-low`` and `room`.
        running: extents that are positive where it is executed.
    """

    touch: Touch
    data: Affine
    low: DimLike
    room: DimLike
    needs: tuple[DimLike, ...]
    clamped: bool
    running: tuple[DimLike, ...]

    def __str__(self) -> str:
        where = f"the positions {self.low} to {math.prod(self.touch.buffer.shape) - 1 - self.room}"
        rest = f", plus {self.data}, which is not kept in bounds" if self.data.terms else ""
        return f"{head(self.touch.statement)} may leave {declared(self.touch.buffer)}: it has {where}{rest}"


def unproved(function: LoopFunction) -> Iterator[Unproved]:
    """Find the accesses that are not certain to be inside their buffers.

    Args:
        function: the function.

    Returns:
        An iterator over the accesses.
    """
    yield from _Prover().block(function.body, _Certain.of((), function.requires))


@dataclass(frozen=True)
class _Certain:
    """What is known where a statement is executed.

    Attributes:
        running: extents that are positive there.
        requires: the requirements of the function.
        sizes: the symbolic sizes in terms of sizes without lower bounds, by name.
        facts: sizes that are not negative.
        ranges: bounds of registers that hold there only, by number.
        answers: whether sizes are certain not to be negative.
        shifted: the facts in terms of `sizes`, once they were asked for.
        inner: scopes where further extents are positive.
    """

    running: tuple[DimLike, ...]
    requires: tuple[Requirement, ...]
    sizes: dict[str, DimLike]
    facts: tuple[DimLike, ...]
    ranges: Mapping[int, Range]
    answers: dict[Dim, bool] = field(default_factory=dict, compare=False)
    shifted: list[DimLike] = field(default_factory=list, compare=False)
    inner: dict[tuple[DimLike, ...], _Certain] = field(default_factory=dict, compare=False)

    @staticmethod
    def of(running: tuple[DimLike, ...], requires: tuple[Requirement, ...]) -> _Certain:
        scope = _Certain(running, requires, _above(running), tuple([e - 1 for e in running if isinstance(e, Dim)]), {})
        left = list(requires)
        while True:  # a fact may make another requirement apply
            new = [r for r in left if all(scope.holds(e - 1) for e in r.when)]
            if not new:
                return scope
            left = [r for r in left if r not in new]
            facts = (*scope.facts, *[r.holds for r in new])
            sizes = _above([*running, *[f + 1 for f in facts]])
            scope = replace(scope, sizes=sizes, facts=facts, answers={}, shifted=[])

    def inside(self, *extents: DimLike) -> _Certain:
        """The scope where further extents are positive."""
        new = tuple([e for e in extents if isinstance(e, Dim) and e not in self.running])
        if not new:
            return self
        found = self.inner.get(new)
        if found is None:
            found = self.inner[new] = _Certain.of((*self.running, *new), self.requires)
        return replace(found, ranges=self.ranges)

    def holds(self, d: DimLike) -> bool:
        """Whether ``d >= 0`` is certain."""
        if isinstance(d, int):
            return d >= 0
        found = self.answers.get(d)
        if found is None:
            found = self.answers[d] = self._proves(d)
        return found

    def _proves(self, d: Dim) -> bool:
        if always(d, ">=", 0):  # of an extent as it stands: that n // 16 >= 0 is harder to see of (n + 1) // 16
            return True
        shifted = within(d, self.sizes)
        if not isinstance(shifted, Dim):
            return shifted >= 0
        if self.sizes and always(shifted, ">=", 0):
            return True
        if not self.shifted:
            self.shifted.extend([within(f, self.sizes) for f in self.facts])
        return any(isinstance(f, Dim) and _cancels(shifted, f) and always(shifted, ">=", f) for f in self.shifted)


def _cancels(d: Dim, fact: Dim) -> bool:
    """Whether a term of a size becomes smaller without the fact; otherwise the fact rarely proves anything."""
    terms = dict(d.terms)
    return any(monomial and terms.get(monomial, 0) * c > 0 for monomial, c in fact.terms)


def _above(extents: Iterable[DimLike]) -> dict[str, DimLike]:
    """Sizes as their least value plus a size, given that some extents are positive: n becomes n + 1 if n > 0.

    Without its least value, each monomial with a positive coefficient is seen to be at least 0.
    """
    found = {}
    for name, d in positive(extents).items():
        assert isinstance(d, Dim)
        found[name] = dim(name) + (d.lower or 0)
    return found


class _Prover:
    """Proves the accesses of one function.

    Attributes:
        made: the statement that defines each register, by number.
        order: position of each register in the order of definition.
        branches: numbers of registers before the branches, and loops with conditions, around the current statement.
    """

    def __init__(self) -> None:
        self.made: dict[int, Statement] = {}
        self.order: dict[int, int] = {}
        self.branches: list[int] = []

    def block(self, statements: Sequence[Statement], scope: _Certain) -> Iterator[Unproved]:
        for s in statements:
            for reg in registers(s):
                self.made[reg.number] = s
                self.order[reg.number] = len(self.order)
            match s:
                case Load() | Store() | Call() | Foreign():
                    for t in touches([s]):
                        yield from self.access(t, scope)
                case For(extent=extent, body=body):
                    if not scope.holds(-extent):
                        yield from self.block(body, scope.inside(extent))
                case While(test=test, body=body, condition=condition):
                    self.branches.append(len(self.order))
                    yield from self.block(test, scope)
                    yield from self.block(body, self.assuming(condition, True, scope))
                    self.branches.pop()
                case Switch(index=index, cases=cases):
                    yield from self.switch(index, cases, scope)

    def switch(self, index: Value, cases: Sequence[Case], scope: _Certain) -> Iterator[Unproved]:
        self.branches.append(len(self.order))
        for k, case in enumerate(cases):
            if isinstance(index, Literal) and k != min(max(int(index.value), 0), len(cases) - 1):  # type: ignore[arg-type]
                continue
            known = scope
            if len(cases) == 2:
                known = self.assuming(self.condition(index), k == 1, scope)
            yield from self.block(case.body, known)
        self.branches.pop()

    def condition(self, index: Value) -> Value:
        """The boolean that an index was converted from."""
        made = None if isinstance(index, Literal) else self.made.get(index.number)
        if isinstance(made, Let) and made.op.primitive is catalog.convert and made.args[0].dtype.kind == "b":
            return made.args[0]
        return index

    def assuming(self, condition: Value, truth: bool, scope: _Certain) -> _Certain:
        """The scope where a condition is known."""
        made = None if isinstance(condition, Literal) else self.made.get(condition.number)
        if not isinstance(made, Let):
            return scope
        p = made.op.primitive
        if p is catalog.bitwise_not:
            return self.assuming(made.args[0], not truth, scope)
        if TRUTH.get(p) is truth:
            for a in made.args:
                scope = self.assuming(a, truth, scope)
            return scope
        if p in COMPARED and all(a.dtype == INDEX for a in made.args):
            low, high, distance = COMPARED[p]
            if not truth:
                low, high, distance = high, low, 1 - distance
            return self.below(made.args[low], made.args[high], distance, scope)
        return scope

    def below(self, low: Value, high: Value, distance: int, scope: _Certain) -> _Certain:
        """The scope where ``low + distance <= high``."""
        x, y = self.expanded(low), self.expanded(high)
        ranges = dict(scope.ranges)
        if _single(x):
            reg, most = x.terms[0][0], self.range_of(y, scope)[1]
            if most is not None:
                was = self.register(reg, scope)
                ranges[reg.number] = was[0], self.least(most - distance - x.constant, was[1], scope)
        if _single(y):
            reg, least = y.terms[0][0], self.range_of(x, scope)[0]
            if least is not None:
                was = self.register(reg, scope)
                ranges[reg.number] = self.most(least + distance - y.constant, was[0], scope), was[1]
        return replace(scope, ranges=ranges)

    def least(self, new: DimLike, old: DimLike | None, scope: _Certain) -> DimLike:
        return new if old is None or not scope.holds(new - old) else old

    def most(self, new: DimLike, old: DimLike | None, scope: _Certain) -> DimLike:
        return new if old is None or not scope.holds(old - new) else old

    # -- accesses

    def access(self, t: Touch, scope: _Certain) -> Iterator[Unproved]:
        extents = [extent for extent, _ in t.axes]
        if any(scope.holds(-e) for e in extents):
            return
        scope = scope.inside(*extents)
        at, count = self.expanded(t.at), math.prod(t.buffer.shape)
        found, unknown = self.split(at, scope)
        if not (unknown.terms or t.axes or scope.holds(count - 1 - found[1])):
            highest = [self.split(other, scope) for other in self.above(at, scope)]
            highs = [high for (_, high), rest in highest if not rest.terms and scope.holds(count - 1 - high)]
            found = found[0], next(iter(highs), found[1])
        low, high = self.along(found, t, scope)
        needs = tuple([d for d in (low, count - 1 - high) if not scope.holds(d)])
        if not (unknown.terms or needs):
            return
        t = replace(t, at=at)
        computed = any(not self.is_counter(reg) for reg, _ in at.terms)
        if not (computed or any(isinstance(d, int) for d in needs)):  # at other sizes it is inside
            yield Unproved(t, Affine(), low, count - 1 - high, needs, False, scope.running)
            return
        data = at - at.constant - self.repeated(at)
        low, high = self.along(self.split(at - data, scope)[0], t, scope)
        room = count - 1 - high
        yield Unproved(t, data, low, room, () if scope.holds(low + room) else (low + room,), True, scope.running)

    def along(self, found: Bounded, t: Touch, scope: _Certain) -> Bounded:
        """Bounds of the positions of a view from those of its first element."""
        low, high = found
        for extent, by in t.axes:
            least, most = _times((0, extent - 1), by, scope)
            if least is None or most is None:  # a stride of unknown sign
                least, most = dim_min(0, (extent - 1) * by), dim_max(0, (extent - 1) * by)
            low, high = low + least, high + most
        return low, high

    def is_counter(self, reg: Reg) -> bool:
        made = self.made.get(reg.number)
        return isinstance(made, For) and made.index.number == reg.number

    def repeated(self, at: Affine) -> Affine:
        """The terms of an index that take all their values while the others keep theirs, so that these can be clamped.

        They are the counters of loops that begin after the others are computed, without a branch in between.
        """
        born = max([self.order[reg.number] for reg, _ in at.terms if not self.is_counter(reg)], default=len(self.order))
        if any(branch > born for branch in self.branches):
            return Affine()
        return Affine(0, tuple([(reg, by) for reg, by in at.terms if self.order[reg.number] > born]))

    def split(self, at: Affine, scope: _Certain) -> tuple[Bounded, Affine]:
        """Bounds of the terms of an index that have any, and the sum of the others."""
        low, high, data = at.constant, at.constant, Affine()
        for reg, by in at.terms:
            least, most = _times(self.register(reg, scope), by, scope)
            if least is None or most is None:
                data = data + Affine.of(reg) * by
            else:
                low, high = low + least, high + most
        return (low, high), data

    def above(self, at: Affine, scope: _Certain) -> Iterator[Affine]:
        """Indices at least as large: a minimum is replaced by an operand, which may cancel other terms."""
        for reg, by in at.terms:
            made = self.made.get(reg.number)
            if isinstance(made, Let) and made.op.primitive is catalog.minimum and scope.holds(by):
                yield from [self.expanded(at - Affine.of(reg) * by + self.expanded(a) * by) for a in made.args]

    # -- registers

    def expanded(self, value: Affine | Value) -> Affine:
        """An index in terms of registers that are not themselves indices."""
        index = value if isinstance(value, Affine) else _index(value)
        for reg, by in index.terms:
            made = self.made.get(reg.number)
            if isinstance(made, Position):
                return self.expanded(index - Affine.of(reg) * by + made.index * by)
        return index

    def range_of(self, index: Affine, scope: _Certain) -> Range:
        found: Range = (index.constant, index.constant)
        for reg, by in index.terms:
            found = _plus(found, _times(self.register(reg, scope), by, scope))
        return found

    def register(self, reg: Reg, scope: _Certain) -> Range:
        """Bounds of a register."""
        known = scope.ranges.get(reg.number)
        if known is not None:
            return known
        made = self.made.get(reg.number)
        match made:
            case For(index=index, extent=extent) if index.number == reg.number:
                return 0, extent - 1
            case While(index=index, most=most) if index.number == reg.number:
                return 0, None if most is None else most - 1
            case Let():
                return self.result(made, scope)
            case Switch(results=results, cases=cases):
                values = [case.values[results.index(reg)] for case in cases]
                return self.union([self.value(v, scope) for v in values], scope)
        return UNKNOWN

    def value(self, value: Value, scope: _Certain) -> Range:
        return self.range_of(self.expanded(value), scope) if value.dtype.kind in "iu" else UNKNOWN

    def union(self, ranges: Sequence[Range], scope: _Certain) -> Range:
        (low, high), *rest = ranges
        for least, most in rest:
            low = None if low is None or least is None else self.smaller(low, least, scope)
            high = None if high is None or most is None else self.larger(high, most, scope)
        return low, high

    def smaller(self, a: DimLike, b: DimLike, scope: _Certain) -> DimLike:
        return a if scope.holds(b - a) else b if scope.holds(a - b) else dim_min(a, b)

    def larger(self, a: DimLike, b: DimLike, scope: _Certain) -> DimLike:
        return a if scope.holds(a - b) else b if scope.holds(b - a) else dim_max(a, b)

    def result(self, s: Let, scope: _Certain) -> Range:
        """Bounds of the result of an op on integers."""
        p = s.op.primitive
        if p is catalog.select:
            return self.union([self.value(v, scope) for v in s.args[1:]], scope)
        if p is catalog.convert:
            kind = s.args[0].dtype.kind
            if kind == "b":
                return 0, 1
            found = self.value(s.args[0], scope)
            return found if s.result.dtype == INDEX else UNKNOWN
        if s.result.dtype != INDEX:
            return UNKNOWN
        ranges = [self.value(a, scope) for a in s.args]
        if p is catalog.clamp:
            return self.lower(self.upper(ranges[0], ranges[1], scope), ranges[2], scope)
        if p in (catalog.maximum, catalog.minimum):
            return (self.upper if p is catalog.maximum else self.lower)(ranges[0], ranges[1], scope)
        if p is catalog.remainder:
            least, most = ranges[1]
            if least is not None and most is not None and scope.holds(least - 1):
                return 0, most - 1
        return UNKNOWN

    def upper(self, x: Range, y: Range, scope: _Certain) -> Range:
        """Bounds of the maximum of two numbers."""
        (a, b), (c, d) = x, y
        # Both lower ones are bounds, and a product with a number is easier to compare.
        numbers = [n for n in (a, c) if isinstance(n, int)]
        low = max(numbers) if numbers else c if a is None else a if c is None else self.larger(a, c, scope)
        return low, None if b is None or d is None else self.larger(b, d, scope)

    def lower(self, x: Range, y: Range, scope: _Certain) -> Range:
        """Bounds of the minimum of two numbers."""
        (a, b), (c, d) = x, y
        high = d if b is None else b if d is None else self.smaller(b, d, scope)
        return None if a is None or c is None else self.smaller(a, c, scope), high


def _index(value: Value) -> Affine:
    return Affine(int(value.value)) if isinstance(value, Literal) else Affine.of(value)  # type: ignore[arg-type]


def _single(index: Affine) -> bool:
    """Whether an index is one register plus a constant."""
    return len(index.terms) == 1 and index.terms[0][1].__class__ is int and index.terms[0][1] == 1


def _plus(a: Range, b: Range) -> Range:
    return tuple([None if x is None or y is None else x + y for x, y in zip(a, b, strict=True)])  # type: ignore[return-value]


def _times(a: Range, by: DimLike, scope: _Certain) -> Range:
    low, high = a
    if not scope.holds(by):
        if not scope.holds(-by):
            return UNKNOWN
        low, high = high, low
    return None if low is None else low * by, None if high is None else high * by
