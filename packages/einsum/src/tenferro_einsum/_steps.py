"""The steps of a contraction: one operand is simplified, two are joined, the last is brought to the output.

A step is a function of values built of ops, so it runs on concrete, differentiated and traced values alike. The order
of the axes of intermediates is free; only the last step transposes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Hashable
from typing import Any

from tenferro_einsum._diagonal import embed_diagonal, take_diagonal
from tenferro_einsum._notation import Labels
from tenferro_tensor import catalog
from tenferro_tensor._normalise import stretched
from tenferro_tensor_core import DimLike

Extents = dict[Hashable, DimLike]
Unary = Callable[[Any], Any]
Binary = Callable[[Any, Any], Any]


def chain(ops: list[Any]) -> Unary | None:
    """The composition of ops of one operand, or ``None`` where there is nothing to do."""
    if not ops:
        return None
    if len(ops) == 1:
        return ops[0]  # type: ignore[no-any-return]

    def run(x: Any) -> Any:
        for op in ops:
            x = op(x)
        return x

    return run


def squeeze(labels: Labels, shape: tuple[DimLike, ...], extents: Extents) -> tuple[list[Any], Labels]:
    """Drop the axes of extent 1 whose label stretches in another operand."""
    kept = [a for a, x in enumerate(labels) if not stretched(shape[a], extents[x])]
    if len(kept) == len(labels):
        return [], labels
    return [catalog.reshape.op(shape=tuple(shape[a] for a in kept))], tuple(labels[a] for a in kept)


def simplify(labels: Labels, needed: Collection[Hashable]) -> tuple[list[Any], Labels]:
    """Take the diagonals of repeated labels, and sum the labels that neither the output nor another operand needs."""
    ops: list[Any] = []
    for x, n in Counter(labels).items():
        if n > 1:
            axes = tuple(a for a, y in enumerate(labels) if y == x)
            ops.append(take_diagonal.op(axes=axes))
            labels = tuple(y for a, y in enumerate(labels) if a not in axes[1:])
    gone = tuple(a for a, x in enumerate(labels) if x not in needed)
    if gone:
        ops.append(catalog.reduce_sum.op(axes=gone))
    return ops, tuple(x for x in labels if x in needed)


def join(lx: Labels, ly: Labels, extents: Extents, needed: Collection[Hashable]) -> tuple[Binary, Labels]:
    """Multiply two simplified operands and sum the labels that only they have: one ``dot_general``.

    Where no label is summed, the product is element-wise over aligned axes.
    """
    shared = [x for x in lx if x in ly]
    summed = [x for x in shared if x not in needed]
    if not summed:
        return _aligned_product(lx, ly, extents)
    batch = [x for x in shared if x in needed]
    op = catalog.dot_general.op(
        contract=(tuple(lx.index(x) for x in summed), tuple(ly.index(x) for x in summed)),
        batch=(tuple(lx.index(x) for x in batch), tuple(ly.index(x) for x in batch)),
    )
    out = (*batch, *(x for x in lx if x not in ly), *(x for x in ly if x not in lx))
    return op, out


def _aligned_product(lx: Labels, ly: Labels, extents: Extents) -> tuple[Binary, Labels]:
    out = lx + tuple(x for x in ly if x not in lx)
    left, right = aligned(lx, out, extents), aligned(ly, out, extents)
    mul = catalog.mul.op()

    def run(x: Any, y: Any) -> Any:
        return mul(x if left is None else left(x), y if right is None else right(y))

    return run, out


def aligned(labels: Labels, out: Labels, extents: Extents) -> Unary | None:
    """Axes brought into the order of `out`, with extent 1 where `out` has a label more."""
    ops: list[Any] = []
    order = tuple(labels.index(x) for x in out if x in labels)
    if order != tuple(range(len(labels))):
        ops.append(catalog.transpose.op(permutation=order))
    shape = tuple(extents[x] if x in labels else 1 for x in out)
    lead = next((i for i, x in enumerate(out) if x in labels), len(out))
    if len(shape) - lead > len(labels):
        ops.append(catalog.reshape.op(shape=shape[lead:]))
    return chain(ops)


def finish(labels: Labels, output: Labels) -> Unary | None:
    """The last operand's axes brought to the output: transposed, then spread over labels that the output repeats."""
    ops: list[Any] = []
    spread = list(dict.fromkeys(output))
    order = tuple(labels.index(x) for x in spread)
    if order != tuple(range(len(order))):
        ops.append(catalog.transpose.op(permutation=order))
    count = Counter(output)
    done: set[Hashable] = set()
    for x in dict.fromkeys(output):
        if count[x] > 1:
            done.add(x)
            target = _first_occurrences(output, repeated=done)
            ops.append(embed_diagonal.op(axes=tuple(a for a, y in enumerate(target) if y == x)))
    return chain(ops)


def _first_occurrences(output: Labels, repeated: Collection[Hashable]) -> list[Hashable]:
    """The output with labels left out where they occur again, but for those of `repeated`."""
    kept: list[Hashable] = []
    for x in output:
        if x in repeated or x not in kept:
            kept.append(x)
    return kept
