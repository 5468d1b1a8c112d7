"""Contraction orders: explicit paths and trees, strategies of opt_einsum, optimizers of cotengra."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from operator import index
from typing import Any, Final

from tenferro_einsum._notation import Contraction
from tenferro_einsum._search import Search
from tenferro_einsum._tree import Numbers, Path, Steps, checked_path, folded, joins, numbered, path_of
from tenferro_runtime.extension import ArgumentError, DimLike
from tenferro_tensor_core import example_of

NOMINAL_EXTENT: Final = 16
"""Value of a symbolic extent without an example in the path search; any path is valid for all extents."""


def find_pairs(c: Contraction, sizes: Sequence[DimLike], search: Search) -> tuple[Steps, Path]:
    """The contraction order as pairs of value numbers, and as a path of positions.

    Args:
        c: the contraction.
        sizes: extent of each label, in order of first occurrence.
        search: finds the order where `c` does not define it.

    Raises:
        ArgumentError: an explicit path or tree does not fit the operands, or the strategy is unknown.
    """
    count = len(c.inputs)
    order = search.optimize
    if count == 1:
        search.require_known()
        return (), ((0,),)
    if hasattr(order, "get_path"):  # a ContractionTree of cotengra
        order = [tuple(step) for step in order.get_path()]
    if c.groups is not None:
        if not isinstance(order, (bool, str)) and not callable(order):
            raise ArgumentError(
                "einsum: the order is defined twice, by parentheses in the subscripts and by optimize=; leave one out"
            )
        tree = c.groups
    elif isinstance(order, (bool, str)) or callable(order):
        tree = None
    elif is_tree(order, count):
        tree = order
    else:
        path = checked_path(order, count)
        return joins(path, count), path
    inputs, output = numbered(c.inputs, tuple(dict.fromkeys(c.output)))
    counted = [_counted(d) for d in sizes]
    if tree is None:
        found = joins(search(inputs, output, counted), count)
    else:
        found = _joined(tree, inputs, output, counted, search)
    return found, path_of(found, count)


def _joined(tree: Any, inputs: Steps, output: Numbers, sizes: list[int], search: Search) -> Steps:
    """Pairs for nested groups: each group alone, then its result as an operand of the enclosing group."""
    count, pairs = len(inputs), []
    holders = Counter(x for labels in (*inputs, output) for x in {*labels})

    def operand(n: Any) -> tuple[int, Numbers, Counter[int]]:
        return index(n), inputs[n], Counter({*inputs[n]})

    def group(members: list[Any]) -> tuple[int, Numbers, Counter[int]]:
        """The value of a group, its labels, and how many operands inside have each label."""
        found = [m if isinstance(m, tuple) else operand(m) for m in members]
        if len(found) == 1:
            return found[0]
        inside = max([held for _, _, held in found], key=len)
        for _, _, held in found:
            if held is not inside:
                inside.update(held)
        terms = tuple([labels for _, labels, _ in found])
        result = tuple([x for x in dict.fromkeys(x for t in terms for x in t) if inside[x] < holders[x]])
        live = [v for v, _, _ in found]
        for pair in joins(search(terms, result, sizes), len(found)):
            pairs.append(tuple([live[v] for v in pair]))
            live.append(count + len(pairs) - 1)
        return live[-1], result, inside

    folded(tree, group)
    return tuple(pairs)


def _counted(d: DimLike) -> int:
    n = example_of(d)
    return NOMINAL_EXTENT if n is None else n


def is_tree(order: Any, operands: int) -> bool:
    """Whether nested sequences name each operand once, as a tree does, but no path of several steps."""
    if not isinstance(order, (tuple, list)) or len(order) == 1:
        return False
    leaves: list[Any] = []
    nodes: list[Any] = [order]
    while nodes:
        node = nodes.pop()
        if not isinstance(node, (tuple, list)):
            leaves.append(node)
        elif not node:
            return False
        else:
            nodes += node
    try:
        return sorted(map(index, leaves)) == list(range(operands))
    except TypeError:
        return False
