"""The reference implementation of a contraction: simplify operands and contract them pair by pair, with core ops.

It runs on concrete and traced values alike. Backends without an engine for whole contractions and XLA use it, and the
engine is tested against it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from math import prod
from typing import Any, Literal

from tenferro_einsum._diagonal import embed_diagonal, take_diagonal
from tenferro_einsum._tree import Numbers, Steps, structure
from tenferro_tensor import catalog
from tenferro_tensor_core import DimLike

Labels = tuple[Any, ...]
Extents = Mapping[Any, DimLike] | Sequence[DimLike]
Unary = Callable[[Any], Any]
Binary = Callable[[Any, Any], Any]
SumOrder = Literal["first", "second"]


class Pairwise:
    """A contraction as a chain of ops on its operands.

    Args:
        inputs: numbered labels of the operands.
        output: labels of the result, each once.
        steps: values contracted by each step.
        kept: numbers of the values returned besides the result.
        extents: extents by label, integers or symbolic.
        turned: swap operands if that saves a transpose, for products whose summed axes are last in the first operand
            and first in the second; all extents must be integers.
    """

    __slots__ = ("_before", "_finish", "_kept", "_steps")

    def __init__(
        self, inputs: Steps, output: Numbers, steps: Steps, kept: Numbers, extents: Extents, *, turned: bool = False
    ) -> None:
        tree = structure(inputs, output, steps, kept)
        need = Counter(x for labels in inputs for x in {*labels}) + Counter(output)
        simple = [simplify(labels, {x for x in labels if need[x] > 1}) for labels in inputs]
        self._before = [chain(ops) for ops, _ in simple]
        live = [labels for _, labels in simple]
        self._steps: list[tuple[Numbers, Any]] = []
        self._kept: list[tuple[int, Unary | None]] = []
        for step in steps:
            number, wanted = len(live), {*tree.values[len(live)]}
            if len(step) == 1:
                ops, left = simplify(live[step[0]], wanted)
                self._steps.append((step, chain(ops)))
            else:
                order: SumOrder = "first"
                if turned:
                    step, order = _cheaper(step, live, extents, wanted)
                run, left = join(live[step[0]], live[step[1]], extents, wanted, order)
                self._steps.append((step, run))
            live.append(left)
            if number in kept:
                self._kept.append((number, ordered(left, tree.values[number])))
        self._kept.sort(key=lambda entry: kept.index(entry[0]))
        self._finish = ordered(live[-1], output)

    def __call__(self, *operands: Any) -> list[Any]:
        """The result, then the kept values."""
        keep = {number for number, _ in self._kept}
        live: list[Any] = [x if f is None else f(x) for f, x in zip(self._before, operands, strict=True)]
        kept: dict[int, Any] = {}
        for step, run in self._steps:
            values = [live[v] for v in step]
            live.append(values[0] if run is None else run(*values))
            values.clear()
            for v in step:
                if v in keep:
                    kept[v] = live[v]
                live[v] = None  # free intermediates as soon as they are used
        result = live[-1] if self._finish is None else self._finish(live[-1])
        return [result, *[kept[v] if f is None else f(kept[v]) for v, f in self._kept]]


def chain(ops: list[Any]) -> Unary | None:
    """The composition of unary ops, or ``None`` if there are none."""
    if not ops:
        return None
    if len(ops) == 1:
        return ops[0]

    def run(x: Any) -> Any:
        for op in ops:
            x = op(x)
        return x

    return run


def simplify(labels: Labels, needed: Collection[Hashable]) -> tuple[list[Any], Labels]:
    """Take the diagonals of repeated labels, and sum the labels that nothing else needs."""
    ops: list[Any] = []
    for x, n in Counter(labels).items():
        if n > 1:
            axes = tuple(a for a, y in enumerate(labels) if y == x)
            ops.append(take_diagonal.op(axes=axes))
            labels = tuple(y for a, y in enumerate(labels) if y != x or a == axes[0])
    gone = tuple(a for a, x in enumerate(labels) if x not in needed)
    if gone:
        ops.append(catalog.reduce_sum.op(axes=gone))
    return ops, tuple(x for x in labels if x in needed)


def _cheaper(
    step: Numbers, live: Sequence[Labels], extents: Extents, needed: Collection[Hashable]
) -> tuple[Numbers, SumOrder]:
    """The order of two operands, and of the summed labels, that needs the fewest transposes."""
    choices: list[tuple[int, Numbers, SumOrder]] = []
    for pair in (step, step[::-1]):
        lx, ly = (live[v] for v in pair)
        summed = [x for x in lx if x in ly and x not in needed]
        batch = [x for x in lx if x in ly and x in needed]
        sizes: list[Any] = [prod([extents[x] for x in labels]) for labels in (lx, ly)]
        orders: tuple[tuple[SumOrder, list[Any]], ...] = (
            ("first", summed),
            ("second", sorted(summed, key=ly.index)),
        )
        for name, order in orders:
            last_in_x = [*batch, *(x for x in lx if x not in ly), *order] == [x for x in lx if x in ly or x in needed]
            first_in_y = [*batch, *order, *(x for x in ly if x not in lx)] == [x for x in ly if x in lx or x in needed]
            choices.append((sizes[0] * (not last_in_x) + sizes[1] * (not first_in_y), pair, name))
    _, pair, name = min(choices, key=lambda choice: choice[0])
    return pair, name


def join(
    lx: Labels, ly: Labels, extents: Extents, needed: Collection[Hashable], order: SumOrder = "first"
) -> tuple[Binary, Labels]:
    """Multiply two simplified operands and sum the labels that are no longer needed.

    If both share labels to sum, this is one ``dot_general``, which names them in the order of one operand; otherwise
    the product is elementwise over aligned axes.
    """
    before = [simplify(labels, {*needed, *other}) for labels, other in ((lx, ly), (ly, lx))]
    (ops_x, lx), (ops_y, ly) = before
    shared = [x for x in lx if x in ly]
    summed = [x for x in shared if x not in needed]
    if order == "second":
        summed.sort(key=ly.index)
    run: Binary
    if summed:
        batch = [x for x in shared if x in needed]
        run = catalog.dot_general.op(
            contract=(tuple(lx.index(x) for x in summed), tuple(ly.index(x) for x in summed)),
            batch=(tuple(lx.index(x) for x in batch), tuple(ly.index(x) for x in batch)),
        )
        out = (*batch, *(x for x in lx if x not in ly), *(x for x in ly if x not in lx))
    else:
        run, out = aligned_product(lx, ly, extents)
    if not ops_x and not ops_y:
        return run, out
    fx, fy = chain(ops_x), chain(ops_y)
    return lambda x, y: run(x if fx is None else fx(x), y if fy is None else fy(y)), out


def aligned_product(lx: Labels, ly: Labels, extents: Extents) -> tuple[Binary, Labels]:
    """The elementwise product over the labels of both, those of `lx` first."""
    out = lx + tuple(x for x in ly if x not in lx)
    left, right = _aligned(lx, out, extents), _aligned(ly, out, extents)
    mul = catalog.mul.op()
    if left is None and right is None:
        return mul, out

    def run(x: Any, y: Any) -> Any:
        return mul(x if left is None else left(x), y if right is None else right(y))

    return run, out


def _aligned(labels: Labels, out: Labels, extents: Extents) -> Unary | None:
    """Transpose axes to the order of `out`, with extent 1 for missing labels."""
    ops: list[Any] = []
    order = tuple(labels.index(x) for x in out if x in labels)
    if order != tuple(range(len(labels))):
        ops.append(catalog.transpose.op(permutation=order))
    shape = tuple(extents[x] if x in labels else 1 for x in out)
    lead = next((i for i, x in enumerate(out) if x in labels), len(out))
    if len(shape) - lead > len(labels):
        ops.append(catalog.reshape.op(shape=shape[lead:]))
    return chain(ops)


def ordered(labels: Labels, output: Labels) -> Unary | None:
    """Transpose axes to the order of `output`, which has the same labels."""
    order = tuple(labels.index(x) for x in output)
    return None if order == tuple(range(len(order))) else catalog.transpose.op(permutation=order)


def spread_diagonals(output: Labels) -> Unary | None:
    """Embed a result, which has each label of `output` once, into the diagonals of labels that `output` repeats."""
    ops: list[Any] = []
    done: set[Hashable] = set()
    for x, n in Counter(output).items():
        if n > 1:
            done.add(x)
            target = _first_occurrences(output, repeated=done)
            ops.append(embed_diagonal.op(axes=tuple(a for a, y in enumerate(target) if y == x)))
    return chain(ops)


def _first_occurrences(output: Labels, repeated: Collection[Hashable]) -> list[Hashable]:
    """The output without repeated occurrences of labels, except for those in `repeated`."""
    kept: list[Hashable] = []
    for x in output:
        if x in repeated or x not in kept:
            kept.append(x)
    return kept
