"""In which order operands are joined: explicit paths and trees, strategies of opt_einsum, optimizers of cotengra."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tenferro_einsum._notation import Contraction
from tenferro_einsum._search import Search
from tenferro_einsum._tree import Numbers, Path, Steps, checked_path, joins, numbered, path_of
from tenferro_runtime.extension import ArgumentError, DimLike
from tenferro_tensor_core import example_of

NOMINAL_EXTENT = 16
"""What an open extent without an example counts for in the search of a path; every path is right for all extents."""


def find_pairs(c: Contraction, sizes: Sequence[DimLike], search: Search) -> tuple[Steps, Path]:
    """The joins of two operands by number, and the same as a path of positions.

    Args:
        c: the contraction.
        sizes: extent of each label, in the order in which labels first occur.
        search: how to find an order where `c` leaves it open.

    Raises:
        ArgumentError: an explicit path or tree does not fit the operands, or names no strategy.
    """
    count = len(c.inputs)
    order = search.optimize
    if count == 1:
        return (), ((0,),)
    inputs, output = numbered(c.inputs, tuple(dict.fromkeys(c.output)))
    if hasattr(order, "get_path"):  # a ContractionTree of cotengra
        order = [tuple(step) for step in order.get_path()]
    if c.groups is not None:
        if not isinstance(order, (bool, str)) and not callable(order):
            raise ArgumentError(
                "einsum: the order is given twice, by parentheses in the subscripts and by optimize=; leave one out"
            )
        tree = c.groups
    elif isinstance(order, (bool, str)) or callable(order):
        tree = tuple(range(count))
    elif is_tree(order, count):
        tree = order
    else:
        path = checked_path(order, count)
        return joins(path, count), path
    pairs: list[Numbers] = []
    _Grouping(inputs, output, [_counted(d) for d in sizes], search, pairs).solve(tree, {*range(count)})
    found = tuple(pairs)
    return found, path_of(found, count)


class _Grouping:
    """Pairs for nested groups: each group by itself, then its result as one operand of what surrounds it."""

    def __init__(self, inputs: Steps, output: Numbers, sizes: list[int], search: Search, pairs: list[Numbers]) -> None:
        self.inputs, self.output, self.sizes, self.search, self.pairs = inputs, output, sizes, search, pairs
        self.count = len(inputs)

    def solve(self, node: Any, inside: set[int]) -> tuple[int, Numbers]:
        """The value that a node of the tree becomes, and its labels; `inside` are the operands below the node."""
        if isinstance(node, int):
            return node, self.inputs[node]
        members = [self.solve(m, {*_leaves(m)}) for m in node]
        if len(members) == 1:
            return members[0]
        outside = {*self.output} | {x for i, t in enumerate(self.inputs) if i not in inside for x in t}
        terms = tuple([labels for _, labels in members])
        result = tuple([x for x in dict.fromkeys(x for t in terms for x in t) if x in outside])
        live = [v for v, _ in members]
        for pair in joins(self.search(terms, result, self.sizes), len(members)):
            self.pairs.append(tuple([live[v] for v in pair]))
            live.append(self.count + len(self.pairs) - 1)
        return live[-1], result


def _leaves(node: Any) -> list[int]:
    return [node] if isinstance(node, int) else [i for m in node for i in _leaves(m)]


def _counted(d: DimLike) -> int:
    n = example_of(d)
    return NOMINAL_EXTENT if n is None else n


def is_tree(order: Any, operands: int) -> bool:
    """Whether nested sequences name each operand once; no path of more than one step does."""
    if not isinstance(order, (tuple, list)) or len(order) == 1:
        return False
    try:
        return sorted(_leaves(order)) == list(range(operands))
    except TypeError:
        return False
