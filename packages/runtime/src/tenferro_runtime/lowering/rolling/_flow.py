"""Dataflow through repeating groups of equations: carried values, invariant values, and values that differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from tenferro_runtime.ir._program import Equation, Literal, Operand, Program
from tenferro_runtime.lowering.rolling._periods import Stretch
from tenferro_tensor import catalog
from tenferro_tensor_core import key_of

MAX_DEPTH: Final = 4
"""Largest distance, in groups, at which a value may be read."""


class SameGroup(NamedTuple):
    """Result `result` of equation `equation` of the same group."""

    equation: int
    result: int


class EarlierGroup(NamedTuple):
    """Result `result` of equation `equation` of the group `depth` groups earlier."""

    equation: int
    result: int
    depth: int


class SameValue(NamedTuple):
    """The same value in all groups."""

    operand: Operand


class ManyValues(NamedTuple):
    """A value from before the loop, or a number, for each group of the run."""

    operands: list[Operand]


Slot = SameGroup | EarlierGroup | SameValue | ManyValues
"""The origin of an operand."""


@dataclass
class Flow:
    """A loop found in a program.

    Attributes:
        start: position of the first equation of group 0 of the run.
        period: number of equations of a group.
        first: first group of the loop.
        end: group after the last one of the loop.
        slots: origins of the operands of each equation of a group.
        offsets: for equations with a position in their metadata, that position in each group of the run.
    """

    start: int
    period: int
    first: int
    end: int
    slots: list[tuple[Slot, ...]] = field(default_factory=list)
    offsets: dict[int, list[tuple[int, ...]]] = field(default_factory=dict)

    @property
    def begins(self) -> int:
        """Position of the first equation of the loop."""
        return self.at(self.first)

    @property
    def ends(self) -> int:
        """Position after the last equation of the loop."""
        return self.at(self.end)

    def at(self, group: int, equation: int = 0) -> int:
        """Position of an equation of a group."""
        return self.start + group * self.period + equation


class Listing:
    """A program with the positions where variables are defined and read."""

    def __init__(self, program: Program) -> None:
        self.program, self.equations = program, program.equations
        self.made: dict[int, int] = {}
        self.place: dict[int, int] = {}  # among the results of its equation
        self.last_use: dict[int, int] = {}
        for i, eq in enumerate(program.equations):
            for k, v in enumerate(eq.results):
                self.made[v], self.place[v] = i, k
            self.last_use.update(dict.fromkeys(eq.variables, i))
        self.last_use.update(dict.fromkeys(program.output_ids, len(program.equations)))

    def position(self, v: Operand) -> int:
        """Position where a variable is defined; -1 for inputs, constants and numbers."""
        return self.made.get(v, -1)  # type: ignore[arg-type]


def offset_of(eq: Equation) -> tuple[int, ...] | None:
    """The position in the metadata of a slice, an update or a pad, if it is known."""
    params = eq.op.params
    if eq.op.primitive in (catalog.slice_, catalog.update_slice):
        return tuple([n if n.__class__ is int else -1 for n in params["start"]])
    if eq.op.primitive is catalog.pad:
        return params["low"]  # type: ignore[no-any-return]
    return None


def phase_of(listing: Listing, run: Stretch) -> int:
    """The phase at which groups start, chosen so that the fewest values are carried between groups."""
    p = run.period
    begin = run.start + (run.length // p // 2) * p
    reach: dict[int, int] = {}  # distance to the last reader, by position of the definition within the period
    for j in range(begin, begin + p):
        for v in listing.equations[j].variables:
            made = listing.position(v)
            if j - made <= MAX_DEPTH * p and made >= run.start:
                reach[made % p] = max(reach.get(made % p, 0), j - made)
    crossing = [0] * (2 * p + 1)
    for made, distance in reach.items():
        if distance >= p:
            continue
        crossing[made + 1] += 1
        crossing[made + distance + 1] -= 1
    counts, now = [0] * p, 0
    for b in range(2 * p):
        now += crossing[b]
        counts[b % p] += now
    phases = [(counts[(run.start + k) % p], k) for k in range(min(p, run.length % p + 1))]
    spare = run.length // p > 3  # a better start may cost a whole group
    phases += [(counts[(run.start + k) % p], k) for k in range(len(phases), p)] if spare else []
    return min(phases)[1]


def flow_of(listing: Listing, run: Stretch) -> Flow | None:
    """The longest loop around the middle of the run, or ``None`` if the dataflow is not that of a loop."""
    start = run.start + phase_of(listing, run)
    p = run.period
    groups = (run.start + run.length - start) // p
    if groups < 3:
        return None
    middle = (groups - 1) // 2
    flow = Flow(start, p, 0, groups)
    bounds = _Bounds(listing, flow, middle)
    for q in range(p):
        equations = listing.equations[start + q : start + groups * p : p]
        offset = offset_of(equations[0])
        if offset is not None:
            offsets = [offset_of(eq) for eq in equations]
            if any(o != offset for o in offsets):
                flow.offsets[q] = offsets  # type: ignore[assignment]
        slots = []
        for operands in zip(*[eq.operands for eq in equations], strict=True):
            slots.append(_slot(listing, flow, operands, middle, bounds))
        flow.slots.append(tuple(slots))
    return bounds.settled()


def _slot(listing: Listing, flow: Flow, operands: Sequence[Operand], middle: int, bounds: _Bounds) -> Slot:
    here, following = operands[middle], operands[middle + 1]
    if isinstance(here, Literal):
        key = key_of(here.value)
        if all(key_of(v.value) == key for v in operands):  # type: ignore[union-attr]
            return SameValue(here)
        return ManyValues(list(operands))
    made, base, p = listing.made, flow.at(middle), flow.period
    distance = listing.position(here) - base
    place = listing.place.get(here, 0)
    if -MAX_DEPTH * p <= distance and listing.position(here) >= 0:
        regular = made.get(following, -1) - base - p == distance  # type: ignore[arg-type]
        if regular and listing.place.get(following) == place:  # type: ignore[arg-type]
            wrong = [
                g for g, v in enumerate(operands)
                if made.get(v, -1) - flow.at(g) != distance or listing.place.get(v) != place  # type: ignore[arg-type]
            ]  # fmt: skip
            depth = -(distance // p)
            bounds.require(operands, wrong, depth)
            return EarlierGroup(distance % p, place, depth) if depth else SameGroup(distance, place)
    if here == following:
        bounds.require(operands, [g for g, v in enumerate(operands) if v != here], 0)
        bounds.after(listing.position(here))
        return SameValue(here)
    bounds.require(operands, [g for g, v in enumerate(operands) if listing.position(v) >= flow.start], 0)
    return ManyValues(list(operands))


class _Bounds:
    """The range of groups in which all operands have the origins found in the middle."""

    def __init__(self, listing: Listing, flow: Flow, middle: int) -> None:
        self.listing, self.flow, self.middle = listing, flow, middle
        self.carried: list[tuple[Sequence[Operand], list[int], int]] = []
        self.possible = True

    def require(self, operands: Sequence[Operand], wrong: list[int], depth: int) -> None:
        """Exclude groups that differ; in the first groups, a carry may be any value from before the loop."""
        flow, middle = self.flow, self.middle
        if not wrong:
            return
        for g in wrong:
            if g > middle:
                flow.end = min(flow.end, g)
                break
            if g == middle:
                self.possible = False
        early = [g for g in wrong if g < middle]
        if early:
            flow.first = max(flow.first, early[-1] + 1 - depth)
            if depth:
                self.carried.append((operands, early, depth))

    def after(self, position: int) -> None:
        """Exclude the groups that start before a position."""
        flow = self.flow
        if position >= flow.start:
            flow.first = max(flow.first, (position - flow.start) // flow.period + 1)

    def settled(self) -> Flow | None:
        """The loop, or ``None`` if too few groups are left."""
        flow = self.flow
        changed = self.possible
        while changed:
            changed = False
            for operands, wrong, depth in self.carried:
                for g in wrong:
                    if g < flow.first:
                        continue
                    if g >= flow.first + depth or self.listing.position(operands[g]) >= flow.begins:
                        flow.first, changed = g + 1, True
        return flow if self.possible and flow.first <= self.middle < flow.end else None
