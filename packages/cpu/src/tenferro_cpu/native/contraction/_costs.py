"""What steps cost, in nanoseconds as estimated, and orders of axes that keep lines of memory near."""

from collections.abc import Sequence
from typing import Final

from tenferro_cpu.native.contraction._axes import Axis, along, capped, ordered
from tenferro_cpu.native.contraction._code import Kind
from tenferro_cpu.native.contraction._tables import lying

WORTH: Final = 20_000
"""Multiplications from which on several ways are compared."""

FLOP: Final = 0.02
"""For a multiplication or addition of real numbers of eight bytes."""

MOVED, TURNED = (0.15, 0.5), (0.35, 1.0)
"""For an element that is read or written in a run, or turned while it is packed; of what stays near, and of others."""

COPIED: Final = (0.35, 0.45)
"""For an element of a copy with another innermost axis."""

SINGLE: Final = (0.3, 0.45, 2.5)
"""For an element that is moved alone: of what stays near; of others whose lines do while they are used; and if not."""

TILE: Final = 10.0
"""For a tile besides its sums, or a block that is packed besides its elements."""

SUMMED: Final = 3.0
"""For adding up the lanes of a vector."""

FAR, FARTHEST = 1 << 20, 2 << 20
"""Bytes that stay near, and that stay in some cache."""

STREAMED: Final = 4 << 20
"""Bytes of a result from which on it may be written past the caches."""

LINE: Final = 64
"""Bytes that memory moves at once."""

MOST_ROWS: Final = 1 << 14
"""Entries of a table of rows; outer axes beyond become part of the batch."""


def moved(kind: Kind, elements: int) -> float:
    """Elements that are read or written in runs; sixteen bytes cost as eight, as in the other estimates."""
    return elements * min(kind.item, 8) / 8 * MOVED[elements * kind.item > FAR]


def flop(kind: Kind) -> float:
    """A multiplication or addition of elements: of real parts, in vectors."""
    return FLOP * kind.parts**2 * kind.real_bytes / 8


GAIN, LEAST_GAIN = 1.25, 2000.0
"""How many times what the numbers alone cost a step may cost, and what it may cost more, before other ways are tried:
to estimate one takes tens of microseconds."""


def settled(kind: Kind, sizes: Sequence[int], cost: float) -> bool:
    """Whether no other way can be much cheaper for a product of these sizes.

    >>> from tenferro_cpu.native.machine._host import Host
    >>> kind = Kind("d", Host("x86_64", "znver4", "", "avx512", 64, 32, 32 << 20))
    >>> settled(kind, (1, 100, 100, 100), 45e3), settled(kind, (1, 100, 100, 100), 100e3)
    (True, False)
    """
    batch, rows, columns, inner = sizes
    least = flop(kind) * 2 * batch * rows * columns * inner
    least += sum([moved(kind, batch * x * y) for x, y in ((rows, columns), (rows, inner), (columns, inner))])
    return cost <= max(GAIN * least, least + LEAST_GAIN)


def alone(kind: Kind, elements: int, apart: bool) -> float:
    """One of so many elements, moved alone; `apart` says that lines are left before all of them is used."""
    size = elements * kind.item
    return SINGLE[(size > FAR) + (size > FARTHEST and apart)]


def packed(kind: Kind, axes: Sequence[Axis], inner: Sequence[Axis], place: int, elements: tuple[int, int]) -> float:
    """All elements of an operand, and those of one of its batch, that are packed along some axes."""
    width = kind.width if place == 1 else kind.columns
    every, once = elements
    far = every * kind.item > FAR
    runs = lying(along(axes, place), width, kind.item)
    if runs == 1.0:
        return moved(kind, every)
    turned = lying(along(inner, place), width, kind.item)
    rest = turned * TURNED[far]
    if turned < 1.0:
        apart = once * LINE > FAR and leaves(axes, place, lines(inner, place))
        rest += (1 - turned) * alone(kind, every, apart)
    return runs * moved(kind, every) + (1 - runs) * every * rest


def stored(kind: Kind, rows: Sequence[Axis], columns: Sequence[Axis], elements: int) -> float:
    """The result, tile by tile."""
    runs = lying(along(rows, 3), kind.width, kind.item)
    if runs == 1.0:
        return moved(kind, elements)
    single = alone(kind, elements, leaves(rows, 3, lines(columns, 3)))
    return moved(kind, elements) + elements * (1 - runs) * single


def lines(axes: Sequence[Axis], place: int) -> int:
    """Lines of memory that an operand touches along axes, about.

    >>> lines([Axis(4, 800, 0, 0), Axis(16, 8, 0, 0)], 1), lines([Axis(5, 0, 8, 0)], 1)
    (8, 1)
    """
    apart, span = 1, 0
    for axis in axes:
        stride = abs(axis[place])
        if stride >= LINE:
            apart *= axis.n
        else:
            span += axis.n * stride
    return apart * max(1, span // LINE)


def streams(kind: Kind, rows: Sequence[Axis], others: Sequence[Axis], elements: int) -> bool:
    """Whether a large result is written in whole lines of memory, each far from the one before.

    >>> from tenferro_cpu.native.machine._host import Host
    >>> kind = Kind("d", Host("x86_64", "znver4", "", "avx512", 64, 32, 32 << 20))
    >>> rows = [Axis(1 << 17, 0, 0, 128), Axis(2, 0, 0, 1 << 24), Axis(8, 0, 0, 8)]
    >>> streams(kind, rows, [], 1 << 21), streams(kind, rows, [], 1 << 15), streams(kind, rows[2:], rows[1:2], 1 << 21)
    (True, False, True)
    """
    if elements * kind.item < STREAMED:
        return False
    run = kind.item
    outside = [*others, *rows]
    while outside and outside[-1].c == run:
        run *= outside.pop().n
    whole = run % LINE == 0 and all(x.c % LINE == 0 for x in outside)
    return whole and run <= 4 * LINE


def leaves(axes: Sequence[Axis], place: int, count: int) -> bool:
    """Whether a line is left and comes back when it is near no more; each of the axes' elements has `count` lines."""
    reach = window = 1
    for axis in reversed(axes):
        if 0 < abs(axis[place]) < LINE:
            window = reach * min(axis.n, -(-LINE // abs(axis[place])))
        reach *= axis.n
    return 2 * window * LINE * count > FAR


def best_order(kind: Kind, axes: list[Axis], place: int, read: tuple[int, int], written: tuple[int, int]) -> list[Axis]:
    """Axes of one side in the order of the operand or of the result, or in that of the operand with those inside
    along which lines of either are filled: what is cheapest.

    Args:
        kind: the dtype on its host.
        axes: of the side.
        place: of the operand in an axis.
        read: elements of the operand, and lines of memory that one index of the side has in it.
        written: the same of the result.
    """
    if len(axes) < 2:
        return axes
    orders = [ordered(axes, 3), ordered(axes, place)]
    if orders[0] == orders[1]:
        return orders[0]
    split = _split(kind, _split(kind, orders[1], place), 3)
    filling = [x for x in ordered(split, 3) if 0 < abs(x[3]) < LINE]
    inside = [x for x in split if 0 < abs(x[place]) < LINE and x not in filling]
    if filling and inside:
        orders.append([*[x for x in split if x not in inside and x not in filling], *inside, *filling])

    def cost(order: list[Axis]) -> float:
        _, near = capped(order, MOST_ROWS)
        total = 0.0
        for where, (elements, count) in ((place, read), (3, written)):
            single = alone(kind, elements, leaves(order, where, count))
            total += moved(kind, elements) + elements * (1 - lying(along(near, where), kind.width, kind.item)) * single
        return total

    return min(orders, key=cost)


def _split(kind: Kind, axes: list[Axis], place: int) -> list[Axis]:
    """Long axes that fill lines are cut, so that inside is about one line."""
    found: list[Axis] = []
    for axis in axes:
        least = -(-LINE // max(1, abs(axis[place])))
        parts = [d for d in range(least, min(axis.n, 8 * LINE // kind.item)) if axis.n % d == 0]
        if abs(axis[place]) < LINE and axis[place] and parts:
            d = min(parts, key=lambda d: (d % kind.width != 0, d))
            found += [Axis(axis.n // d, axis.a * d, axis.b * d, axis.c * d), axis._replace(n=d)]
        else:
            found.append(axis)
    return found
