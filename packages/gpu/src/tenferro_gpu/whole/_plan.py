"""`planned`: a function as kernels and host code around them.

Parallel nests become separate kernels. Statements between them are run by one group, in kernels with as many statements
as possible. Sequential loops whose iterations contain such nests are run by the host. Registers that several kernels
use are numbers in memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from tenferro_gpu.rendering import SLOT, NestKernel, Sharing, chain, sharing_of
from tenferro_gpu.whole._interchange import turned
from tenferro_gpu.whole._shape import fits_group, is_for_host, require_kernels, runs_before, split_of
from tenferro_gpu.whole._steps import HostLoop, HostStep, HostSwitch, HostWhile, KernelLaunch, LaunchSequence
from tenferro_tensor.loop_ir import (
    Buffer,
    Call,
    Carried,
    For,
    LoopFunction,
    Order,
    Reg,
    Statement,
    Switch,
    Value,
    While,
    everything,
    reads,
    registers,
    touches,
)
from tenferro_tensor_core import DimLike


def planned(function: LoopFunction) -> LaunchSequence:
    """The kernels of a function.

    Args:
        function: what to compute.

    Returns:
        The kernels, and the host code around them.

    Raises:
        UnsupportedError: it has no form; the text gives the reason.
    """
    require_kernels(function.body)
    return _Planner(turned(function)).sequence()


@dataclass
class _Draft:
    """A kernel before the numbers that others use are known."""

    sharing: Sharing
    before: tuple[Statement, ...] = ()
    body: tuple[Statement, ...] = ()
    split: For | None = None
    moves: list[tuple[Reg, Value]] = field(default_factory=list)

    def read(self) -> Iterator[Reg]:
        """Registers that it reads from outside."""
        inside = {reg for s in everything((*self.before, *self.body)) for reg in registers(s)}
        found = [reg for s in everything((*self.before, *self.body)) for reg in reads(s)]
        found += _registers([value for _, value in self.moves])
        yield from {reg: None for reg in found if reg not in inside}

    def made(self) -> Iterator[Reg]:
        """Registers that it sets for later kernels."""
        statements = self.before if self.sharing is not Sharing.ONE else (*self.before, *self.body)
        for s in statements:
            yield from [c.result for c in s.carries] if isinstance(s, For | While) else registers(s)

    def buffers(self) -> Iterable[Buffer]:
        """Buffers that it accesses, by number."""
        found = {t.buffer.number: t.buffer for t in touches((*self.before, *self.body))}
        return [found[number] for number in sorted(found)]


class _Planner:
    """Collects kernels, in program order."""

    def __init__(self, function: LoopFunction) -> None:
        self.function = function
        self.drafts: list[_Draft] = []
        self.counters: set[int] = set()
        self.read_by_host: list[Value] = []
        self.same: dict[int, int] = {}
        """The carry whose place has the result of a loop, by the number of the result."""

    def sequence(self) -> LaunchSequence:
        steps = self.block(self.function.body)
        used = {reg.number for draft in self.drafts for reg in draft.read()}
        used |= {reg.number for reg in _registers(self.read_by_host)}
        kept = {self.same.get(n, n) for n in used - self.counters}
        kept |= {reg.number for draft in self.drafts for reg, _ in draft.moves}
        places = {n: SLOT * k for k, n in enumerate(sorted(kept))}
        places.update({n: places[self._home(n)] for n in used - self.counters})
        kernels = tuple([self._kernel(k, draft, places) for k, draft in enumerate(self.drafts)])
        return LaunchSequence(steps, places, frozenset(self.counters), kernels)

    def _home(self, number: int) -> int:
        return self.same.get(number, number)

    def _kernel(self, k: int, draft: _Draft, places: dict[int, int]) -> NestKernel:
        outside = list(draft.read())
        moved = {reg.number for reg, _ in draft.moves}
        gives: list[tuple[Value, int]] = [
            (reg, places[reg.number]) for reg in draft.made() if reg.number in places and reg.number not in moved
        ]
        gives += [(value, places[reg.number]) for reg, value in draft.moves]
        return NestKernel(
            f"nest_{k}",
            draft.sharing,
            draft.before,
            draft.body,
            draft.split,
            tuple(draft.buffers()),
            self.function.sizes,
            tuple([reg for reg in outside if reg.number in self.counters]),
            tuple([(reg, places[reg.number]) for reg in outside if reg.number not in self.counters]),
            tuple(gives),
        )

    # -- blocks that the host runs

    def block(self, statements: Sequence[Statement], moves: Sequence[tuple[Reg, Value]] = ()) -> tuple[HostStep, ...]:
        """Statements in order, and numbers that are moved after them."""
        steps: list[HostStep] = []
        waiting: list[Statement] = []
        split: For | None = None  # the first one of those that wait

        def flush(moves: Sequence[tuple[Reg, Value]] = ()) -> None:
            nonlocal split
            moves = [(reg, value) for reg, value in moves if reg != value]
            if waiting or moves:
                draft = _Draft(Sharing.ONE, (), tuple(waiting), split, moves)
                steps.append(self._launch(draft, ()))
            waiting.clear()
            split = None

        for s in statements:
            if fits_group(s):
                waiting.append(s)
            elif isinstance(s, For) and s.order is not Order.GIVEN and not is_for_host(s):
                before: tuple[Statement, ...] = ()
                if split is None and runs_before(waiting):
                    before = tuple(waiting)
                    waiting.clear()
                flush()
                if s.carries:
                    steps.append(self._launch(_Draft(Sharing.PARTS, before, (s,), s), ()))
                    waiting, split = [s], s
                else:
                    steps += self._nest(before, s)
            else:
                flush(_firsts(s))
                steps.append(self._controlled(s))
        flush(moves)
        return tuple(steps)

    def _nest(self, before: tuple[Statement, ...], s: For) -> list[HostStep]:
        """A parallel nest: one kernel, or one for parts of rows and one that combines them."""
        rows = [n for _, n in chain(s)[0]]
        split = split_of(s)
        if split is None:
            return [self._launch(_Draft(sharing_of(s), before, (s,)), rows)]
        return [self._launch(_Draft(sharing, before, (s,), split), rows) for sharing in (Sharing.PARTS, Sharing.GROUPS)]

    def _launch(self, draft: _Draft, rows: Sequence[DimLike]) -> KernelLaunch:
        self.drafts.append(draft)
        parts = () if draft.split is None else tuple([n for _, n in chain(draft.split)[0]])
        return KernelLaunch(len(self.drafts) - 1, tuple(rows), parts)

    def _controlled(self, s: Statement) -> HostStep:
        if isinstance(s, Call):
            self.read_by_host += [reg for view in (*s.operands, *s.results) for reg, _ in view.at.terms]
            return s
        if isinstance(s, Switch):
            self.read_by_host.append(s.index)
            cases = [self.block(case.body, list(zip(s.results, case.values, strict=True))) for case in s.cases]
            return HostSwitch(s.index, tuple(cases))
        assert isinstance(s, For | While)
        self.counters.add(s.index.number)
        self.same.update({c.result.number: c.inside.number for c in s.carries})
        moves = [(c.inside, c.following) for c in s.carries]
        if isinstance(s, For):
            return HostLoop(s.index, s.extent, self.block(s.body, moves), s.swaps)
        self.read_by_host.append(s.condition)
        return HostWhile(self.block(s.test), s.condition, s.index, self.block(s.body, moves), s.most, s.swaps)


def _firsts(s: Statement) -> list[tuple[Reg, Value]]:
    carries: Sequence[Carried] = s.carries if isinstance(s, For | While) else ()
    return [(c.inside, c.first) for c in carries]


def _registers(values: Iterable[Value]) -> list[Reg]:
    return [v for v in values if isinstance(v, Reg)]
