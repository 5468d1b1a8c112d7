"""A plan: the records of all steps of contractions for operands with given strides, and the memory that they share."""

from array import array
from collections.abc import Sequence
from math import prod
from typing import Any

from tenferro_cpu.native.contraction import tuning
from tenferro_cpu.native.contraction._arena import Arena
from tenferro_cpu.native.contraction._axes import Axis, Plain
from tenferro_cpu.native.contraction._blocks import blocked
from tenferro_cpu.native.contraction._costs import settled
from tenferro_cpu.native.contraction._forms import Form, StepTemplate, alike, form_of
from tenferro_cpu.native.contraction._layout import Strides, orders, results
from tenferro_cpu.native.contraction._microkernels import Microkernels
from tenferro_cpu.native.contraction._record import Step
from tenferro_cpu.native.contraction._relay import relays
from tenferro_cpu.native.contraction._report import Plan
from tenferro_cpu.native.contraction._step import accumulation, copied, plan_step, zeros
from tenferro_cpu.native.contraction._values import Value, by_label, in_order
from tenferro_tensor.device_model import ContractionGraph, Labels


def make(
    code: Microkernels, graph: ContractionGraph, strides: Sequence[Sequence[int]], out: Sequence[int] | None, most: int
) -> Plan:
    """The plan for operands with these strides in bytes, and a first output with strides `out` or contiguous."""
    return _Planner(code, graph, strides, out, most).plan()


class _Planner:
    """Visits the steps once; base pointers are those of operands, arena, outputs, and the number one.

    Values that later steps use may be laid out in any order. Unused outputs, and the first one, are laid out in the
    order of their labels, except larger ones for which another order is cheaper.
    """

    def __init__(
        self, code: Microkernels, graph: ContractionGraph, strides: Sequence[Sequence[int]], out: Sequence[int] | None,
        most: int,
    ) -> None:  # fmt: skip
        self.code, self.graph, self.most, self.extents = code, graph, most, graph.extents
        self.count = len(graph.operands)
        self.memory = Arena()
        self.steps: list[tuple[Step, tuple[tuple[int, int], ...]]] = []
        self.told: list[tuple[Labels, Step | None]] = []
        self.values: dict[int, Value] = {}
        for number, (labels, own) in enumerate(zip(graph.operands, strides, strict=True)):
            self.values[number] = Value(number, 0, by_label(labels, own))
        self.one = Value(self.count + 1 + len(graph.outputs), 0, {})
        self.base = {v: self.count + 1 + n for n, v in enumerate(graph.outputs)}
        self.taken: dict[int, tuple[tuple[int, ...], int]] = {}
        self.last: dict[int, int] = {}
        for made, (_, terms) in enumerate(graph.steps, self.count):
            for term in terms:
                for v in term:
                    self.taken.setdefault(v, (term, made))
                    self.last[v] = made
        first = graph.outputs[0]
        self.fixed = {
            v: self.in_order(v)
            for v in graph.outputs
            if (v == first if v in self.taken else prod(graph.shape(v)) < tuning.FREE_OUTPUT_MIN_ELEMENTS)
        }
        if out is not None:
            self.fixed[first] = tuple(out)
        self.known: dict[tuple[Plain, ...], Step | None] = {}
        self.alike: dict[Any, StepTemplate] = {}
        self.repeats = 0
        self.orders: dict[int, Labels] = {}

    def in_order(self, value: int) -> tuple[int, ...]:
        """Strides of a value laid out in the order of its labels."""
        return in_order(self.graph.values[value], self.extents, self.code.item)

    def strides(self, labels: Sequence[int]) -> dict[int, int]:
        """Strides of a value whose labels are laid out in this order."""
        return dict(zip(labels, in_order(labels, self.extents, self.code.item), strict=True))

    def bytes_of(self, labels: Sequence[int]) -> int:
        """Size of a value in bytes."""
        return self.code.item * prod([self.extents[label] for label in labels])

    def plan(self) -> Plan:
        """Plan all steps, in order."""
        for number, (labels, terms) in enumerate(self.graph.steps):
            self.step(number, labels, terms)
        scratch_at = self.memory.size
        records = array("q")
        for step, places in self.steps:
            records += step.record(places)
        arena = scratch_at + max([step.scratch for step, _ in self.steps], default=0)
        shared = any(step.words.get("pieces", 1) > 1 for step, _ in self.steps)
        orders = tuple([self.orders.get(v, self.graph.values[v]) for v in self.graph.outputs])
        unlocked = self.graph.flops > tuning.UNLOCKED_MIN_WORK
        keeps = (records, *[step for step, _ in self.steps])
        return Plan(arena, scratch_at, shared, unlocked, orders, tuple(self.told), keeps)

    def step(self, number: int, labels: Labels, terms: tuple[tuple[int, ...], ...]) -> None:
        """Plan one step of the graph: reuse one of the same form, otherwise decide everything."""
        result, before = self.count + number, len(self.steps)
        form = self.form(result, labels, terms)
        found = self.alike.get(form.key) if form is not None else None
        if form is not None and found is not None:
            self.repeat(result, terms[0], form, found)
            return
        self.decided(number, labels, terms)
        layout, step = self.told[-1]
        if form is not None and len(self.steps) - before == (step is not None):  # nothing beside the product
            value = self.values[result]
            self.alike[form.key] = alike(form, layout, value.strides, value.arena, step)

    def form(self, result: int, labels: Labels, terms: tuple[tuple[int, ...], ...]) -> Form | None:
        """The form of a product whose result is an intermediate value, too small for its layout to be estimated.

        None if no other step is likely to share it.
        """
        if len(terms) > 1 or len(terms[0]) == 1 or result in self.base or result not in self.taken:
            return None
        if (
            len(self.graph.steps) < tuning.SIMILAR_MIN_STEPS
            or len(self.alike) > 8 * tuning.SIMILAR_MIN_STEPS + 4 * self.repeats
        ):
            return None
        if prod([self.extents[x] for x in labels]) >= tuning.LAYOUT_MIN_ELEMENTS:
            return None
        left, right = (self.values[v].strides for v in terms[0])
        term, made = self.taken[result]
        partner = self.graph.values[term[term[0] == result]] if len(term) == 2 else ()
        return form_of(self.extents, left, right, labels, partner, self.graph.values[made])

    def repeat(self, result: int, term: tuple[int, ...], form: Form, found: StepTemplate) -> None:
        """A step like an earlier one."""
        self.repeats += 1
        layout, n = found.layout(form), found.nbytes
        value = Value(self.count, self.memory.take(n), dict(zip(layout, found.strides, strict=True)), n)
        self.put(found.step, self.values[term[0]], self.values[term[1]], value)
        self.release([self.values[v] for v in {*term} if self.last[v] == result])
        self.values[result] = value
        self.told.append((layout, found.step))

    def decided(self, number: int, labels: Labels, terms: tuple[tuple[int, ...], ...]) -> None:
        """The terms of a step, each computed separately and then added if there are several."""
        result = self.count + number
        scratch: list[Value] = []
        pairs = [self.operands(term, labels, scratch) for term in terms]
        value, layout = self.place(result, labels, *pairs[0])
        if result in self.base and len({*labels}) < len(labels):
            along = self.fixed.get(result) or self.in_order(result)
            axes = [Axis(self.extents[x], 0, 0, stride) for x, stride in zip(labels, along, strict=True)]
            self.put(zeros(self.code, axes, self.most), self.one, self.one, value)
        if len(terms) == 1:
            found = self.product(*pairs[0], value)
        else:
            parts = [self.room(layout) for _ in terms]
            found, *_ = [self.product(*pair, part) for pair, part in zip(pairs, parts, strict=True)]
            for part in parts[1:-1]:
                self.add(parts[0], part, parts[0])
            self.add(parts[0], parts[-1], value)
            self.release(parts)
        self.release(scratch)
        self.release([self.values[v] for v in {v for term in terms for v in term} if self.last[v] == result])
        if result not in self.last:
            self.release([value])
        self.values[result] = value
        self.told.append((layout, found))

    def operands(self, term: tuple[int, ...], labels: Labels, scratch: list[Value]) -> tuple[Value, Value]:
        """The factors of a term, including the number one; axes that only one operand has are summed first."""
        if len(term) == 1:
            return self.values[term[0]], self.one
        left, right = (self.values[v] for v in term)
        return self.reduced(left, right, labels, scratch), self.reduced(right, left, labels, scratch)

    def product(self, left: Value, right: Value, value: Value) -> Step | None:
        """The product of two values."""
        scratch: list[Value] = []
        if set(left.strides) | set(right.strides) == set(value.strides):
            left, right = self.repeated(left, right, value, scratch), self.repeated(right, left, value, scratch)
        elif prod([self.extents[x] for x in {**left.strides, **right.strides}]) >= tuning.COMPARE_MIN_WORK:
            blocks = self.blocks_of(left, right, value)
            left, right = self.relaid(left, right, value, scratch, blocks)
            if blocks is not None and not scratch:
                return self.put(blocks, left, right, value)
        found = self.emit(left, right, value)
        self.release(scratch)
        return found

    def add(self, x: Value, y: Value, value: Value) -> None:
        """The sum of two values in the arena with the same layout."""
        apart = y.at - x.at
        axes = [(self.extents[label], x.strides[label], 0, along) for label, along in value.strides.items()]
        key = (*axes, (-1, apart, 0, 0))  # products have no such extent
        if key not in self.known:
            self.known[key] = accumulation(self.code, [Axis(*axis) for axis in axes], apart, self.most)
        self.put(self.known[key], x, self.one, value)

    def room(self, layout: Sequence[int]) -> Value:
        """Allocate memory in the arena for a value whose labels are laid out in this order."""
        found = self.strides(layout)
        n = self.extents[layout[0]] * found[layout[0]] if layout else self.code.item
        return Value(self.count, self.memory.take(n), found, n)

    def release(self, values: Sequence[Value]) -> None:
        """Free the memory of values in the arena."""
        for value in values:
            if value.arena:
                self.memory.give(value.at, value.arena)

    def reduced(self, x: Value, y: Value, labels: Labels, scratch: list[Value]) -> Value:
        """An operand, summed over the axes that only it has, if that makes the product cheaper."""
        extent = self.extents
        own = [label for label in x.strides if label not in y.strides and label not in labels and extent[label] > 1]
        if not own or not any(extent[label] != 1 for label in y.strides):
            return x
        rest = sorted([label for label in x.strides if label not in own], key=lambda label: -abs(x.strides[label]))
        made = self.room(rest)
        scratch.append(made)
        self.emit(x, self.one, made)
        return made

    def repeated(self, x: Value, y: Value, value: Value, scratch: list[Value]) -> Value:
        """A small operand of an element-wise step, repeated along the innermost axes shared by `y` and the result."""
        extent = self.extents
        inner = sorted([label for label in value.strides if extent[label] > 1], key=lambda k: abs(value.strides[k]))
        block: list[int] = []
        size = 1
        for label in inner:
            if (
                size >= tuning.REPEAT_BLOCK_ELEMENTS
                or y.strides.get(label) != value.strides[label]
                or size * extent[label] > 8 * tuning.REPEAT_BLOCK_ELEMENTS
            ):
                break
            block.insert(0, label)
            size *= extent[label]
        both = [label for label in block if label in x.strides]
        outside = [label for label in x.strides if label not in block]
        made = [*outside, *block]
        small = 8 * self.bytes_of(made) <= self.bytes_of([*value.strides])
        if not both or size < self.code.width or not small or all(x.strides.get(k) == value.strides[k] for k in block):
            return x
        repeated = self.room(made)
        scratch.append(repeated)
        self.emit(x, self.one, repeated)
        return repeated

    def blocks_of(self, left: Value, right: Value, value: Value) -> Step | None:
        """A product as a step in blocks of the batch, if that is cheaper."""
        plain = self.step_of(left, right, value)
        if plain is None or settled(self.code, plain.sizes, plain.cost):
            return None
        return blocked(self.code, self.axes_of(left, right, value), self.most, plain.cost)

    def relaid(
        self, left: Value, right: Value, value: Value, scratch: list[Value], blocks: Step | None
    ) -> tuple[Value, Value]:
        """Operands, or copies in another layout if that is cheaper, also compared with blocks."""
        plain = self.step_of(left, right, value)
        if plain is None or settled(self.code, plain.sizes, plain.cost):
            return left, right
        best = plain.cost if blocks is None else blocks.cost
        chosen: tuple[Labels | None, Labels | None] = (None, None)
        for ways in relays(self.extents, self.code.item, left.strides, right.strides, value.strides):
            pairs = [(x, way if way is None else Value(0, 0, self.strides(way))) for x, way in zip((left, right), ways)]
            copies = [self.copy_of(x, made) for x, made in pairs if made is not None]
            after = self.step_of(pairs[0][1] or left, pairs[1][1] or right, value)
            cost = sum([step.cost for step in (*copies, after) if step is not None])
            if cost < best:
                best, chosen = cost, ways
        found = []
        for x, way in zip((left, right), chosen, strict=True):
            found.append(x)
            if way is not None:
                found[-1] = self.room(way)
                scratch.append(found[-1])
                self.put(self.copy_of(x, found[-1]), x, self.one, found[-1])
        return found[0], found[1]

    def copy_of(self, x: Value, made: Value) -> Step | None:
        """A copy as a step."""
        axes = [Axis(self.extents[label], x.strides[label], 0, along) for label, along in made.strides.items()]
        return copied(self.code, axes, self.most) or self.step_of(x, self.one, made)

    def layout(self, result: int, labels: Sequence[int], left: Value, right: Value) -> Labels:
        """Layout of an intermediate result: the preferred one or, where it matters, the cheapest with the next step."""
        if result not in self.taken:
            return self.result_layout(labels, left, right)
        small = prod([self.extents[label] for label in labels]) < tuning.LAYOUT_MIN_ELEMENTS or self.scales(
            labels, left, right
        )
        ways = self.ways(result, labels, left.strides, right.strides, first=small)
        if len(ways) == 1:
            return ways[0]
        costs: list[float] = []
        for way in ways:
            steps = self.trial(result, labels, left, right, way)
            if all(settled(self.code, step.sizes, step.cost) for step in steps):
                return way
            costs.append(sum([step.cost for step in steps]))
        return ways[costs.index(min(costs))]

    def result_layout(self, labels: Sequence[int], left: Value, right: Value) -> Labels:
        """Layout of a large output: in the order of its labels, or a cheaper one."""
        best = tuple(labels)
        value = Value(0, 0, self.strides(best))
        plain = self.step_of(left, right, value)
        if plain is None or settled(self.code, plain.sizes, plain.cost):
            return best
        larger = max([self.bytes_of([*x.strides]) for x in (left, right)])
        if plain.kernel == "scaling" and 4 * larger <= self.bytes_of(best):
            return best  # an outer product in runs writes each cache line once, in order: nothing takes less
        least = tuning.FREE_OUTPUT_FACTOR * (self.blocks_of(left, right, value) or plain).cost
        for way in results(best, left.strides, right.strides):
            step = self.step_of(left, right, Value(0, 0, self.strides(way)))
            if step is not None and step.cost < least:
                best, least = way, step.cost
        return best

    def scales(self, labels: Sequence[int], left: Value, right: Value) -> bool:
        """Whether a step only multiplies a value by a small one, so the result should keep the layout of that value."""
        if {*left.strides, *right.strides} != {*labels}:
            return False
        sizes = [self.bytes_of([*x.strides]) for x in (left, right)]
        return tuning.SCALING_FACTOR * min(sizes) <= max(sizes) == self.bytes_of(labels)

    def ways(self, result: int, labels: Sequence[int], left: Strides, right: Strides, *, first: bool) -> list[Labels]:
        """Possible layouts of a result, the preferred one first, or only that one."""
        partner, after = set[int](), set[int]()
        if result in self.taken:
            term, made = self.taken[result]
            partner = {label for v in term if v != result for label in self.graph.values[v]}
            after = {*self.graph.values[made]}
        return orders(self.graph, self.code.width, labels, left, right, partner, after, first=first)

    def trial(self, result: int, labels: Sequence[int], left: Value, right: Value, way: Labels) -> list[Step]:
        """The step that produces a result and the first that uses it, if it has this layout."""
        mine = Value(0, 0, self.strides(way))
        term, after = self.taken[result]
        partner = next((self.partner(v) for v in term if v != result), self.one)
        labels_after = self.graph.values[after]
        if after in self.fixed:
            along = by_label(labels_after, self.fixed[after])
        else:
            distinct = tuple(dict.fromkeys(labels_after))
            along = self.strides(self.ways(after, distinct, mine.strides, partner.strides, first=True)[0])
        steps = (self.step_of(left, right, mine), self.step_of(mine, partner, Value(0, 0, along)))
        return [step for step in steps if step is not None]

    def partner(self, value: int) -> Value:
        """An existing value, or one laid out in the order of its labels."""
        return self.values.get(value) or Value(0, 0, self.strides(self.graph.values[value]))

    def place(self, result: int, labels: Labels, left: Value, right: Value) -> tuple[Value, Labels]:
        """Memory of a result, and its labels in memory order; only outputs have elements off diagonals."""
        distinct = tuple(dict.fromkeys(labels))
        if result in self.fixed:
            along = by_label(labels, self.fixed[result])
            layout = tuple(sorted(distinct, key=lambda label: -abs(along[label])))
            return Value(self.base[result], 0, along), layout
        if result in self.base and len(distinct) < len(labels):
            return Value(self.base[result], 0, by_label(labels, self.in_order(result))), distinct
        layout = self.layout(result, distinct, left, right)
        if result in self.base:
            self.orders[result] = layout
            return Value(self.base[result], 0, self.strides(layout)), layout
        return self.room(layout), layout

    def emit(self, left: Value, right: Value, value: Value) -> Step | None:
        """The record of a product."""
        return self.put(self.step_of(left, right, value), left, right, value)

    def put(self, step: Step | None, left: Value, right: Value, value: Value) -> Step | None:
        """A step with the addresses of its operands and result."""
        if step is not None:
            self.steps.append((step, ((left.base, left.at), (right.base, right.at), (value.base, value.at))))
        return step

    def axes_of(self, left: Value, right: Value, value: Value) -> tuple[Plain, ...]:
        """Extents and strides of all labels."""
        a, b, c, extents = left.strides, right.strides, value.strides, self.extents
        return tuple([(extents[x], a.get(x, 0), b.get(x, 0), c.get(x, 0)) for x in {**a, **b, **c}])

    def step_of(self, left: Value, right: Value, value: Value) -> Step | None:
        """A product as a step."""
        axes = self.axes_of(left, right, value)
        if axes not in self.known:
            self.known[axes] = plan_step(self.code, axes, self.most)
        return self.known[axes]
