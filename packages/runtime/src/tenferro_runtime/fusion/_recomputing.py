"""Light steps that are done twice, so that their results never wait in memory for the end of a reduction.

In ``d = x - mean(x)``, ``d / sqrt(sum(d * d))`` the difference is read before the sum ends and after it. Written, it
costs a pass through memory each way; done again it costs nothing, for its operand is read in its place.
"""

from __future__ import annotations

from typing import Final

from tenferro_runtime.fusion._candidates import Candidates
from tenferro_runtime.ir._program import Equation, Program
from tenferro_tensor import catalog

LIGHT: Final = frozenset({catalog.add, catalog.sub, catalog.mul, catalog.neg})
"""Primitives that take less time than reading their result from memory."""

VIEWS: Final = frozenset({catalog.broadcast_in_dim, catalog.reshape})
"""Primitives that take no time of their own: their results are ready with their operands."""


def recomputed(program: Program, candidates: Candidates) -> Program:
    """The program with a copy of each light step for its readers after a later reduction or another op.

    A step is light where one operand at most is as large as its result, and lies in memory anyway. It is copied only
    where no reader needs its result in memory.
    """
    stages = _stages(program)
    if not any(stages.values()):
        return program
    equations, kept = program.equations, {*program.output_ids}
    producer = {v: i for i, eq in enumerate(equations) for v in eq.results}
    readers: dict[int, list[int]] = {}
    for i, eq in enumerate(equations):
        for v in {*eq.variables}:
            readers.setdefault(v, []).append(i)
    before: dict[int, list[Equation]] = {}
    instead: dict[int, dict[int, int]] = {}
    specs = dict(program.specs)
    fresh = max(specs) + 1
    for i, eq in enumerate(equations):
        if eq.op.primitive not in LIGHT or candidates.spaces[i] is None or eq.results[0] in kept:
            continue
        (v,) = eq.results
        by_stage: dict[int, list[int]] = {}
        for j in readers.get(v, ()):
            by_stage.setdefault(stages[j], []).append(j)
        if len(by_stage) < 2 or not all(_joins(candidates, i, j) for group in by_stage.values() for j in group):
            continue
        large = [u for u in eq.variables if u not in producer or equations[producer[u]].op.primitive not in VIEWS]
        if len({*large}) > 1 or any(u in producer and candidates.spaces[producer[u]] is not None for u in large):
            continue
        for stage in sorted(by_stage)[1:]:
            copy = Equation(eq.op, eq.operands, (fresh,), eq.source)
            specs[fresh] = specs[v]
            before.setdefault(by_stage[stage][0], []).append(copy)
            for j in by_stage[stage]:
                instead.setdefault(j, {})[v] = fresh
            fresh += 1
    if not before:
        return program
    found: list[Equation] = []
    for i, eq in enumerate(equations):
        found += before.get(i, ())
        known = instead.get(i)
        if known is not None:
            operands = tuple([known.get(u, u) if u.__class__ is int else u for u in eq.operands])
            eq = Equation(eq.op, operands, eq.results, eq.source)
        found.append(eq)
    return program.with_(equations=tuple(found), specs=specs)


def _joins(candidates: Candidates, i: int, j: int) -> bool:
    """Whether a reader may be a step of the same kernel, or end it."""
    return candidates.spaces[j] == candidates.spaces[i] or candidates.ends[j] is not None


def _stages(program: Program) -> dict[int, int]:
    """For each equation, how many ops that are no steps of kernels lie before it one after the other."""
    known: dict[int, int] = {}
    found: dict[int, int] = {}
    for i, eq in enumerate(program.equations):
        stage = found[i] = max([known.get(v, 0) for v in eq.variables], default=0)
        ends = not eq.op.primitive.elementwise and eq.op.primitive not in VIEWS and eq.operands
        for v in eq.results:
            known[v] = stage + 1 if ends else stage
    return found
