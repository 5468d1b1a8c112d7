"""A plan: the records of all steps of a contraction for operands with given strides, and the memory they share."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Final

import numpy as np

from tenferro_cpu.native.contraction._arena import Arena
from tenferro_cpu.native.contraction._axes import Axis
from tenferro_cpu.native.contraction._code import Kind
from tenferro_cpu.native.contraction._layout import Strides, orders
from tenferro_cpu.native.contraction._step import Step, plan_step
from tenferro_tensor.device_model import ContractionIR, Labels, StepReport

WORTH: Final = 1 << 15
"""Elements of a result from which on several layouts are compared."""

LONG_WORK: Final = 100_000
"""Multiplications and additions from which on other Python threads may run meanwhile."""

BLOCK: Final = 512
"""Elements of an innermost block along which a small operand is repeated beforehand."""


@dataclass(frozen=True)
class Plan:
    """What a run needs besides pointers; safe to use in many threads at once.

    Attributes:
        header: words of `HEADER`.
        arena: bytes of intermediate results and packed panels.
        orders: for each kept value, its labels as they lie in memory.
        reports: one for each step.
        keeps: records and tables, which machine code reads.
    """

    header: bytes
    arena: int
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
        self.known: dict[tuple[Axis, ...], Step | None] = {}
        self.number = {step: number for number, step in enumerate(ir.steps)}
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
        pieces = max([step.words["pieces"] for step, _ in self.steps if "pieces" in step.words], default=1)
        orders = tuple([self.orders[v] for v in self.ir.kept])
        words = (
            len(self.steps), self.one.base + 1, self.count, scratch_at, records.ctypes.data, pieces,
            self.ir.flops > LONG_WORK,
        )  # fmt: skip
        keeps = (records, *[step.tables for step, _ in self.steps])
        return Plan(np.array(words, np.int64).tobytes(), arena, orders, tuple(self.reports), keeps)

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
        if set(left.strides) | set(right.strides) == set(labels):
            left, right = self.repeated(left, right, value, scratch), self.repeated(right, left, value, scratch)
        found = self.emit(left, right, value)
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
        self.emit(x, self.one, made)
        return made

    def repeated(self, x: _Value, y: _Value, value: _Value, scratch: list[tuple[int, int]]) -> _Value:
        """A small operand of an element-wise step, repeated over what `y` and the result have innermost alike."""
        extent = self.ir.extents
        inner = sorted([label for label in value.strides if extent[label] > 1], key=lambda k: abs(value.strides[k]))
        block: list[int] = []
        size = 1
        for label in inner:
            if size >= BLOCK or y.strides.get(label) != value.strides[label] or size * extent[label] > 8 * BLOCK:
                break
            block.insert(0, label)
            size *= extent[label]
        both = [label for label in block if label in x.strides]
        outside = [label for label in x.strides if label not in block]
        made = [*outside, *block]
        small = 8 * self.bytes_of(made) <= self.bytes_of([*value.strides])
        if not both or size < self.kind.width or not small or all(x.strides.get(k) == value.strides[k] for k in block):
            return x
        n = self.bytes_of(made)
        repeated = _Value(self.count, self.memory.take(n), self.strides(made), True)
        scratch.append((repeated.at, n))
        self.emit(x, self.one, repeated)
        return repeated

    def layout(self, result: int, labels: Sequence[int], left: _Value, right: _Value) -> Labels:
        """How an intermediate result lies: the first way, or that of least cost with the next step where it matters."""
        ways = self.ways(result, labels, left.strides, right.strides)
        if len(ways) == 1 or prod([self.ir.extents[label] for label in labels]) < WORTH:
            return ways[0]
        return min(ways, key=lambda way: self.cost(result, labels, left, right, way))

    def ways(self, result: int, labels: Sequence[int], left: Strides, right: Strides) -> list[Labels]:
        """Layouts for a result, the best by rule first."""
        taken = self.taken[result]
        partner = frozenset(label for v in taken if v != result for label in self.ir.values[v])
        after = frozenset(self.ir.values[self.count + self.number[taken]])
        return orders(self.ir, self.kind.width, labels, left, right, partner, after)

    def cost(self, result: int, labels: Sequence[int], left: _Value, right: _Value, way: Labels) -> float:
        """Estimated time of the step that makes a result and of the one that takes it, if it lies this way."""
        mine = _Value(0, 0, self.strides(way))
        taken = self.taken[result]
        partner = next((self.partner(v) for v in taken if v != result), self.one)
        after = self.count + self.number[taken]
        if after == self.count + len(self.ir.steps) - 1:
            along = self.out
        else:
            along = self.strides(self.ways(after, self.ir.values[after], mine.strides, partner.strides)[0])
        steps = (self.step_of(left, right, mine), self.step_of(mine, partner, _Value(0, 0, along)))
        return sum([step.cost for step in steps if step is not None])

    def partner(self, value: int) -> _Value:
        """A value that is there, or one that lies in the order of its labels."""
        return self.values.get(value) or _Value(0, 0, self.strides(self.ir.values[value]))

    def place(self, result: int, layout: Labels) -> _Value:
        """Memory of an intermediate result."""
        if result in self.ir.kept:
            self.orders[result] = layout
            return _Value(self.count + 2 + self.ir.kept.index(result), 0, self.strides(layout))
        return _Value(self.count, self.memory.take(self.bytes_of(layout)), self.strides(layout), True)

    def emit(self, left: _Value, right: _Value, value: _Value) -> Step | None:
        """The record of a product."""
        found = self.step_of(left, right, value)
        if found is not None:
            self.steps.append((found, ((left.base, left.at), (right.base, right.at), (value.base, value.at))))
        return found

    def step_of(self, left: _Value, right: _Value, value: _Value) -> Step | None:
        """A product as a step."""
        a, b, c = left.strides, right.strides, value.strides
        axes = tuple([Axis(self.ir.extents[x], a.get(x, 0), b.get(x, 0), c.get(x, 0)) for x in {**a, **b, **c}])
        if axes not in self.known:
            self.known[axes] = plan_step(self.kind, axes, self.most)
        return self.known[axes]

    def report(self, number: int, step: Sequence[int], labels: Sequence[int], layout: Labels, found: Any) -> None:
        """What is told of a step."""
        space = {label for v in step for label in self.ir.values[v]}
        factor = 8 if self.kind.parts == 2 else 2
        flops = factor * prod([self.ir.extents[label] for label in space])
        touched = self.bytes_of(labels) + sum([self.bytes_of(self.ir.values[v]) for v in step])
        kernel, sizes = (found.kernel, found.sizes) if found is not None else ("nothing", (0, 0, 0, 0))
        self.reports.append(StepReport(number, kernel, sizes, layout, flops, touched))
