"""Memory layouts of the results of steps: their axis order is free, and determines the cost of the next steps.

The innermost axes come from one operand, whose rows are then vectors, and fill vectors; among these, free axes of the
consuming step are preferred. The outer axes are those that this step shares with its partner.
"""

from collections.abc import Mapping, Sequence, Set
from math import prod

from tenferro_cpu.native.contraction import tuning
from tenferro_tensor.device_model import ContractionGraph, Labels

Strides = Mapping[int, int]
"""Strides of a value by label, outermost first."""

Groups = tuple[list[int], list[int], list[int]]


def orders(
    graph: ContractionGraph, width: int, labels: Sequence[int], left: Strides, right: Strides, partner: Set[int],
    stays: Set[int], *, first: bool,
) -> list[Labels]:  # fmt: skip
    """Possible layouts of a result, outermost label first; the preferred one comes first.

    Args:
        graph: the contractions.
        width: elements of a vector.
        labels: labels of the result.
        left: strides of the left operand, by label.
        right: those of the right operand.
        partner: labels of the value that the result is combined with next.
        stays: labels that remain after that step.
        first: whether only the first layout is needed.
    """
    if len(labels) < 2:
        return [tuple(labels)]
    extent = graph.extents
    sizes = [prod([extent[x] for x in side]) for side in (left, right)]
    larger, other = (left, right) if sizes[0] >= sizes[1] else (right, left)
    wanted = {*labels}
    inside = [x for x in larger if x in wanted]
    by_depth = [x for x in other if x in wanted and x not in larger]
    if len(by_depth) + len(inside) < len(wanted):  # labels along which an operand is repeated
        by_depth += [x for x in labels if x not in larger and x not in other]
    by_depth += inside
    summed = not (wanted.issuperset(left) and wanted.issuperset(right))
    if first and not summed:
        return [tuple(by_depth)]
    reads = max(sizes) > 2 * prod([extent[x] for x in labels])
    found: list[Labels] = []
    if reads or not first:
        kept = _run(extent, width, [x for x in by_depth if x in larger and x not in other], ([], [], by_depth))
        found.append((*[x for x in by_depth if x not in kept], *kept))
        if first:
            return found
    best = _filling(extent, width, by_depth, larger, other, _groups(extent, by_depth, partner, stays))
    if first:
        return best[:1]
    if not summed:  # the larger one is traversed
        found = [tuple(by_depth), *best]
    else:
        found = [*found, *best] if reads else [*best, *found]  # whether reading dominates the cost
    return list(dict.fromkeys(found))


def results(labels: Labels, left: Strides, right: Strides) -> list[Labels]:
    """Possible layouts of an output whose operands are read in their own order: sides as blocks, or interleaved.

    >>> results((0, 1, 2), {1: 24, 9: 8}, {9: 16, 2: 8, 0: 80})
    [(1, 0, 2), (0, 2, 1)]
    """
    inside = {*labels}
    mine, other = ([x for x in sorted(side, key=lambda x: -abs(side[x])) if x in inside] for side in (left, right))
    found: list[Labels] = []
    for _ in range(2):
        batch, rows, columns = ([x for x in mine if x in other], [x for x in mine if x not in other],
                                [x for x in other if x not in mine])  # fmt: skip
        found += [(*batch, *rows, *columns), (*rows, *columns, *batch), (*columns, *mine)]
        mine, other = other, mine
    return [way for way in dict.fromkeys(found) if way != labels and len(way) == len(labels)]


def _groups(extent: Sequence[int], by_depth: list[int], partner: Set[int], stays: Set[int]) -> Groups:
    """Labels that the next step shares, sums, and keeps free, from the outermost group inward."""
    groups: Groups = ([], [], [])
    for label in by_depth:
        groups[0 if label in partner and label in stays else 1 if label in partner else 2].append(label)
    if groups[1] or not groups[0]:
        return groups
    if prod([extent[x] for x in partner]) <= tuning.SMALL_PARTNER_ELEMENTS:  # the next step sums none of them
        return [], [], by_depth
    return groups[2], [], groups[0]


def _filling(
    extent: Sequence[int], width: int, by_depth: list[int], larger: Strides, other: Strides, groups: Groups
) -> list[Labels]:
    """Layouts whose innermost labels belong to one operand, first the one that fills vectors better."""
    ways: list[tuple[tuple[float, int, int], Labels]] = []
    for side, rest in ((larger, other), (other, larger)):
        mine = [x for x in by_depth if x in side and x not in rest]
        run = _run(extent, width, mine, groups)
        length = prod([extent[x] for x in run])
        full = (
            1.0 if length % width == 0 or length >= tuning.LONG_RUN_ELEMENTS else length / (-(-length // width) * width)
        )
        free = prod([extent[x] for x in run if x in groups[2]])
        way = (*[x for group in groups for x in group if x not in run], *run)
        ways.append(((full if length > 1 else 0.0, min(free, tuning.LONG_RUN_ELEMENTS), length), way))
    return [ways[0][1], ways[1][1]] if ways[0][0] >= ways[1][0] else [ways[1][1], ways[0][1]]


def _run(extent: Sequence[int], width: int, mine: list[int], groups: Groups) -> list[int]:
    """Labels of one operand, from its innermost outward, until they fill vectors; in its own order."""
    if not mine:
        return []
    found: list[int] = []
    length = 1
    for group in (groups[2], groups[1], groups[0]):
        for label in reversed(mine):
            if label in group:
                if length >= tuning.LONG_RUN_ELEMENTS or (length > 1 and length % width == 0):
                    break
                if extent[label] > 1:
                    found.append(label)
                    length *= extent[label]
    return found if len(found) < 2 else [x for x in mine if x in found]
