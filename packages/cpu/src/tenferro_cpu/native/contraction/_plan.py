"""A plan: the records of all steps of a contraction for operands with given strides, and the memory they share."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from tenferro_cpu.native.contraction._arena import Arena
from tenferro_cpu.native.contraction._axes import Axis
from tenferro_cpu.native.contraction._code import Kind
from tenferro_cpu.native.contraction._layout import order
from tenferro_cpu.native.contraction._step import Step, plan_step
from tenferro_tensor.device_model import ContractionIR, Labels, StepReport


@dataclass(frozen=True)
class Plan:
    """What a run needs besides pointers; safe to use in many threads at once.

    Attributes:
        address: of the header: number of records, of pointers, place of the arena's pointer, of scratch memory in the
            arena, address of the records.
        arena: bytes of intermediate results and packed panels.
        pieces: threads that the largest step pays for.
        orders: for each kept value, its labels as they lie in memory.
        reports: one for each step.
        keeps: header, records and tables, which machine code reads.
    """

    address: int
    arena: int
    pieces: int
    orders: tuple[Labels, ...]
    reports: tuple[StepReport, ...]
    keeps: tuple[Any, ...]


@dataclass(slots=True)
class _Value:
    base: int
    at: int
    strides: dict[int, int]
    arena: bool = False


def make(kind: Kind, ir: ContractionIR, strides: Sequence[Sequence[int]], out: Sequence[int] | None, most: int) -> Plan:
    """The plan for operands with these strides in bytes, and a result with the strides `out` or lying in order."""
    return _Planner(kind, ir, strides, out, most).plan()


class _Planner:
    """Goes through the steps once; pointers are those of operands, arena, result, kept values, and the number one."""

    def __init__(
        self, kind: Kind, ir: ContractionIR, strides: Sequence[Sequence[int]], out: Sequence[int] | None, most: int
    ) -> None:
        self.kind, self.ir, self.most = kind, ir, most
        self.count = len(ir.operands)
        self.memory = Arena()
        self.steps: list[tuple[Step, tuple[tuple[int, int], ...]]] = []
        self.reports: list[StepReport] = []
        self.values: dict[int, _Value] = {}
        for number, (labels, own) in enumerate(zip(ir.operands, strides, strict=True)):
            along: dict[int, int] = {}
            for label, stride in zip(labels, own, strict=True):
                along[label] = along.get(label, 0) + stride
            self.values[number] = _Value(number, 0, along)
        self.one = _Value(self.count + 2 + len(ir.kept), 0, {})
        self.out = self.strides(ir.output) if out is None else dict(zip(ir.output, out, strict=True))
        self.taken = {v: step for step in ir.steps for v in step}
        self.orders: dict[int, Labels] = {}

    def strides(self, labels: Sequence[int]) -> dict[int, int]:
        """Strides of a value whose labels lie in this order."""
        found, step = {}, self.kind.item
        for label in reversed(labels):
            found[label] = step
            step *= self.ir.extents[label]
        return found

    def bytes_of(self, labels: Sequence[int]) -> int:
        """Bytes of a value."""
        return self.kind.item * prod([self.ir.extents[label] for label in labels])

    def plan(self) -> Plan:
        """All steps, in order."""
        for number, step in enumerate(self.ir.steps or ((0,),)):
            self.step(number, step)
        scratch_at = self.memory.size
        records = np.array([step.record(places) for step, places in self.steps], np.int64)
        arena = scratch_at + max([step.scratch for step, _ in self.steps], default=0)
        header = np.array(
            [len(self.steps), self.one.base + 1, self.count, scratch_at, records.ctypes.data], np.int64
        )  # fmt: skip
        pieces = max([step.words["pieces"] for step, _ in self.steps if "pieces" in step.words], default=1)
        orders = tuple([self.orders[v] for v in self.ir.kept])
        keeps = (header, records, *[step.tables for step, _ in self.steps])
        return Plan(header.ctypes.data, arena, pieces, orders, tuple(self.reports), keeps)

    def step(self, number: int, step: tuple[int, ...]) -> None:
        """One step of the IR: operands without axes of their own to sum, then the product."""
        result = self.count + number
        last = number >= len(self.ir.steps) - 1
        labels = self.ir.output if last else self.ir.values[result]
        operands = [self.values[v] for v in step]
        scratch: list[tuple[int, int]] = []
        if len(operands) == 2:
            operands = [self.reduced(x, y, labels, scratch) for x, y in (operands, operands[::-1])]
        left, right = operands if len(operands) == 2 else (operands[0], self.one)
        if last:
            value = _Value(self.count + 1, 0, self.out)
            layout = tuple(sorted(labels, key=lambda label: -abs(self.out[label])))
        else:
            layout = self.layout(result, labels, left, right)
            value = self.place(result, layout)
        found = self.emit(left, right, value, {*left.strides, *right.strides})
        for at, n in scratch:
            self.memory.give(at, n)
        for v in step:
            if v >= self.count and self.values[v].arena:
                self.memory.give(self.values[v].at, self.bytes_of(self.ir.values[v]))
        self.values[result] = value
        self.report(number, step, labels, layout, found)

    def reduced(self, x: _Value, y: _Value, labels: Sequence[int], scratch: list[tuple[int, int]]) -> _Value:
        """An operand, summed over what only it has, where that makes the product cheaper."""
        extent = self.ir.extents
        own = [label for label in x.strides if label not in y.strides and label not in labels and extent[label] > 1]
        if not own or not any(extent[label] != 1 for label in y.strides):
            return x
        rest = sorted([label for label in x.strides if label not in own], key=lambda label: -abs(x.strides[label]))
        n = self.bytes_of(rest)
        made = _Value(self.count, self.memory.take(n), self.strides(rest), True)
        scratch.append((made.at, n))
        self.emit(x, self.one, made, {*x.strides})
        return made

    def layout(self, result: int, labels: Sequence[int], left: _Value, right: _Value) -> Labels:
        """How an intermediate result lies."""
        taken = self.taken[result]
        partner = frozenset(label for v in taken if v != result for label in self.ir.values[v])
        after = frozenset(self.ir.values[self.count + self.ir.steps.index(taken)])
        return order(self.ir, self.kind.width, labels, left.strides, right.strides, partner, after)

    def place(self, result: int, layout: Labels) -> _Value:
        """Memory of an intermediate result."""
        if result in self.ir.kept:
            self.orders[result] = layout
            return _Value(self.count + 2 + self.ir.kept.index(result), 0, self.strides(layout))
        return _Value(self.count, self.memory.take(self.bytes_of(layout)), self.strides(layout), True)

    def emit(self, left: _Value, right: _Value, value: _Value, labels: set[int]) -> Step | None:
        """The record of a product."""
        axes = [
            Axis(self.ir.extents[x], left.strides.get(x, 0), right.strides.get(x, 0), value.strides.get(x, 0))
            for x in sorted(labels)
        ]
        found = plan_step(self.kind, axes, self.most)
        if found is not None:
            self.steps.append((found, ((left.base, left.at), (right.base, right.at), (value.base, value.at))))
        return found

    def report(self, number: int, step: Sequence[int], labels: Sequence[int], layout: Labels, found: Any) -> None:
        """What is told of a step."""
        space = {label for v in step for label in self.ir.values[v]}
        factor = 8 if self.kind.parts == 2 else 2
        flops = factor * prod([self.ir.extents[label] for label in space])
        touched = self.bytes_of(labels) + sum([self.bytes_of(self.ir.values[v]) for v in step])
        kernel, sizes = (found.kernel, found.sizes) if found is not None else ("nothing", (0, 0, 0, 0))
        self.reports.append(StepReport(number, kernel, sizes, layout, flops, touched))
