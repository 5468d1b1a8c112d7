"""Peak memory of a contraction and its gradient, and the choice of labels to slice to reduce it.

Bytes count the allocations of a call, including its results but not its operands.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any, Final

from tenferro_einsum._branches import constant, split_at
from tenferro_einsum._contract import engine
from tenferro_einsum._contractions import graph_engine
from tenferro_einsum._graph import GraphSteps, of_tree, transposed
from tenferro_einsum._pairwise import Labels, join
from tenferro_einsum._tree import Numbers, Sliced, Steps, numbered, structure
from tenferro_runtime.extension import Spec, TenferroError
from tenferro_tensor.device_model import ContractionIR, ContractionKernel

RECORD_MIN_OPERATIONS: Final = 200_000
"""Minimum number of operations of a step for its value to be kept for the gradient."""

ENGINE_MIN_MULTIPLICATIONS: Final = 1_000_000
"""Minimum number of multiplications of a product for an engine; a quarter of it for complex numbers."""

MAX_SLICES: Final = 1 << 20
"""Maximum number of slices. If several values without common labels must shrink, their numbers of parts multiply."""


class MemoryBudgetError(TenferroError, MemoryError):
    """A contraction does not fit into its memory budget."""


@dataclass(frozen=True)
class Network:
    """A contraction with numeric extents.

    Attributes:
        inputs: labels of the operands.
        output: labels of the result.
        steps: values contracted by each step.
        sizes: extent of each label.
        like: a spec with the dtype and device of the operands.
        around: extents of the arrays that the operands are parts of, if these are larger.
    """

    inputs: Steps
    output: Numbers
    steps: Steps
    sizes: tuple[int, ...]
    like: Spec
    around: tuple[int, ...] = ()

    def forward(self, kept: Numbers = ()) -> int:
        """Peak memory of the contraction; the values `kept` are further results."""
        found = self._engine(kept)
        return self.stepwise(kept) if found is None else self._peak(found, self.inputs)

    def backward(self, kept: Numbers = ()) -> int:
        """Peak memory of the contraction and of the gradients of all operands, with the values `kept` saved."""
        held = self.bytes(self.output) + sum([self.bytes(self.values[v]) for v in kept])
        return max(self.forward(kept), held + self.gradients(kept))

    def gradients(self, kept: Numbers = ()) -> int:
        """Peak memory of the gradients of all operands."""
        graph, last = of_tree(self.inputs, self.output, self.steps)
        inputs, steps, outputs, _ = transposed(self.inputs, graph, (last,), tuple(range(len(self.inputs))), kept)
        specs = [self.like.with_(shape=tuple([self.sizes[x] for x in t])) for t in inputs]
        found = graph_engine(specs, inputs, steps, outputs, 1 if self.like.cplx else 0)
        if found is not None:
            return self._peak(found, inputs)
        return self._by_ops(inputs, steps, outputs) + (self.bytes(self.output) if self.like.cplx else 0)

    def backward_by_ops(self) -> int:
        """Peak memory of a contraction of two operands and both gradients, as separate core ops."""
        graph, last = of_tree(self.inputs, self.output, self.steps)
        inputs, steps, outputs, _ = transposed(self.inputs, graph, (last,), (0, 1), ())
        conj = max([self.bytes(t) for t in self.inputs]) if self.like.cplx else 0
        return max(self.stepwise(), self.bytes(self.output) + conj + self._by_ops(inputs, steps, outputs))

    def bytes(self, labels: Numbers) -> int:
        """Bytes of an array with these labels."""
        return self.like.dtype.itemsize * prod([self.sizes[x] for x in labels])

    def kernels(self) -> dict[int, str]:
        """The engine's name of the kernel of each step, by number; empty without an engine."""
        found = self._engine()
        return {} if found is None else {row.step: row.kernel for row in found.report()}

    def worth_keeping(self) -> Numbers:
        """Values that are cheaper to keep for a gradient than to recompute."""
        values, factor = self.values, 8 if self.like.cplx else 2
        found = []
        for v, step in enumerate(self.steps[:-1], len(self.inputs)):
            space = {x for u in step for x in values[u]}
            if factor * prod([self.sizes[x] for x in space]) >= RECORD_MIN_OPERATIONS:
                found.append(v)
        return tuple(found)

    def cut(self, parts: Mapping[int, int]) -> Network:
        """The largest slice, for given numbers of parts by label."""
        sizes = tuple([-(-d // parts.get(x, 1)) for x, d in enumerate(self.sizes)])
        return replace(self, sizes=sizes, around=self.sizes)

    def parted(self, roots: Numbers) -> tuple[list[Network], Network]:
        """The networks that compute the values `roots`, and the network that uses them."""
        if not roots:
            return [], self
        found = split_at(self.inputs, self.output, self.steps, roots)
        parts = [replace(self, inputs=p.inputs, output=p.output, steps=p.steps) for p in (*found.branches, found.trunk)]
        return parts[:-1], parts[-1]

    @property
    def values(self) -> tuple[Numbers, ...]:
        """Labels of every value."""
        return self._tree.values

    @property
    def _tree(self) -> ContractionIR:
        return structure(self.inputs, self.output, self.steps)

    def _peak(self, kernel: ContractionKernel, operands: Steps) -> int:
        """The engine's peak memory for operands with these labels."""
        if not self.around:
            return kernel.peak_bytes
        item, strides = self.like.dtype.itemsize, []
        for labels in operands:
            strides.append(tuple([item * prod([self.around[x] for x in labels[a + 1 :]]) for a in range(len(labels))]))
        return kernel.peak_bytes_at(strides)

    def _engine(self, kept: Numbers = ()) -> Any:
        specs = tuple([self.like.with_(shape=tuple([self.sizes[x] for x in t])) for t in self.inputs])
        return engine(specs, self.inputs, self.output, self.steps, kept)

    def _by_ops(self, inputs: Steps, steps: GraphSteps, outputs: Numbers) -> int:
        """Peak memory of a graph that runs step by step: live values, and the copies of a step."""
        labels_of = [*inputs, *[labels for labels, _ in steps]]
        last = {u: v for v, (_, terms) in enumerate(steps, len(inputs)) for term in terms for u in term}
        used = peak = 0
        for v, (labels, terms) in enumerate(steps, len(inputs)):
            copies = 0
            for term in terms:
                x, y = (labels_of[u] for u in (term * 2)[:2])
                copied = [self.bytes(a) for a, b in ((x, y), (y, x)) if len(term) == 2 and _is_copied(a, b, labels)]
                copies = max(copies, sum(copied) + (self._packed(x, y, labels) if len(term) == 2 else 0))
            peak = max(peak, used + copies + min(len(terms), 3) * self.bytes(labels))
            used += self.bytes(labels)
            for u in {u for term in terms for u in term}:
                if u >= len(inputs) and last[u] == v and u not in outputs:
                    used -= self.bytes(labels_of[u])
        return peak

    def _packed(self, x: Numbers, y: Numbers, wanted: Numbers) -> int:
        """Bytes that an engine packs for core products: large stacks, and products with transposed matrices."""
        turned = y[-1:] and y[-1] in x and y[-1] not in wanted
        stacked = any(label in y and label in wanted for label in x)
        space = prod([self.sizes[label] for label in {*x, *y}])
        if (
            not (turned or stacked)
            or {*x, *y} == {*wanted}
            or space <= (ENGINE_MIN_MULTIPLICATIONS >> 2 * self.like.cplx)
        ):
            return 0
        inputs, output = numbered((x, y), tuple(dict.fromkeys(wanted)))
        specs = tuple([self.like.with_(shape=tuple([self.sizes[label] for label in t])) for t in (x, y)])
        found = engine(specs, inputs, output, ((0, 1),), ())
        return 0 if found is None else found.peak_bytes - self.bytes(wanted)

    def stepwise(self, kept: Numbers = ()) -> int:
        """Peak memory of separate steps."""
        return max([*self.alive(kept), self.bytes(self.output)])

    def alive(self, kept: Numbers = ()) -> list[int]:
        """Live bytes at each of separate steps: results, and copies that rearrange operands to matrices. The values
        `kept` stay alive."""
        count = len(self.inputs)
        live = [tuple(dict.fromkeys(labels)) for labels in self.inputs]
        used, found = 0, []
        for number, step in enumerate(self.steps):
            wanted = self.values[count + number]
            copies = 0
            if len(step) == 2:
                x, y = (live[v] for v in step)
                copies = sum([self.bytes(a) for a, b in ((x, y), (y, x)) if _is_copied(a, b, wanted)])
                copies += self._packed(x, y, wanted)
                live.append(join(x, y, self.sizes, {*wanted})[1])
            else:
                live.append(wanted)
            used += self.bytes(wanted)
            found.append(used + copies)
            used -= sum([self.bytes(live[v]) for v in step if v >= count and v not in kept])
        return found


def _is_copied(labels: Labels, other: Labels, wanted: Labels) -> bool:
    """Whether an operand of a matrix product is copied, because its axes are not laid out as a stack of matrices."""
    batch = [x for x in other if x in labels and x in wanted]
    summed = [x for x in labels if x in other and x not in wanted]
    free = [x for x in labels if x not in other]
    if not summed or (len(summed) < 2 and len(free) < 2):
        return False
    return list(labels) not in ([*batch, *free, *summed], [*batch, *summed, *free])


@dataclass(frozen=True)
class Slicing:
    """The sliced labels of a contraction, and their cost.

    Attributes:
        sliced: the labels by number, each with its number of parts.
        once: numbers of the values that are the same in every slice, and are computed before the slices.
        count: number of slices.
        peak: peak memory in bytes.
        flops: operations of all slices.
        once_flops: operations of the values `once`, which are part of these.
    """

    sliced: Sliced
    once: Numbers
    count: int
    peak: int
    flops: int
    once_flops: int


def choose(network: Network, budget: int, *, gradient: bool) -> Slicing:
    """Choose slices that keep the contraction, or the contraction and its gradient, within a memory budget.

    A greedy search that repeatedly halves one label of the largest value, the one that adds the fewest operations.
    Values that are the same in every slice are computed once, if they fit.

    Raises:
        MemoryBudgetError: no further halving makes it fit, or there are too many slices.
    """
    parts: dict[int, int] = {}
    once: Numbers = ()
    small, needed = network, network.backward() if gradient else network.forward()
    least = needed
    while needed > budget:
        more = [{**parts, x: min(2 * parts.get(x, 1), network.sizes[x])} for x in _candidates(small)]
        if not more or prod(parts.values()) > MAX_SLICES:
            what = "the contraction and its gradient" if gradient else "the contraction"
            how = f"in up to {MAX_SLICES} slices" if more else "in slices"
            raise MemoryBudgetError(
                f"einsum: {what} does not fit into memory_budget={budget} bytes: {how}, with its results, it "
                f"takes {least} bytes; allow at least that much",
                budget=budget,
                needed=least,
            )
        parts = min(more, key=lambda p: sum(_flops(network, p, constant(network.inputs, network.steps, p))))
        small = network.cut(parts)
        for once in _affordable(network, parts):
            needed = _peak(network, parts, once, gradient=gradient)
            least = min(least, needed)
            if needed <= budget:
                break
    # Labels of the output vary slowest, so that consecutive slices add to one region.
    order = sorted(parts, key=lambda x: (x not in network.output, x))
    made, rest = _flops(network, parts, once)
    return Slicing(tuple([(x, parts[x]) for x in order]), once, prod(parts.values()), needed, made + rest, made)


def _affordable(network: Network, parts: Mapping[int, int]) -> Iterator[Numbers]:
    """Candidate sets of values to compute once: all worth keeping, then the half of them that saves the most
    operations per byte, and so on."""
    alike = constant(network.inputs, network.steps, parts)
    saved = {v: _flops(network, parts, (v,))[0] * (prod(parts.values()) - 1) for v in alike}
    left = [v for v in alike if saved[v] >= RECORD_MIN_OPERATIONS]
    left.sort(key=lambda v: -saved[v] / max(1, network.bytes(network.values[v])))
    while left:
        yield tuple(sorted(left))
        left = left[: len(left) // 2]
    yield ()


def _peak(network: Network, parts: Mapping[int, int], once: Numbers, *, gradient: bool) -> int:
    """Peak memory of computing the values `once`, then the slices, and for a gradient the reverse."""
    branches, trunk = network.parted(once)
    small, result = trunk.cut(parts), network.bytes(network.output)
    held = making = 0
    for branch in branches:
        making = max(making, held + branch.forward())
        held += branch.bytes(branch.output)
    peak = max(making, held + result + small.forward())
    if not gradient:
        return peak
    found = sum([network.bytes(t) for t in trunk.inputs])
    peak = max(peak, result + making, result + held + found + small.gradients())
    for branch in branches:
        peak = max(peak, result + found + branch.gradients())
        found += sum([network.bytes(t) for t in branch.inputs])
    return peak


def _flops(network: Network, parts: Mapping[int, int], once: Numbers) -> tuple[int, int]:
    """Operations of the values `once`, and of all slices."""
    sizes, count, first = network.cut(parts).sizes, prod(parts.values()), len(network.inputs)
    factor, values, below = 8 if network.like.cplx else 2, network.values, {*once}
    total = [0, 0]
    for v in reversed(range(first, len(values))):
        step = network.steps[v - first]
        flops = factor * prod([sizes[x] for x in {x for u in step for x in values[u]}])
        if v in below:
            below.update(step)
            total[0] += flops
        else:
            total[1] += flops * count
    return total[0], total[1]


def _candidates(network: Network) -> Sequence[int]:
    """Labels of the largest value that can still be sliced, or of any value if that one has none."""
    values = network.values
    for v in sorted(range(len(values)), key=lambda v: -network.bytes(values[v])):
        found = [x for x in dict.fromkeys(values[v]) if network.sizes[x] > 1]
        if found:
            return found
    return ()
