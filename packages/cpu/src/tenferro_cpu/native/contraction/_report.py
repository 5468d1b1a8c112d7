"""A plan as it is executed, and the report on its steps."""

from dataclasses import dataclass
from math import prod
from typing import Any, Final

from tenferro_cpu.native.contraction._microkernels import Microkernels
from tenferro_cpu.native.contraction._record import Step
from tenferro_tensor.device_model import ContractionGraph, Labels, StepReport

STEP_OBJECT_BYTES: Final = 2048
"""Approximate bytes of the objects of a step, besides its tables."""


@dataclass(frozen=True)
class Plan:
    """Everything that a run needs besides pointers; may be used in many threads at once.

    Attributes:
        arena: bytes of intermediate results and packed panels.
        scratch: bytes of the arena before the packed panels.
        shared: whether some step pays for several threads.
        unlocked: whether the work justifies releasing the interpreter's lock.
        orders: for each output, its labels in memory order.
        told: for each step the labels of its result in memory order, and its kernel.
        keeps: records and tables, which machine code reads.
    """

    arena: int
    scratch: int
    shared: bool
    unlocked: bool
    orders: tuple[Labels, ...]
    told: tuple[tuple[Labels, Step | None], ...]
    keeps: tuple[Any, ...]

    @property
    def nbytes(self) -> int:
        """Approximate bytes of records, tables and objects; repeated steps count once."""
        steps: dict[int, Step] = {id(step): step for step in self.keeps[1:]}
        return (
            8 * len(self.keeps[0])
            + STEP_OBJECT_BYTES
            + sum([step.nbytes + STEP_OBJECT_BYTES for step in steps.values()])
        )


def reports(code: Microkernels, graph: ContractionGraph, plan: Plan) -> tuple[StepReport, ...]:
    """Report on the steps of a plan; kernel and sizes are those of a step's first term."""
    found = []
    for number, ((labels, terms), (layout, step)) in enumerate(zip(graph.steps, plan.told, strict=True)):
        spaces = [{label for v in term for label in graph.values[v]} for term in terms]
        flops = (8 if code.parts == 2 else 2) * sum([prod([graph.extents[x] for x in space]) for space in spaces])
        taken = [graph.values[v] for term in terms for v in term]
        touched = sum([prod([graph.extents[x] for x in t]) for t in (labels, *taken)])
        kernel, sizes = (step.kernel, step.sizes) if step is not None else ("nothing", (0, 0, 0, 0))
        found.append(StepReport(number, kernel, sizes, layout, flops, touched * code.item))
    return tuple(found)
