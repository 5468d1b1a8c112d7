"""How the result of a step lies in memory: its axes are free, and their order decides what the next steps cost.

The innermost axes come from one operand, whose rows are then vectors, and fill vectors; of these, free axes of the
step that takes the result are preferred. Outside lie the axes that this step has in common with its partner.
"""

from collections.abc import Mapping, Sequence
from math import prod
from typing import Final

from tenferro_tensor.device_model import ContractionGraph, Labels

LONG: Final = 96
"""Elements of an innermost run from which on it need not fill whole vectors."""

SMALL: Final = 4096
"""Elements of a partner that is repeated along whatever the result has innermost."""

Strides = Mapping[int, int]


def orders(
    graph: ContractionGraph, width: int, labels: Sequence[int], left: Strides, right: Strides, partner: frozenset[int],
    stays: frozenset[int],
) -> list[Labels]:  # fmt: skip
    """Ways in which a result may lie, outermost label first; the one that is best by rule comes first.

    Args:
        graph: the contractions.
        width: elements of a vector.
        labels: of the result.
        left: strides of the left operand, by label.
        right: those of the right operand.
        partner: labels of the value that the result meets next.
        stays: labels that are there after that step.
    """
    if len(labels) < 2:
        return [tuple(labels)]
    extent = graph.extents
    sizes = [prod([extent[x] for x in side]) for side in (left, right)]
    larger, other = (left, right) if sizes[0] >= sizes[1] else (right, left)

    def depth(label: int) -> tuple[int, int]:
        return (0, -abs(larger[label])) if label in larger else (-1, -abs(other.get(label, 0)))

    by_depth = sorted(labels, key=depth)
    kept = _run(graph, width, [x for x in labels if x in larger and x not in other], larger, [[], [], by_depth])
    keeping = (*[x for x in by_depth if x not in kept], *kept)
    groups: list[list[int]] = [[], [], []]
    for label in by_depth:
        groups[0 if label in partner and label in stays else 1 if label in partner else 2].append(label)
    if not groups[1] and groups[0]:  # the next step sums none of them
        if prod([extent[x] for x in partner]) <= SMALL:
            groups = [[], [], by_depth]
        else:
            groups = [groups[2], [], groups[0]]
    ways: list[tuple[tuple[float, int, int], Labels]] = []
    for side, rest in ((larger, other), (other, larger)):
        mine = [x for x in labels if x in side and x not in rest]
        run = _run(graph, width, mine, side, groups)
        length = prod([extent[x] for x in run])
        full = 1.0 if length % width == 0 or length >= LONG else length / (-(-length // width) * width)
        free = prod([extent[x] for x in run if x in groups[2]])
        way = (*[x for group in groups for x in group if x not in run], *run)
        ways.append(((full if length > 1 else 0.0, min(free, LONG), length), way))
    best = [way for _, way in sorted(ways, key=lambda scored: scored[0], reverse=True)]
    if not any(x not in labels for x in (*left, *right)):  # nothing is summed: the larger one is passed through
        found = [tuple(by_depth), *best]
    elif max(sizes) > 2 * prod([extent[x] for x in labels]):  # reading is what costs
        found = [keeping, *best]
    else:
        found = [*best, keeping]
    return list(dict.fromkeys(found))


def _run(graph: ContractionGraph, width: int, mine: list[int], side: Strides, groups: list[list[int]]) -> list[int]:
    """Labels of one operand, from its innermost ones on, until they fill vectors; in its own order."""
    if not mine:
        return []
    found: list[int] = []
    length = 1
    for group in (groups[2], groups[1], groups[0]):
        for label in sorted([x for x in mine if x in group], key=lambda x: abs(side[x])):
            if length >= LONG or (length > 1 and length % width == 0):
                break
            if graph.extents[label] > 1:
                found.append(label)
                length *= graph.extents[label]
    return sorted(found, key=lambda x: -abs(side[x]))
