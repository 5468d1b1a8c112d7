"""How much memory a contraction and its gradient need at once, and which labels to slice to need less.

Bytes count what a call allocates, its results included, its operands not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from tenferro_einsum._contract import engine
from tenferro_einsum._pairwise import Labels, join
from tenferro_einsum._tree import Numbers, Sliced, Steps, intermediates, structure
from tenferro_runtime.extension import Spec, TenferroError
from tenferro_tensor.device_model import ContractionIR


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

    def forward(self, *, kept: bool = False) -> int:
        """Peak of the contraction; `kept` if it keeps its intermediates."""
        values = intermediates(self.inputs, self.steps) if kept else ()
        found = self._engine(self.inputs, self.output, self.steps, values)
        return self._stepwise(kept) if found is None else int(found.peak_bytes)

    def backward(self) -> int:
        """Peak of the contraction and of the gradients of all its operands, in the order in which they are pulled."""
        values = self._tree.values
        if not self.steps:
            return 2 * self.bytes(self.output) + self.bytes(self.inputs[0])
        live = self.bytes(self.output) + sum([self.bytes(values[v]) for v in intermediates(self.inputs, self.steps)])
        peak = max(self.forward(kept=True), live)
        live += self.bytes(self.output)  # once more, where the gradient makes values anew
        for number in reversed(range(len(self.steps))):
            step, of_z = self.steps[number], values[len(self.inputs) + number]
            for v, other in zip(step, reversed(step), strict=True):
                of_v, of_h = values[v], of_z
                if len(step) == 2:
                    of_h = tuple([x for x in dict.fromkeys(of_v) if x in of_z or x in values[other]])
                    conj = self.bytes(values[other]) if self.like.cplx else 0
                    peak = max(peak, live + conj + self._pair(of_z, values[other], of_h))
                spread = self.bytes(of_v) + (self.bytes(of_h) if len(step) == 2 else 0) if of_h != of_v else 0
                peak = max(peak, live + spread)
                live += self.bytes(of_v)
            live -= self.bytes(of_z)
        return peak

    def bytes(self, labels: Numbers) -> int:
        """Of an array with these labels."""
        return self.like.dtype.itemsize * prod([self.sizes[x] for x in labels])

    def kernels(self) -> dict[int, str]:
        """The engine's name for what computes each step, by number; empty without an engine."""
        found = self._engine(self.inputs, self.output, self.steps, ())
        return {} if found is None else {row.step: row.kernel for row in found.report()}

    def flops(self) -> int:
        """Multiplications and additions."""
        return ContractionIR(self.like.dtype, self.inputs, self.sizes, self.output, self.steps).flops

    def cut(self, parts: Mapping[int, int]) -> Network:
        """The largest slice, where labels are cut into numbers of parts."""
        sizes = tuple([-(-d // parts.get(x, 1)) for x, d in enumerate(self.sizes)])
        return Network(self.inputs, self.output, self.steps, sizes, self.like)

    @property
    def _tree(self) -> ContractionIR:
        return structure(self.inputs, self.output, self.steps)

    def _engine(self, inputs: Steps, output: Numbers, steps: Steps, kept: Numbers) -> Any:
        specs = tuple([self.like.with_(shape=tuple([self.sizes[x] for x in t])) for t in inputs])
        return engine(specs, inputs, output, steps, kept)

    def _pair(self, lx: Numbers, ly: Numbers, out: Numbers) -> int:
        """Peak of the contraction of two."""
        place = {x: n for n, x in enumerate(dict.fromkeys([*lx, *ly]))}
        terms = tuple([tuple([place[x] for x in t]) for t in (lx, ly)])
        small = Network(
            terms, tuple([place[x] for x in out]), ((0, 1),), tuple([self.sizes[x] for x in place]), self.like
        )
        return small.forward()

    def _stepwise(self, kept: bool) -> int:
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
            if not kept:
                used -= sum([self.bytes(live[v]) for v in step if v >= count])
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
        MemoryBudgetError: nothing that is left to halve makes it fit.
    """
    outputs = network.bytes(network.output)
    if gradient:
        outputs += sum([network.bytes(t) for t in network.inputs])
    peak: Callable[[Network], int] = Network.backward if gradient else Network.forward
    parts: dict[int, int] = {}
    small, needed = network, peak(network)
    least = needed
    while needed > budget:
        more = [{**parts, x: min(2 * parts.get(x, 1), network.sizes[x])} for x in _candidates(small)]
        if not more:
            what = "the contraction and its gradient" if gradient else "the contraction"
            raise MemoryBudgetError(
                f"einsum: {what} cannot be done within memory_budget={budget} bytes: in slices, with its results, it "
                f"takes {least} bytes; allow at least that much",
                budget=budget,
                needed=least,
            )
        parts = min(more, key=lambda p: _total(network, p))
        small = network.cut(parts)
        needed = outputs + peak(small)
        if gradient:  # one of its results is the part of the whole one
            needed -= small.bytes(network.output)
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
