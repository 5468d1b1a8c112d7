"""Fusion: element-wise steps, and the reduction after them, become one step with one kernel.

Equations are visited in a topological order. A step that can be fused starts a region; the region takes in every step
of the same iteration space that depends on it, and otherwise only on earlier steps. Then it is sealed, so that no step
in it can depend on a step that depends on the region.
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
"""Largest number of element-wise steps in a region; longer kernels compile slowly and spill registers."""

MAX_REGION_INPUTS: Final = 12
"""Largest number of operands of a region."""

MAX_REGION_OUTPUTS: Final = 8
"""Largest number of results of a region."""

MAX_HOIST_DISTANCE: Final = 6
"""Largest distance, in steps, of a step that is advanced because a region waits for it."""

MAX_HOISTS: Final = 2
"""How often a region may advance other steps, whose results live until the region runs."""


def fuse(program: Program, *, exact: bool = False) -> Program:
    """Fuse steps that a backend can run as one kernel.

    Only values that are read outside their region are stored. A region of one step is left as it is. The result does
    not depend on values of symbolic sizes.

    Args:
        program: the program.
        exact: fuse only steps whose results are bitwise equal in any kernel, and preserve the memory layout of stored
            results, on which the rounding of their readers may depend.
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
        after: equations that wait only for the region.
        limit: the first equation that needs a value of the region in memory; later equations read it there, and taking
            them in would only extend lifetimes.
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
        """The equations that waited only for this one."""
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
        """Take in an equation, and update the readers of its result."""
        eq = self.equations[i]
        reads = {v for v in eq.variables if v not in region.inside}
        full = len(region.members) >= MAX_REGION_STEPS or len(region.inputs | reads) > MAX_REGION_INPUTS
        if i > region.limit or full:
            if not reads.issuperset(eq.variables):
                region.after.append(i)  # otherwise it does not depend on the region
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
        """Advance equations that do not depend on the region, if a step that would join it waits only for them."""
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
        """Equations ending with `i` that can run in this order; those in the region's iteration space join it."""
        joins = self.spaces[i] == region.space
        if depth == 0 or (not joins and not region.inside.isdisjoint(self.equations[i].variables)):
            return None
        plan: list[int] = []
        for v in sorted(self.missing[i]):
            j = self.producer[v]
            if not joins and self.spaces[j] == region.space:
                return None  # it would join, but this equation runs before the region
            before = self._plan(region, j, depth - 1)
            if before is None:
                return None
            plan += before
        return [*plan, i]

    def _seal(self, region: _Growth) -> None:
        """Emit the region, including reductions of results that have no other readers."""
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
        """The reductions that end a region: one for each result, all of one kind over the same axes."""
        found = []
        for v in outputs:
            readers = self.readers.get(v, ())
            if v in self.keep or len(readers) != 1 or self.candidates.ends[readers[0]] is None:
                return []
            found.append(readers[0])
        return found if len({self.candidates.ends[i] for i in found}) == 1 else []
