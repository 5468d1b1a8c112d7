"""Shapes of loop nests: loops that can be flattened, and their work."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from tenferro_tensor.loop_ir import For, Order, Reg, Statement, Switch, While, blocks
from tenferro_tensor_core import DimLike

Axes = tuple[tuple[Reg, DimLike], ...]


def chain(s: For) -> tuple[Axes, For]:
    """The perfectly nested loops of one kind, outermost first.

    Grouped loops pass on their carries: the accumulation continues inside.

    Args:
        s: the outermost loop.

    Returns:
        The loops, and the last one.
    """
    axes = [(s.index, s.extent)]
    while len(s.body) == 1 and isinstance(s.body[0], For) and s.body[0].order is s.order and not s.swaps:
        inner = s.body[0]
        if len(inner.carries) != len(s.carries) or inner.swaps:
            break
        handed = [c.inside == d.first and c.following == d.result for c, d in zip(s.carries, inner.carries)]
        if not all(handed):
            break
        s = inner
        axes.append((s.index, s.extent))
    return tuple(axes), s


def parallel_work(statements: Sequence[Statement]) -> int | None:
    """The largest number of concurrent iterations of nested loops, including all inner loops.

    Args:
        statements: the statements.

    Returns:
        The number; None if it depends on sizes.
    """
    most = 0
    for s in statements:
        if isinstance(s, For) and s.order is not Order.GIVEN:
            found = _work(s)
        else:
            inner = [parallel_work(block) for block in blocks(s)]
            found = None if None in inner else max([n for n in inner if n is not None], default=0)
        if found is None:
            return None
        most = max(most, found)
    return most


def _work(s: Statement) -> int | None:
    if isinstance(s, While):
        return None
    inner = [_work(t) for block in blocks(s) for t in block]
    if None in inner:
        return None
    found = max(1, sum([n for n in inner if n is not None]))
    if isinstance(s, Switch) or not isinstance(s, For):
        return found
    return s.extent * found if isinstance(s.extent, int) else None


def rows(axes: Axes) -> int | None:
    """Total iterations of nested loops.

    Args:
        axes: index and extent of each loop.

    Returns:
        The number; None if it depends on sizes.
    """
    return prod([n for _, n in axes if isinstance(n, int)]) if all(isinstance(n, int) for _, n in axes) else None
