"""Batching rules: contractions get one more label, on the operands and values that differ between lanes.

Sliced contractions have no rule: they run lane by lane, so that each needs no more memory than alone.
"""

from __future__ import annotations

from typing import Any

from tenferro_einsum._contract import contract
from tenferro_einsum._contractions import contractions
from tenferro_einsum._graph import GraphSteps
from tenferro_einsum._tree import Numbers, Steps, structure
from tenferro_runtime.batching import Shared
from tenferro_runtime.extension import DimLike, Registry
from tenferro_tensor import catalog
from tenferro_tensor.device_model import GraphStep

Flags = tuple[bool, ...]


def _contract(
    size: DimLike, values: tuple[Any, ...], batched: Flags, *, inputs: Steps, output: Numbers, steps: Steps,
    kept: Numbers = (),
) -> Any:  # fmt: skip
    lane = _new_label(inputs)
    terms, result = _labelled(inputs, batched, lane), (lane, *output)
    found = contract(*values, inputs=terms, output=result, steps=steps, kept=kept)
    if not kept:
        return found
    labels = structure(terms, result, steps, kept).values
    return (found[0], *[_lanes_first(x, labels[v], lane) for x, v in zip(found[1:], kept, strict=True)])


def _lanes_first(x: Any, labels: Numbers, lane: int) -> Any:
    if lane not in labels:
        return Shared(x)
    axis = labels.index(lane)
    order = (axis, *range(axis), *range(axis + 1, len(labels)))
    return catalog.transpose(x, permutation=order) if axis else x


def _contractions(
    size: DimLike, values: tuple[Any, ...], batched: Flags, *, inputs: Steps, steps: GraphSteps, outputs: Numbers,
    conjugated: int = 0,
) -> Any:  # fmt: skip
    lane = _new_label(inputs)
    terms, made, number, flags = labelled_graph(inputs, steps, batched, lane)
    wanted = tuple([number[v] for v in outputs])
    found = contractions(*values, inputs=terms, steps=made, outputs=wanted, conjugated=conjugated)
    return tuple([x if flags[v] else Shared(x) for x, v in zip(found, outputs, strict=True)])


def labelled_graph(
    inputs: Steps, steps: GraphSteps, batched: Flags, lane: int
) -> tuple[Steps, GraphSteps, list[int], list[bool]]:
    """The graph with one more leading label on all values that depend on batched operands.

    Returns:
        Labels of operands, steps, the new number of each old value, and whether each value has the label.

    >>> labelled_graph(((0, 1), (1,)), (((0,), ((0, 1),)),), (False, True), 2)
    (((0, 1), (2, 1)), (((2, 0), ((0, 1),)),), [0, 1, 2], [False, True, True])
    """
    number, flags = list(range(len(inputs))), list(batched)
    old, made = list(inputs), list[GraphStep]()
    for labels, terms in steps:
        there = any(flags[v] for term in terms for v in term)
        parts = []
        for term in terms:
            part = tuple([number[v] for v in term])
            if there and len(term) == 2 and not any(flags[v] for v in term):
                # All lanes share the product: compute it once, and broadcast it.
                have = {x for v in term for x in old[v]}
                made.append((tuple([x for x in dict.fromkeys(labels) if x in have]), (part,)))
                part = (len(inputs) + len(made) - 1,)
            parts.append(part)
        made.append(((lane, *labels) if there else labels, tuple(parts)))
        number.append(len(inputs) + len(made) - 1)
        flags.append(there)
        old.append(labels)
    return _labelled(inputs, batched, lane), tuple(made), number, flags


def _new_label(inputs: Steps) -> int:
    return 1 + max([x for labels in inputs for x in labels], default=-1)


def _labelled(inputs: Steps, batched: Flags, lane: int) -> Steps:
    return tuple([(lane, *labels) if lanes else labels for labels, lanes in zip(inputs, batched, strict=True)])


def register(registry: Registry) -> None:
    """Register the rules."""
    registry.batching(contract, _contract)
    registry.batching(contractions, _contractions)
