"""The structure of a contraction: numbered labels, and the steps that contract operands.

Values are numbered as in `ContractionIR`: operands first, then the result of each step. Steps refer to values by
number; a path, in the convention of NumPy and opt_einsum, by position among the remaining values.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from operator import index
from typing import Any

import numpy as np

from tenferro_runtime.extension import ArgumentError, BoundedCache, DimLike
from tenferro_tensor.device_model import ContractionIR

Numbers = tuple[int, ...]
Steps = tuple[Numbers, ...]
Path = tuple[Numbers, ...]
Sliced = tuple[tuple[int, int], ...]

TREES: BoundedCache[Any, ContractionIR] = BoundedCache("tenferro_einsum: trees", 1024, recency=False)
"""Contractions with all extents 1, by labels and steps, for properties that do not depend on extents."""

_NOMINAL = np.dtype("float64")


def structure(inputs: Steps, output: Numbers, steps: Steps, kept: Numbers = ()) -> ContractionIR:
    """The contraction with all extents 1; its `values` are the labels of every value."""
    key = (inputs, output, steps, kept)
    found = TREES.table.get(key)
    if found is not None:
        return found
    count = 1 + max([label for labels in inputs for label in labels], default=-1)
    return TREES.get_or_make(key, lambda: ContractionIR(_NOMINAL, inputs, (1,) * count, output, steps, kept))


def with_extents(tree: ContractionIR, dtype: np.dtype[Any], extents: Sequence[DimLike]) -> ContractionIR:
    """The contraction of a structure with given extents (symbolic only for counting operations)."""
    return tree.resized(dtype, tuple(extents))  # type: ignore[arg-type]


def extents_by_label(inputs: Steps, shapes: Sequence[tuple[DimLike, ...]]) -> list[DimLike]:
    """The extent of each numbered label, from the first operand that has it."""
    found: dict[int, DimLike] = {}
    for labels, shape in zip(inputs, shapes, strict=True):
        for label, d in zip(labels, shape, strict=True):
            found.setdefault(label, d)
    return [found.get(label, 1) for label in range(1 + max(found, default=-1))]


def numbered(inputs: Sequence[Sequence[Hashable]], output: Sequence[Hashable]) -> tuple[Steps, Numbers]:
    """Labels replaced by numbers, in order of first occurrence."""
    number: dict[Hashable, int] = {}
    terms = tuple([tuple([number.setdefault(x, len(number)) for x in labels]) for labels in inputs])
    return terms, tuple([number[x] for x in output])


def joins(path: Path, operands: int) -> Steps:
    """A path as pairs of value numbers; larger steps run left to right, steps of one operand are dropped."""
    live = list(range(operands))
    pairs: list[tuple[int, int]] = []
    for step in path:
        taken = [live[i] for i in step]
        for i in sorted(step, reverse=True):
            del live[i]
        result = taken[0]
        for n in taken[1:]:
            pairs.append((result, n))
            result = operands + len(pairs) - 1
        live.append(result)
    return tuple(pairs)


def checked_path(path: Any, operands: int) -> Path:
    """An explicit path as tuples, if it leaves exactly one result.

    Raises:
        ArgumentError: a step names a position that does not exist, or operands are left over.
    """
    try:
        steps: Path = tuple(tuple(index(i) for i in step) for step in path if not isinstance(step, str))
    except TypeError as cause:
        raise ArgumentError(
            f"einsum: a path is a sequence of position tuples, and a tree names each of {operands} operands once in "
            f"nested tuples; got {path!r}"
        ) from cause
    left = operands
    for n, step in enumerate(steps):
        if not step or len(set(step)) < len(step) or not all(0 <= i < left for i in step):
            raise ArgumentError(
                f"einsum: step {n} of the path is {step}, but positions must be distinct and below {left} there", step=n
            )
        left -= len(step) - 1
    if left != 1:
        raise ArgumentError(f"einsum: the path leaves {left} operands of {operands}; it must end with one", left=left)
    return steps


def folded(tree: Any, make: Callable[[list[Any]], Any]) -> Any:
    """Fold nested sequences: call `make` on each with its leaves and the results of its inner sequences.

    Not recursive, because trees over a chain of operands are deeper than Python's stack.

    >>> folded([0, [1, [2, 3]]], tuple)
    (0, (1, (2, 3)))
    """
    stack: list[tuple[Any, list[Any]]] = [(iter(tree), [])]
    while True:
        left, members = stack[-1]
        for member in left:
            if isinstance(member, (tuple, list)):
                stack.append((iter(member), []))
                break
            members.append(member)
        else:
            stack.pop()
            made = make(members)
            if not stack:
                return made
            stack[-1][1].append(made)


def path_of(pairs: Steps, operands: int) -> Path:
    """Pairs of value numbers as a path of positions."""
    live = list(range(operands))
    path = []
    for number, pair in enumerate(pairs):
        step = tuple(sorted([bisect_left(live, v) for v in pair]))
        path.append(step)
        for i in reversed(step):
            del live[i]
        live.append(operands + number)
    return tuple(path)


def reduced_first(inputs: Steps, output: Numbers, pairs: Steps) -> Steps:
    """Steps that first sum, for each operand, the labels that nothing else needs."""
    if not pairs:
        return pairs
    need = Counter(x for labels in inputs for x in {*labels}) + Counter(output)
    count = len(inputs)
    renamed: dict[int, int] = {}
    steps: list[Numbers] = []
    for v, labels in enumerate(inputs):
        if any(need[x] == 1 for x in labels):
            steps.append((v,))
            renamed[v] = count + len(steps) - 1
    shift = len(steps)
    if not shift:
        return pairs
    for step in pairs:
        steps.append(tuple([renamed.get(v, v) if v < count else v + shift for v in step]))
    return tuple(steps)
