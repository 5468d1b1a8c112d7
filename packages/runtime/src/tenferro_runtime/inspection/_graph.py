"""A program as a graph of boxes; in a long program, runs of steps are one box."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise
from typing import Final

from tenferro_runtime.costs._bodies import programs_inside
from tenferro_runtime.costs._memory import plan_memory
from tenferro_runtime.inspection._explain import step_costs
from tenferro_runtime.ir._call import is_part
from tenferro_runtime.ir._program import Equation, Literal, Program
from tenferro_runtime.reports import StepCost, readable
from tenferro_runtime.reports._lines import brief, code_at

MAX_BOXES: Final = 32
"""Largest number of boxes of steps in a drawing; beyond it, runs of steps from one source line are one box."""

ROUGH_BOXES: Final = 4 * MAX_BOXES
"""Number of boxes of steps above which all steps of one line are one box, before others are compared."""

MAX_ENDS: Final = 12
"""Largest number of boxes of inputs, of constants and of outputs; beyond it, those of a kind are one box."""

LOOP_WEIGHT: Final = 8
"""Weight of a loop or a branch, in steps, when runs are chosen, so that it keeps its own box."""


@dataclass(frozen=True, slots=True)
class Box:
    """A box of a graph.

    Attributes:
        index: its number; it reads only boxes with smaller ones.
        kind: kind of the step, input, constant or output.
        label: its text.
        detail: smaller text below.
        note: text of the tooltip.
        reads: boxes that it reads.
        inside: programs that it runs, each with its role.
        where: line of code.
    """

    index: int
    kind: str
    label: str
    detail: str
    note: str = ""
    reads: tuple[int, ...] = ()
    inside: tuple[tuple[str, Program], ...] = ()
    where: str = ""


def graph(program: Program) -> list[Box]:
    """The boxes of inputs, constants, steps and outputs, in this order, with the boxes that they read."""
    nodes: list[Box] = []
    of: dict[int, int] = {}
    for kind, variables in (("input", program.input_ids), ("constant", program.constants)):
        for v in variables:
            of[v] = len(nodes)
            nodes.append(Box(of[v], kind, program.label(v), repr(program.specs[v])))
    for eq, c in zip(program.equations, step_costs(program, plan_memory(program)), strict=True):
        of.update(dict.fromkeys(eq.results, len(nodes)))
        reads = tuple(dict.fromkeys([of[v] for v in eq.variables]))
        nodes.append(replace(_box(eq, c, program.show(eq)), index=len(nodes), reads=reads))
    for i, v in enumerate(program.output_ids):
        nodes.append(Box(len(nodes), "output", f"output {i}", repr(program.specs[v]), reads=(of[v],)))
    return nodes


def _box(eq: Equation, c: StepCost, text: str) -> Box:
    """The box of a step: its numbers or how often it runs, its full text, its line and its cost."""
    programs = programs_inside(eq)
    inside = tuple([(each.title, each.program) for each in programs])
    name, p = eq.op.primitive.name, eq.op.primitive
    numbers = [repr(v.value) for v in eq.operands if isinstance(v, Literal)]
    title = f"{name}({', '.join(numbers)})" if numbers else name
    kind = "element-wise" if p.elementwise else "other"
    if is_part(eq):
        part = eq.op.params["program"]
        kind, title, inside = "fused", f"{len(part.equations)} fused steps", (("", part),)
    elif programs:
        kind, times = "program", programs[0].times
        title = title if times is None or times == 1 else f"{name}, {times} times"
    elif c.kernel == "view":
        kind = "view"
    elif c.primitive in ("dot_general", "contract", "contract_slices"):
        kind = "contraction"
    step = text.partition("  # ")[0] + (f"  # {brief(eq.where)}" if eq.where else "")
    note = f"{step}\n{readable(c.flops, 'flop')}, {readable(c.bytes, 'B')}, {c.kernel} on {c.device}"
    return Box(0, kind, title, ", ".join(map(str, c.outputs)), note, inside=inside, where=eq.where)


def folded(nodes: Sequence[Box]) -> list[Box]:
    """The boxes, merged if there are many.

    Steps are in topological order, and so are runs of adjacent steps.
    """
    ends = {kind: [[n] for n in nodes if n.kind == kind] for kind in ("input", "constant", "output")}
    for kind, groups in ends.items():
        if len(groups) > MAX_ENDS:
            ends[kind] = [[n for group in groups for n in group]]
    runs = _runs([n for n in nodes if n.kind not in ends])
    groups = [*ends["input"], *ends["constant"], *runs, *ends["output"]]
    number = {n.index: i for i, group in enumerate(groups) for n in group}
    return [_merged(i, group, number) for i, group in enumerate(groups)]


def _runs(steps: Sequence[Box]) -> list[list[Box]]:
    """Merge adjacent steps until there are few enough: those of one line first, then the shortest runs."""
    runs = [[n] for n in steps]
    if len(runs) > ROUGH_BOXES:
        runs = [list(run) for _, run in groupby(steps, lambda n: n.index if n.inside else n.where)]
    while len(runs) > ROUGH_BOXES:
        runs = [[n for run in runs[i : i + 2] for n in run] for i in range(0, len(runs), 2)]
    while len(runs) > MAX_BOXES:
        weights = [sum([LOOP_WEIGHT if n.inside else 1 for n in run]) for run in runs]
        other_line = [a[-1].where != b[0].where for a, b in pairwise(runs)]
        i = min(range(len(runs) - 1), key=lambda i: (other_line[i], weights[i] + weights[i + 1]))
        runs[i : i + 2] = [runs[i] + runs[i + 1]]
    return runs


def _merged(index: int, group: Sequence[Box], number: dict[int, int]) -> Box:
    """One box for several."""
    reads = tuple(dict.fromkeys([number[r] for n in group for r in n.reads if number[r] != index]))
    if len(group) == 1:
        return replace(group[0], index=index, reads=reads)
    first = group[0]
    if first.kind in ("input", "constant", "output"):
        names = "\n".join([f"{n.label}: {n.detail}" for n in group])
        return Box(index, first.kind, f"{len(group)} {first.kind}s", "", names, reads)
    lines = list(dict.fromkeys([n.where for n in group if n.where]))
    words = ", ".join(dict.fromkeys([n.label.partition("(")[0] for n in group]))
    label = (code_at(lines[0]) if len(lines) == 1 else "") or words
    note = "\n".join([*map(brief, lines), *[n.note.partition("\n")[0].partition("  # ")[0] for n in group]])
    return Box(
        index, "several", label, f"{len(group)} steps: {words}", note, reads,
        inside=tuple([part for n in group for part in n.inside]), where=first.where,
    )  # fmt: skip
