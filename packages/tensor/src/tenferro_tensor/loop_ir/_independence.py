"""The law of `Order.ANY`: no iteration reads or writes memory that another one writes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass
from math import gcd

from tenferro_tensor.loop_ir._affine import Affine, Reg
from tenferro_tensor.loop_ir._disjoint import Digit, never_multiple, never_zero, positive, within
from tenferro_tensor.loop_ir._nodes import For, Let, Position, Statement
from tenferro_tensor.loop_ir._traversal import Touch, everything, registers, touches
from tenferro_tensor_core import DimLike, decide


@dataclass(frozen=True, slots=True)
class Bounds:
    """Facts about the registers of a function.

    Attributes:
        extents: extents of the indices of counted loops, by number.
        positions: definitions of the results of `Position`, and of clamped positions, by number.
    """

    extents: Mapping[int, DimLike]
    positions: Mapping[int, Affine]

    @staticmethod
    def of(statements: Iterable[Statement], clamps: Set[int] = frozenset()) -> Bounds:
        """Collect the facts of statements.

        Args:
            statements: all statements of a function.
            clamps: registers that keep positions inside their buffers.

        Returns:
            The facts.
        """
        found = list(statements)
        positions = {s.result.number: s.index for s in found if isinstance(s, Position)}
        for s in found:
            if isinstance(s, Let) and s.result.number in clamps:
                assert isinstance(s.args[0], Reg)
                positions[s.result.number] = Affine.of(s.args[0])
        return Bounds({s.index.number: s.extent for s in found if isinstance(s, For)}, positions)

    def expanded(self, index: Affine) -> Affine:
        """Substitute the definitions of `Position` registers in an index.

        Args:
            index: the index.

        Returns:
            The index.
        """
        for reg, by in index.terms:
            behind = self.positions.get(reg.number)
            if behind is not None:
                return self.expanded(index - Affine.of(reg) * by + behind * by)
        return index


def dependent(loop: For, bounds: Bounds) -> tuple[Touch, Touch] | None:
    """Find two accesses that may conflict between iterations; the first is a write.

    Args:
        loop: the loop.
        bounds: facts about registers.

    Returns:
        The accesses; None if no conflict is possible.
    """
    if decide(loop.extent, "<=", 1):
        return None
    inside = {reg.number for s in everything(loop.body) for reg in registers(s)}
    by_buffer: dict[int, dict[tuple[Affine, object, bool], Touch]] = defaultdict(dict)
    for t in touches(loop.body):
        by_buffer[t.buffer.number].setdefault((bounds.expanded(t.at), t.axes, t.writes), t)
    for met in by_buffer.values():
        for (at, _, writes), first in met.items():
            for (other, _, _), second in met.items() if writes else ():
                if not _Pair(loop.index, inside, bounds, (at, first), (other, second)).apart(loop.extent):
                    return first, second
    return None


def overlapping(a: Touch, b: Touch, bounds: Bounds) -> bool:
    """Whether two accesses may overlap when every register has the same value in both."""
    if a.buffer.number != b.buffer.number:
        return False
    pair = _Pair(None, set(), bounds, (bounds.expanded(a.at), a), (bounds.expanded(b.at), b))
    return not pair.apart(1)


class _Pair:
    """Two accesses to one buffer, in different iterations of a loop.

    Args:
        index: index of the loop.
        inside: numbers of registers that differ between iterations.
        bounds: facts about registers.
        first: position and access.
        second: position and access.
    """

    def __init__(
        self,
        index: Reg | None,
        inside: set[int],
        bounds: Bounds,
        first: tuple[Affine, Touch],
        second: tuple[Affine, Touch],
    ) -> None:
        self.index, self.inside, self.bounds = index, inside, bounds
        self.first, self.second = first, second

    def apart(self, extent: DimLike) -> bool:
        """Whether the accesses provably never overlap; `extent` is that of the loop."""
        boxes = [self._box(at, touch) for at, touch in (self.first, self.second)]
        if boxes[0] is None or boxes[1] is None:
            return False
        at, other = self.first[0], self.second[0]
        # At an access, the loops around it have an iteration, and the buffer is not empty.
        running = [e for box in boxes for _, e in box or ()]
        extents = self.bounds.extents
        running += [extents[reg.number] for reg, _ in (*at.terms, *other.terms) if reg.number in extents]
        sizes = positive([extent, *running, *self.first[1].buffer.shape])
        digits = self._digits(boxes[0], boxes[1], sizes)
        unknown = 0
        for reg, by in self._fixed(at - other):
            if reg.number in extents:
                digits.append(Digit.of(within(by, sizes), 0, within(extents[reg.number], sizes) - 1))
            elif isinstance(by, int):
                unknown = gcd(unknown, by)
            else:
                return False
        chosen = None
        if self.index is not None:
            step, by = at.coefficient(self.index), other.coefficient(self.index)
            most = within(extent, sizes) - 1
            if step == by:
                chosen = Digit.of(within(step, sizes), -most, most)
                if chosen is None:
                    return False
            else:
                digits += [Digit.of(within(step, sizes), 0, most), Digit.of(within(-by, sizes), 0, most)]
        known = [d for d in digits if d is not None]
        constant = within(at.constant - other.constant, sizes)
        if len(known) < len(digits):
            return False
        if unknown:
            return chosen is not None and never_multiple(unknown, constant, known, chosen)
        return never_zero(constant, known, chosen)

    def _box(self, at: Affine, touch: Touch) -> list[tuple[DimLike, DimLike]] | None:
        """Strides and extents of the registers that vary independently in an access; None if a computed index
        varies as well.
        """
        box = [(by, extent) for extent, by in touch.axes]
        for reg, by in at.terms:
            if reg.number in self.inside:
                if reg.number not in self.bounds.extents:
                    return None
                box.append((by, self.bounds.extents[reg.number]))
        return box

    def _digits(
        self, first: list[tuple[DimLike, DimLike]], second: list[tuple[DimLike, DimLike]], sizes: dict[str, DimLike]
    ) -> list[Digit | None]:
        """The digits of the difference of the accesses; terms with equal strides are combined."""
        digits = []
        left = [(within(by, sizes), within(extent, sizes)) for by, extent in second]
        for by, extent in first:
            step, most = within(by, sizes), within(extent, sizes) - 1
            partner = next((k for k, (other, _) in enumerate(left) if other == step), None)
            digits.append(Digit.of(step, 0 if partner is None else 1 - left.pop(partner)[1], most))
        return digits + [Digit.of(-step, 0, extent - 1) for step, extent in left]

    def _fixed(self, difference: Affine) -> list[tuple[Reg, DimLike]]:
        """Registers set outside the loop, hence equal for both accesses, that do not cancel."""
        own = self.inside if self.index is None else {*self.inside, self.index.number}
        return [(reg, by) for reg, by in difference.terms if reg.number not in own]
