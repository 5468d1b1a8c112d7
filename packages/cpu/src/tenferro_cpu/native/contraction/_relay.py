"""Operands in another order, where a copy with another innermost axis makes the product sufficiently cheaper."""

from collections.abc import Iterator, Sequence

from tenferro_cpu.native.contraction._layout import Strides

Order = tuple[int, ...] | None


def relays(
    extents: Sequence[int], item: int, left: Strides, right: Strides, result: Strides
) -> Iterator[tuple[Order, Order]]:
    """Label orders, outermost first, for copies of the operands; None for an operand that is used in place.

    A summed label that is innermost in one operand may become innermost in the other: vectors then run along the sum. A
    label that is innermost in the result and present in both operands may too: vectors then run along the batch.

    >>> [*relays((9, 50, 9), 8, {0: 400, 1: 8}, {1: 72, 2: 8}, {0: 72, 2: 8})]
    [(None, (2, 1))]
    """
    shared = [x for x in left if x in right and extents[x] > 1]
    for mine, other in ((left, right), (right, left)):
        for label in shared:
            if label not in result and mine[label] == item != other[label]:
                order = _inner(other, label)
                yield (None, order) if mine is left else (order, None)
    for label in shared:
        if result.get(label) == item and not left[label] == right[label] == item:
            yield tuple([None if x[label] == item else _inner(x, label) for x in (left, right)])  # type: ignore[misc]


def _inner(strides: Strides, label: int) -> tuple[int, ...]:
    return (*sorted([x for x in strides if x != label], key=lambda x: -abs(strides[x])), label)
