"""Branches of a contraction: disjoint parts of its tree, which workers run concurrently.

In a sliced contraction, a subtree without sliced labels is the same in every slice, and is computed once.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from math import prod
from typing import Final

from tenferro_einsum._tree import Numbers, Steps, structure

BRANCH_MIN_MULTIPLICATIONS: Final = 5_000_000
"""Minimum number of multiplications of a branch that is sent to a worker."""

BRANCH_MAX_REMAINING: Final = 0.8
"""Use branches only if the critical path has at most this share of all operations."""


@dataclass(frozen=True)
class Part:
    """A subtree of a contraction, as a contraction with the same labels.

    Attributes:
        operands: indices of its operands among the values of the whole.
        inputs: their labels.
        output: labels of its result.
        steps: values contracted by each step, in its own numbering.
    """

    operands: Numbers
    inputs: Steps
    output: Numbers
    steps: Steps


@dataclass(frozen=True)
class BranchPlan:
    """Branches, and the trunk, whose operands are the branches' results, then operands of the whole.

    Attributes:
        branches: the branches.
        trunk: the rest of the contraction.
    """

    branches: tuple[Part, ...]
    trunk: Part


def split(inputs: Steps, output: Numbers, steps: Steps, sizes: Sequence[int], workers: int) -> BranchPlan | None:
    """Branches for a number of workers to run concurrently, or ``None`` if that would gain little.

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
    """The branches that end in the independent values `roots`, and the trunk."""
    count, values = len(inputs), structure(inputs, output, steps).values
    branches = [_part(count, steps, values, (), root) for root in roots]
    return BranchPlan(tuple(branches), _part(count, steps, values, roots, count + len(steps) - 1))


def constant(inputs: Steps, steps: Steps, sliced: Collection[int]) -> Numbers:
    """The last values of all subtrees without sliced labels.

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
    """The cut with the shortest critical path, found by opening the tree from the root, largest part first."""
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
    """The steps below a value, down to the operands and the values `ends`."""
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
