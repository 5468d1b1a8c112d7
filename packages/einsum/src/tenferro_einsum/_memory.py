"""How much memory a contraction and its gradient need at once, and which labels to slice to need less.

Bytes count what a call allocates, its results included, its operands not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Final

from tenferro_einsum._contract import engine
from tenferro_einsum._contractions import graph_engine
from tenferro_einsum._graph import GraphSteps, of_tree, transposed
from tenferro_einsum._pairwise import Labels, join
from tenferro_einsum._tree import Numbers, Sliced, Steps, structure
from tenferro_runtime.extension import Spec, TenferroError
from tenferro_tensor.device_model import ContractionIR

LONG: Final = 200_000
"""Multiplications and additions that take longer than to record one value more."""

MOST: Final = 1 << 20
"""Slices that a contraction is done in at most: where values that have no label in common all have to become smaller,
their numbers of parts multiply."""


class MemoryBudgetError(TenferroError, MemoryError):
    """A contraction cannot be done within the memory that it was allowed to use."""


@dataclass(frozen=True)
class Network:
    """A contraction with numbers for all extents.

    Attributes:
        inputs: labels of the operands.
        output: labels of the result.
        steps: values joined by each step.
        sizes: extent of each label.
        like: a spec with the dtype and the place of the operands.
    """

    inputs: Steps
    output: Numbers
    steps: Steps
    sizes: tuple[int, ...]
    like: Spec

    def forward(self, kept: Numbers = ()) -> int:
        """Peak of the contraction; values with the numbers `kept` are results too."""
        found = self._engine(kept)
        return self.stepwise(kept) if found is None else int(found.peak_bytes)

    def backward(self, kept: Numbers = ()) -> int:
        """Peak of the contraction and of the gradients of all its operands, where values `kept` are kept for these."""
        held = self.bytes(self.output) + sum([self.bytes(self._tree.values[v]) for v in kept])
        return max(self.forward(kept), held + self.gradients(kept))

    def gradients(self, kept: Numbers = ()) -> int:
        """Peak of the gradients of all operands."""
        graph, last = of_tree(self.inputs, self.output, self.steps)
        inputs, steps, outputs, _ = transposed(self.inputs, graph, (last,), tuple(range(len(self.inputs))), kept)
        specs = [self.like.with_(shape=tuple([self.sizes[x] for x in t])) for t in inputs]
        found = graph_engine(specs, inputs, steps, outputs)
        conj = self.bytes(self.output) if self.like.cplx else 0
        return conj + (self._by_ops(inputs, steps, outputs) if found is None else int(found.peak_bytes))

    def backward_by_ops(self) -> int:
        """Peak of a contraction of two, and of the gradients of both, where ops of the core do them one by one."""
        graph, last = of_tree(self.inputs, self.output, self.steps)
        inputs, steps, outputs, _ = transposed(self.inputs, graph, (last,), (0, 1), ())
        conj = max([self.bytes(t) for t in self.inputs]) if self.like.cplx else 0
        return max(self.stepwise(), self.bytes(self.output) + conj + self._by_ops(inputs, steps, outputs))

    def bytes(self, labels: Numbers) -> int:
        """Of an array with these labels."""
        return self.like.dtype.itemsize * prod([self.sizes[x] for x in labels])

    def kernels(self) -> dict[int, str]:
        """The engine's name for what computes each step, by number; empty without an engine."""
        found = self._engine()
        return {} if found is None else {row.step: row.kernel for row in found.report()}

    def flops(self) -> int:
        """Multiplications and additions."""
        return ContractionIR(self.like.dtype, self.inputs, self.sizes, self.output, self.steps).flops

    def worth_keeping(self) -> Numbers:
        """Values that take longer to make anew for a gradient than it takes to hand them on."""
        values, factor = self._tree.values, 8 if self.like.cplx else 2
        found = []
        for v, step in enumerate(self.steps[:-1], len(self.inputs)):
            space = {x for u in step for x in values[u]}
            if factor * prod([self.sizes[x] for x in space]) >= LONG:
                found.append(v)
        return tuple(found)

    def cut(self, parts: Mapping[int, int]) -> Network:
        """The largest slice, where labels are cut into numbers of parts."""
        sizes = tuple([-(-d // parts.get(x, 1)) for x, d in enumerate(self.sizes)])
        return Network(self.inputs, self.output, self.steps, sizes, self.like)

    @property
    def _tree(self) -> ContractionIR:
        return structure(self.inputs, self.output, self.steps)

    def _engine(self, kept: Numbers = ()) -> Any:
        specs = tuple([self.like.with_(shape=tuple([self.sizes[x] for x in t])) for t in self.inputs])
        return engine(specs, self.inputs, self.output, self.steps, kept)

    def _by_ops(self, inputs: Steps, steps: GraphSteps, outputs: Numbers) -> int:
        """Peak of a graph that is done step by step: what is alive, and what a step copies."""
        labels_of = [*inputs, *[labels for labels, _ in steps]]
        last = {u: v for v, (_, terms) in enumerate(steps, len(inputs)) for term in terms for u in term}
        used = peak = 0
        for v, (labels, terms) in enumerate(steps, len(inputs)):
            copies = 0
            for term in terms:
                x, y = (labels_of[u] for u in (term * 2)[:2])
                copied = [self.bytes(a) for a, b in ((x, y), (y, x)) if len(term) == 2 and _is_copied(a, b, labels)]
                copies = max(copies, sum(copied))
            peak = max(peak, used + copies + min(len(terms), 3) * self.bytes(labels))
            used += self.bytes(labels)
            for u in {u for term in terms for u in term}:
                if u >= len(inputs) and last[u] == v and u not in outputs:
                    used -= self.bytes(labels_of[u])
        return peak

    def stepwise(self, kept: Numbers = ()) -> int:
        """Peak where steps are done one by one: what is alive, and what a step copies to bring it into a matrix."""
        count = len(self.inputs)
        live = [tuple(dict.fromkeys(labels)) for labels in self.inputs]
        used = peak = 0
        for number, step in enumerate(self.steps):
            wanted = self._tree.values[count + number]
            copies = 0
            if len(step) == 2:
                x, y = (live[v] for v in step)
                copies = sum([self.bytes(a) for a, b in ((x, y), (y, x)) if _is_copied(a, b, wanted)])
                live.append(join(x, y, self.sizes, {*wanted})[1])
            else:
                live.append(wanted)
            peak = max(peak, used + self.bytes(wanted) + copies)
            used += self.bytes(wanted)
            used -= sum([self.bytes(live[v]) for v in step if v >= count and v not in kept])
        return max(peak, used, self.bytes(self.output))


def _is_copied(labels: Labels, other: Labels, wanted: Labels) -> bool:
    """Whether an operand of a matrix product is copied: its axes do not lie as those of a stack of matrices."""
    batch = [x for x in other if x in labels and x in wanted]
    summed = [x for x in labels if x in other and x not in wanted]
    free = [x for x in labels if x not in other]
    if not summed or (len(summed) < 2 and len(free) < 2):
        return False
    return list(labels) not in ([*batch, *free, *summed], [*batch, *summed, *free])


@dataclass(frozen=True)
class Slicing:
    """Labels that are sliced, and what that takes.

    Attributes:
        sliced: the labels by number, each with the number of parts into which its extent is cut.
        count: number of slices.
        peak: bytes at once.
        flops: operations of the contraction in all slices together.
    """

    sliced: Sliced
    count: int
    peak: int
    flops: int


def choose(network: Network, budget: int, *, gradient: bool) -> Slicing:
    """How to slice so that the contraction, or it and its gradient, stays within a budget of bytes.

    One halving after the other: of the labels of the largest value, the one that adds the fewest operations.

    Raises:
        MemoryBudgetError: nothing that is left to halve makes it fit, or there are too many slices.
    """
    parts: dict[int, int] = {}
    small, needed = network, network.backward() if gradient else network.forward()
    least = needed
    while needed > budget:
        more = [{**parts, x: min(2 * parts.get(x, 1), network.sizes[x])} for x in _candidates(small)]
        if not more or prod(parts.values()) > MOST:
            what = "the contraction and its gradient" if gradient else "the contraction"
            how = f"in up to {MOST} slices" if more else "in slices"
            raise MemoryBudgetError(
                f"einsum: {what} cannot be done within memory_budget={budget} bytes: {how}, with its results, it "
                f"takes {least} bytes; allow at least that much",
                budget=budget,
                needed=least,
            )
        parts = min(more, key=lambda p: _total(network, p))
        small = network.cut(parts)
        result = network.bytes(network.output)
        needed = result + small.forward()
        if gradient:
            gradients = sum([network.bytes(t) for t in network.inputs])
            needed = max(needed, result + gradients + small.gradients())
        least = min(least, needed)
    # Labels of the output vary slowest, so that neighbouring slices add to one place.
    order = sorted(parts, key=lambda x: (x not in network.output, x))
    return Slicing(tuple([(x, parts[x]) for x in order]), prod(parts.values()), needed, _total(network, parts))


def _total(network: Network, parts: Mapping[int, int]) -> int:
    return prod(parts.values()) * network.cut(parts).flops()


def _candidates(network: Network) -> Sequence[int]:
    """Labels of the largest value that can still be sliced; of any value, where that one has none."""
    values = structure(network.inputs, network.output, network.steps).values
    for v in sorted(range(len(values)), key=lambda v: -network.bytes(values[v])):
        found = [x for x in dict.fromkeys(values[v]) if network.sizes[x] > 1]
        if found:
            return found
    return ()
