"""Fusion: runs of element-wise steps, and the reduction after them, become one step with one kernel.

The equations are visited in an order that keeps what they depend on before them. A step that may be fused starts a
region; the region takes in every step of the same iteration space that depends on it, and on nothing that is still to
come. Then it is sealed: nothing in it can depend on anything that depends on it.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import Final

from tenferro_runtime.fusion._candidates import Candidates, Shape
from tenferro_runtime.fusion._writer import FusionWriter
from tenferro_runtime.ir._data_sizes import defining
from tenferro_runtime.ir._program import Program
from tenferro_runtime.passes.dead_code import remove_dead_code

MAX_REGION_STEPS: Final = 64
"""Element-wise steps of one region; longer kernels compile slowly and run out of registers."""

MAX_REGION_INPUTS: Final = 12
"""Operands of one region."""

MAX_REGION_OUTPUTS: Final = 8
"""Results of one region."""

MAX_HOIST_DISTANCE: Final = 6
"""How far back the steps may lie that are carried out early, because a region waits for them."""

MAX_HOISTS: Final = 2
"""How often a region has steps carried out early; their results live until it runs."""


def fuse(program: Program, *, exact: bool = False) -> Program:
    """Fuse what a backend can run as one kernel.

    Values that are read outside of their region are written, all others never reach memory. A region of one step stays
    what it is. Nothing depends on the numbers of symbolic sizes.

    Args:
        program: a program.
        exact: fuse only steps whose results are the same bit for bit in any kernel, and keep the order of memory in
            which these are handed on: other kernels read them, which may round otherwise where it is another one.
    """
    candidates = Candidates(program, exact)
    return _Fuser(program, candidates, exact).run() if candidates.any else program


class _Growth:
    """A region while it grows.

    Attributes:
        space: its iteration space.
        members: numbers of its equations.
        inside: variables that it defines.
        inputs: variables that it reads.
        after: equations that wait for nothing but the region.
        limit: the first equation that needs a value of the region in memory. What comes later in the program reads
            it there: taking that in would only keep results alive for longer.
    """

    def __init__(self, space: Shape) -> None:
        self.space = space
        self.members: list[int] = []
        self.inside: set[int] = set()
        self.inputs: set[int] = set()
        self.after: list[int] = []
        self.limit = 1 << 62


class _Fuser:
    def __init__(self, program: Program, candidates: Candidates, exact: bool) -> None:
        self.program, self.equations = program, program.equations
        self.spaces, self.candidates = candidates.spaces, candidates
        self.producer: dict[int, int] = {}
        self.readers: dict[int, list[int]] = {}
        self.missing: list[set[int]] = []
        self.done = [False] * len(self.equations)
        self.writer = FusionWriter(program, exact)
        for i, eq in enumerate(self.equations):
            self.producer.update((v, i) for v in eq.results)
            operands = {*eq.variables, *defining(program, eq)}
            self.missing.append({v for v in operands if v in self.producer})
            for v in operands:
                self.readers.setdefault(v, []).append(i)
        self.ready = [i for i, missing in enumerate(self.missing) if not missing]
        heapify(self.ready)
        self.keep = set(program.output_ids)

    def run(self) -> Program:
        while self.ready:
            i = heappop(self.ready)
            if not self.done[i]:
                self._visit(i)
        program = self.writer.program()
        return program if program is self.program else remove_dead_code(program)

    def _visit(self, i: int, pulls: bool = True) -> None:
        if self.spaces[i] is None:
            self.done[i] = True
            self.writer.single(i)
            for j in self._define(i):
                heappush(self.ready, j)
        else:
            self._seal(self._grown(i, pulls))

    def _define(self, i: int) -> list[int]:
        """Equations that waited for nothing but this one."""
        free = []
        for v in self.equations[i].results:
            for j in self.readers.get(v, ()):
                self.missing[j].discard(v)
                if not self.missing[j]:
                    free.append(j)
        return free

    def _grown(self, seed: int, pulls: bool) -> _Growth:
        region = _Growth(self.spaces[seed] or ())
        frontier = [seed]
        tried: set[int] = set()
        left = MAX_HOISTS if pulls else 0
        while frontier:
            i = heappop(frontier)
            if not self.done[i]:
                self._join(region, i, frontier)
            if not frontier and left:
                left -= 1
                self._pull(region, frontier, tried)
        return region

    def _join(self, region: _Growth, i: int, frontier: list[int]) -> None:
        """Take an equation in, and look at who reads its result."""
        eq = self.equations[i]
        reads = {v for v in eq.variables if v not in region.inside}
        full = len(region.members) >= MAX_REGION_STEPS or len(region.inputs | reads) > MAX_REGION_INPUTS
        if i > region.limit or full:
            if not reads.issuperset(eq.variables):
                region.after.append(i)  # else it is ready without the region
            return
        self.done[i] = True
        region.members.append(i)
        region.inside.update(eq.results)
        region.inputs |= reads
        for v in eq.results:
            for j in self.readers.get(v, ()):
                if self.spaces[j] != region.space and self.candidates.ends[j] is None:
                    region.limit = min(region.limit, j)
        for j in self._define(i):
            if self.spaces[j] == region.space:
                heappush(frontier, j)
            else:
                region.after.append(j)

    def _pull(self, region: _Growth, frontier: list[int], tried: set[int]) -> None:
        """Carry out what does not need the region, where a step that would join it waits for nothing else."""
        for v in sorted(region.inside):
            for i in self.readers.get(v, ()):
                if self.done[i] or i in tried or i > region.limit or self.spaces[i] != region.space:
                    continue
                tried.add(i)
                plan = self._plan(region, i, MAX_HOIST_DISTANCE)
                if plan is None:
                    continue
                for j in plan:
                    if self.done[j] or self.spaces[j] == region.space:
                        continue
                    self._visit(j, pulls=False)
                for j in plan:
                    if self.spaces[j] == region.space and not self.done[j] and not self.missing[j]:
                        heappush(frontier, j)
                if frontier:
                    return

    def _plan(self, region: _Growth, i: int, depth: int) -> list[int] | None:
        """Equations, the last of them `i`, that can be carried out in this order; steps of the region's space join."""
        joins = self.spaces[i] == region.space
        if depth == 0 or (not joins and not region.inside.isdisjoint(self.equations[i].variables)):
            return None
        plan: list[int] = []
        for v in sorted(self.missing[i]):
            j = self.producer[v]
            if not joins and self.spaces[j] == region.space:
                return None  # it would be inside, and this equation before the region
            before = self._plan(region, j, depth - 1)
            if before is None:
                return None
            plan += before
        return [*plan, i]

    def _seal(self, region: _Growth) -> None:
        """Write the region, with the reductions of its results where these have no other readers."""
        members = sorted(region.members)
        inside = set(members)
        outputs = []
        for i in members:
            (v,) = self.equations[i].results
            if v in self.keep or any(j not in inside for j in self.readers.get(v, ())):
                outputs.append(v)
        ends = self._ends(outputs, inside)
        if ends:
            outputs = [v for i in ends for v in self.equations[i].results]
        if (len(members) > 1 or ends) and 0 < len(outputs) <= MAX_REGION_OUTPUTS:
            self.writer.region([*members, *ends], outputs)
            for i in ends:
                self.done[i] = True
                region.after += self._define(i)
        else:
            for i in members:
                self.writer.single(i)
        for i in region.after:
            heappush(self.ready, i)

    def _ends(self, outputs: list[int], inside: set[int]) -> list[int]:
        """The reductions that end a region: one of each result, all of one kind over the same axes."""
        found = []
        for v in outputs:
            readers = self.readers.get(v, ())
            if v in self.keep or len(readers) != 1 or self.candidates.ends[readers[0]] is None:
                return []
            found.append(readers[0])
        return found if len({self.candidates.ends[i] for i in found}) == 1 else []
