"""The memory timeline of a profile: the allocations of a program's steps."""

from __future__ import annotations

from tenferro_runtime.costs._bodies import programs_inside
from tenferro_runtime.costs._memory import MemoryPlan, plan_memory
from tenferro_runtime.costs._storage import nbytes
from tenferro_runtime.inspection._explain import name_of
from tenferro_runtime.ir._program import Equation, Program
from tenferro_runtime.reports import MemoryBlock, MemoryTimeline
from tenferro_runtime.running._execute import lowered


def memory_timeline(program: Program, memory: MemoryPlan) -> MemoryTimeline:
    """The memory of a program with concrete sizes, as it runs step by step."""
    found: list[MemoryBlock] = []
    for i, (eq, cost) in enumerate(zip(program.equations, memory.costs, strict=True)):
        for v in eq.results:
            if v in memory.last and v not in memory.victims:  # owns its memory
                found.append(MemoryBlock(eq.where, i, memory.last[v], _known(nbytes(program.specs[v]))))
        found += _workspace(eq, i, _known(cost.workspace))
    return MemoryTimeline(tuple([name_of(eq) for eq in program.equations]), tuple([b for b in found if b.nbytes]))


def _workspace(eq: Equation, step: int, needed: int) -> list[MemoryBlock]:
    """The workspace of a step; for a loop or a call, the peak of the program that it runs."""
    found: list[MemoryBlock] = []
    for inside in programs_inside(eq) if needed else ():
        program = lowered(inside.program)
        inner = memory_timeline(program, plan_memory(program, inside.donated))
        if sum([b.nbytes for b in found]) < max(inner.alive, default=0):
            alive = [b for b in inner.blocks if b.step <= inner.peak_step <= b.last]
            found = [MemoryBlock(b.line or eq.where, step, step, b.nbytes) for b in alive]
    return [*found, MemoryBlock(eq.where, step, step, max(0, needed - sum([b.nbytes for b in found])))]


def _known(n: object) -> int:
    return n if isinstance(n, int) else 0
