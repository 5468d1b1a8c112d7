"""Values of a plan: their addresses and memory layouts."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(slots=True)
class Value:
    """An operand, an intermediate value, or an output.

    Attributes:
        base: index of its base pointer.
        at: byte offset.
        strides: strides in bytes, by label.
        arena: bytes that it occupies in the arena; 0 if it is elsewhere.
    """

    base: int
    at: int
    strides: dict[int, int]
    arena: int = 0


def in_order(labels: Sequence[int], extents: Sequence[int], item: int) -> tuple[int, ...]:
    """Strides in bytes of contiguous axes in the order of their labels.

    >>> in_order((2, 0), (3, 4, 5), 8)
    (24, 8)
    """
    found, step = [], item
    for label in reversed(labels):
        found.append(step)
        step *= extents[label]
    return tuple(found[::-1])


def by_label(labels: Sequence[int], strides: Sequence[int]) -> dict[int, int]:
    """Strides by label, outermost first; those of a repeated label add up to that of its diagonal.

    >>> by_label((0, 1, 0), (40, 100, 8))
    {1: 100, 0: 48}
    """
    found: dict[int, int] = {}
    for label, stride in zip(labels, strides, strict=True):
        found[label] = found.get(label, 0) + stride
    return {label: found[label] for label in sorted(found, key=lambda label: -abs(found[label]))}
