"""Branches of a contraction: parts of its tree without a value in common, which workers do at the same time.

A contraction in slices has such parts too: what no sliced label is below of is the same in every slice, and made once.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from math import prod
from typing import Final

from tenferro_einsum._tree import Numbers, Steps, structure

BRANCH_MIN_MULTIPLICATIONS: Final = 5_000_000
"""Multiplications of a branch that are worth sending it to a worker."""

BRANCH_MAX_REMAINING: Final = 0.8
"""Part of the operations, one after the other, that branches have to leave."""


@dataclass(frozen=True)
class Part:
    """A contraction that is a part of another one, with the same labels.

    Attributes:
        operands: numbers of its operands among the values of the whole.
        inputs: their labels.
        output: labels of what it makes.
        steps: values joined by each step, its own numbers.
    """

    operands: Numbers
    inputs: Steps
    output: Numbers
    steps: Steps


@dataclass(frozen=True)
class BranchPlan:
    """Branches, and the trunk that takes what they make: its operands are their values, then operands of the whole.

    Attributes:
        branches: the branches.
        trunk: the rest; its first operands are the values that the branches make.
    """

    branches: tuple[Part, ...]
    trunk: Part


def split(inputs: Steps, output: Numbers, steps: Steps, sizes: Sequence[int], workers: int) -> BranchPlan | None:
    """Branches that so many workers can do at the same time, ``None`` where that would not gain much.

    >>> pairs = ((0, 1), (2, 3), (4, 5))
    >>> found = split(((0, 1), (1, 2), (2, 3), (3, 0)), (), pairs, [300] * 4, 2)
    >>> [branch.operands for branch in found.branches], found.trunk.steps
    ([(0, 1), (2, 3)], ((0, 1),))
    >>> split(((0, 1), (1, 2), (2, 3), (3, 0)), (), pairs, [3] * 4, 2) is None
    True
    """
    count, values = len(inputs), structure(inputs, output, steps).values
    below = [0.0] * count
    own = [0.0] * count
    for step in steps:
        own.append(float(prod([sizes[x] for x in {x for v in step for x in values[v]}])))
        below.append(own[-1] + sum([below[v] for v in step]))
    roots = _roots(count, steps, own, below, workers)
    return split_at(inputs, output, steps, roots) if roots else None


def split_at(inputs: Steps, output: Numbers, steps: Steps, roots: Numbers) -> BranchPlan:
    """The branches that end in the values `roots`, which do not depend on each other, and the trunk."""
    count, values = len(inputs), structure(inputs, output, steps).values
    branches = [_part(count, steps, values, (), root) for root in roots]
    return BranchPlan(tuple(branches), _part(count, steps, values, roots, count + len(steps) - 1))


def constant(inputs: Steps, steps: Steps, sliced: Collection[int]) -> Numbers:
    """Values that steps make without the sliced labels, and that no later such value is made of.

    >>> constant(((0, 1), (1, 2), (2, 3), (3, 4)), ((0, 1), (2, 3), (4, 5)), {3})
    (4,)
    """
    alike = [not {*labels} & {*sliced} for labels in inputs]
    found: set[int] = set()
    for v, step in enumerate(steps, len(inputs)):
        alike.append(all(alike[u] for u in step))
        if alike[v]:
            found.difference_update(step)
            found.add(v)
    return tuple(sorted(found))


def _roots(count: int, steps: Steps, own: list[float], below: list[float], workers: int) -> Numbers:
    """The tree is opened from the root on, its largest part first; the cut with the shortest time is taken."""
    last = count + len(steps) - 1
    front, trunk = [last], 0.0
    best = BRANCH_MAX_REMAINING * below[last]
    found: Numbers = ()
    while front and trunk < best:
        heavy = [v for v in front if below[v] >= BRANCH_MIN_MULTIPLICATIONS]
        work = [below[v] for v in heavy]
        time = trunk + sum([below[v] for v in front]) - sum(work) + max([sum(work) / workers, *work])
        if len(heavy) > 1 and time < best:
            best, found = time, tuple(sorted(heavy))
        largest = max(front, key=below.__getitem__)
        front.remove(largest)
        trunk += own[largest]
        front += [v for v in steps[largest - count] if v >= count]
    return found


def _part(count: int, steps: Steps, values: Sequence[Numbers], ends: Numbers, root: int) -> Part:
    """The steps below a value, down to operands and the values `ends`."""
    taken: set[int] = set()
    stack = [root]
    while stack:
        v = stack.pop()
        taken.add(v)
        if v >= count and v not in ends:
            stack += steps[v - count]
    operands = (*ends, *sorted(v for v in taken if v < count))
    number = {v: n for n, v in enumerate(operands)}
    made: list[Numbers] = []
    for v in sorted(v for v in taken if v not in number):
        number[v] = len(operands) + len(made)
        made.append(tuple([number[u] for u in steps[v - count]]))
    return Part(operands, tuple([values[v] for v in operands]), values[root], tuple(made))
