"""Derivatives of contraction graphs, as graphs that share intermediate values in either direction.

A term ``z += sum x y`` passes the cotangent g of z as ``sum g y`` to x and ``sum g x`` to y: two contractions of its
own size. So all cotangents of a graph cost twice its operations, for any number of operands, and once more if its
values are recomputed; tangents cost as much. Derivatives here are holomorphic, without conjugates.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tenferro_einsum._tree import Numbers, Steps, structure
from tenferro_tensor.device_model import GraphStep

GraphSteps = tuple[GraphStep, ...]
Ref = tuple[str, int]
"""A value of the old graph, ``("value", v)``, or of the new one: operand ``("seed", n)`` or step ``("made", n)``."""


def of_tree(inputs: Steps, output: Numbers, steps: Steps) -> tuple[GraphSteps, int]:
    """The steps of a tree as graph steps, and the number of the result."""
    graph = structure(inputs, output, steps).graph
    return graph.steps, graph.outputs[0]


class GraphWriter:
    """Builds a graph whose operands are seeds, then the operands and the known values of an old graph."""

    def __init__(self, inputs: Steps, steps: GraphSteps, known: Numbers) -> None:
        self.inputs, self.steps, self.known = inputs, steps, known
        self.labels: list[Numbers] = [*inputs, *[labels for labels, _ in steps]]
        self.seeds: list[Numbers] = []
        self.made: list[tuple[Numbers, list[tuple[Ref, ...]]]] = []

    def seed(self, v: int) -> Ref:
        """An operand with the labels of a value."""
        self.seeds.append(self.labels[v])
        return "seed", len(self.seeds) - 1

    def labels_of(self, ref: Ref) -> Numbers:
        kind, n = ref
        return self.labels[n] if kind == "value" else self.seeds[n] if kind == "seed" else self.made[n][0]

    def make(self, labels: Numbers, terms: list[tuple[Ref, ...]]) -> Ref:
        """A new value; a product is broadcast along labels that its operands lack in a separate step."""
        spread = []
        for term in terms:
            have = {x for ref in term for x in self.labels_of(ref)}
            if len(term) == 2 and not have.issuperset(labels):
                self.made.append((tuple([x for x in dict.fromkeys(labels) if x in have]), [term]))
                term = (("made", len(self.made) - 1),)
            spread.append(term)
        self.made.append((labels, spread))
        return "made", len(self.made) - 1

    def written(self, outputs: Sequence[Ref]) -> tuple[Steps, GraphSteps, Numbers]:
        """Operands' labels, steps and outputs; old values are recomputed before the first step that needs them."""
        count = len(self.inputs)
        operands = (*self.seeds, *self.inputs, *[self.labels[v] for v in self.known])
        place: dict[Ref, int] = {("seed", n): n for n in range(len(self.seeds))}
        place |= {("value", v): len(self.seeds) + n for n, v in enumerate((*range(count), *self.known))}
        steps: list[GraphStep] = []

        def put(ref: Ref, labels: Numbers, terms: Sequence[tuple[Ref, ...]]) -> None:
            place[ref] = len(operands) + len(steps)
            steps.append((labels, tuple([tuple([place[u] for u in term]) for term in terms])))

        for n, (labels, terms) in enumerate(self.made):
            needed: set[int] = set()
            stack = [ref for term in terms for ref in term]
            while stack:
                ref = stack.pop()
                if ref not in place and ref[1] not in needed:
                    needed.add(ref[1])
                    stack += [("value", u) for term in self.steps[ref[1] - count][1] for u in term]
            for v in sorted(needed):
                its, parts = self.steps[v - count]
                put(("value", v), its, [tuple([("value", u) for u in term]) for term in parts])
            put(("made", n), labels, terms)
        return operands, tuple(steps), tuple([place[ref] for ref in outputs])


def transposed(
    inputs: Steps, steps: GraphSteps, seeds: Numbers, wanted: Numbers, known: Numbers
) -> tuple[Steps, GraphSteps, Numbers, Numbers]:
    """The graph of cotangents; its operands are cotangents of the values `seeds`, the operands, and the values `known`.

    Returns:
        Its operands' labels, steps and outputs, and the indices of the operands whose cotangents these are; the others
        are zero.
    """
    count, writer = len(inputs), GraphWriter(inputs, steps, known)
    active = {*wanted}
    for v, (_, terms) in enumerate(steps, count):
        if any(u in active for term in terms for u in term):
            active.add(v)
    reached = {*seeds}
    uses = dict.fromkeys(range(count + len(steps)), 0)
    for v in reversed(range(count, count + len(steps))):
        if v in reached:
            for u in [u for term in steps[v - count][1] for u in term]:
                reached.add(u)
                uses[u] += 1
    terms_of: dict[int, list[tuple[Ref, ...]]] = {v: [] for v in reached}
    for v in seeds:
        terms_of[v].append((writer.seed(v),))
    found: dict[int, Ref] = {}

    def finish(v: int) -> None:
        if v not in active:
            return
        terms = terms_of.pop(v)
        alone = len(terms) == 1 and len(terms[0]) == 1 and v >= count
        if alone and writer.labels_of(terms[0][0]) == writer.labels[v]:
            found[v] = terms[0][0]
        else:
            found[v] = writer.make(writer.labels[v], terms)

    for v in seeds:
        if not uses[v]:
            finish(v)
    for v in reversed(range(count, count + len(steps))):
        if v not in reached:
            continue
        g = found.get(v)
        for term in steps[v - count][1]:
            for n, u in enumerate(term):
                if g is not None and u in active:
                    terms_of[u].append((g, *[("value", other) for other in term[:n] + term[n + 1 :]]))
                uses[u] -= 1
                if not uses[u]:
                    finish(u)
    those = tuple([v for v in wanted if v in found])
    return (*writer.written([found[v] for v in those]), those)


def pushed(
    inputs: Steps, steps: GraphSteps, outputs: Numbers, given: Numbers, known: Numbers
) -> tuple[Steps, GraphSteps, Numbers, Numbers]:
    """The graph of tangents; its operands are tangents of the operands `given`, the operands, and the values `known`.

    Returns:
        Its operands' labels, steps and outputs, and the indices of the outputs whose tangents these are; the others
        are zero.
    """
    count, writer = len(inputs), GraphWriter(inputs, steps, known)
    found: dict[int, Ref] = {v: writer.seed(v) for v in given}
    for v, (labels, terms) in enumerate(steps, count):
        moved: list[tuple[Ref, ...]] = []
        for term in terms:
            for n, u in enumerate(term):
                if u in found:
                    moved.append((found[u], *[("value", other) for other in term[:n] + term[n + 1 :]]))
        if moved:
            found[v] = writer.make(labels, moved)
    those = tuple([n for n, v in enumerate(outputs) if v in found])
    return (*writer.written([found[outputs[n]] for n in those]), those)


def without_dead(inputs: Steps, steps: GraphSteps, outputs: Numbers) -> tuple[GraphSteps, Numbers]:
    """The steps that the outputs need, renumbered."""
    count, live = len(inputs), {*outputs}
    for v in reversed(range(count, count + len(steps))):
        if v in live:
            live.update(u for term in steps[v - count][1] for u in term)
    number = {v: v for v in range(count)}
    kept: list[GraphStep] = []
    for v, (labels, terms) in enumerate(steps, count):
        if v in live:
            number[v] = count + len(kept)
            kept.append((labels, tuple([tuple([number[u] for u in term]) for term in terms])))
    return tuple(kept), tuple([number[v] for v in outputs])


def placed(found: Sequence[Any], where: Numbers, count: int) -> list[Any]:
    """Values at their positions among `count`, ``None`` at the others."""
    result: list[Any] = [None] * count
    for n, x in zip(where, found, strict=True):
        result[n] = x
    return result
