"""Estimated costs of steps, in nanoseconds, and axis orders that keep cache lines near."""

from collections.abc import Sequence

from tenferro_cpu.native.contraction import tuning
from tenferro_cpu.native.contraction._axes import Axis, along, capped, ordered
from tenferro_cpu.native.contraction._microkernels import Microkernels
from tenferro_cpu.native.contraction._tables import lying


def moved(code: Microkernels, elements: int) -> float:
    """Elements read or written in runs; sixteen bytes cost as much as eight, as in the other estimates."""
    return elements * min(code.item, 8) / 8 * tuning.RUN_COSTS[elements * code.item > tuning.NEAR_MAX_BYTES]


def flop(code: Microkernels) -> float:
    """Cost of a multiplication or addition of elements, in vectors of real parts."""
    return tuning.FLOP_COST * code.parts**2 * code.real_bytes / 8


def settled(code: Microkernels, sizes: Sequence[int], cost: float) -> bool:
    """Whether no other method can be much cheaper for a product of these sizes.

    >>> code = Microkernels("d", "avx512", 32 << 20)
    >>> settled(code, (1, 100, 100, 100), 45e3), settled(code, (1, 100, 100, 100), 100e3)
    (True, False)
    """
    batch, rows, columns, inner = sizes
    least = flop(code) * 2 * batch * rows * columns * inner
    least += sum([moved(code, batch * x * y) for x, y in ((rows, columns), (rows, inner), (columns, inner))])
    return cost <= max(tuning.SETTLED_FACTOR * least, least + tuning.SETTLED_MARGIN)


def alone(code: Microkernels, elements: int, apart: bool) -> float:
    """Cost per element moved individually; `apart` means that cache lines are left before they are fully used."""
    size = elements * code.item
    return tuning.SINGLE_COSTS[(size > tuning.NEAR_MAX_BYTES) + (size > tuning.CACHED_MAX_BYTES and apart)]


def packed(
    code: Microkernels, axes: Sequence[Axis], inner: Sequence[Axis], place: int, elements: tuple[int, int]
) -> float:
    """Number of elements of an operand, and per batch, that are packed along some axes."""
    width = code.width if place == 1 else code.columns
    every, once = elements
    far = every * code.item > tuning.NEAR_MAX_BYTES
    runs = lying(along(axes, place), width, code.item)
    if runs == 1.0:
        return moved(code, every)
    turned = lying(along(inner, place), width, code.item)
    rest = turned * tuning.TRANSPOSE_COSTS[far]
    if turned < 1.0:
        apart = once * tuning.CACHE_LINE_BYTES > tuning.NEAR_MAX_BYTES and leaves(axes, place, lines(inner, place))
        rest += (1 - turned) * alone(code, every, apart)
    return runs * moved(code, every) + (1 - runs) * every * rest


def stored(code: Microkernels, rows: Sequence[Axis], columns: Sequence[Axis], elements: int) -> float:
    """Cost of writing the result, tile by tile."""
    runs = lying(along(rows, 3), code.width, code.item)
    if runs == 1.0:
        return moved(code, elements)
    single = alone(code, elements, leaves(rows, 3, lines(columns, 3)))
    return moved(code, elements) + elements * (1 - runs) * single


def lines(axes: Sequence[Axis], place: int) -> int:
    """Approximate number of cache lines that an operand touches along axes.

    >>> lines([Axis(4, 800, 0, 0), Axis(16, 8, 0, 0)], 1), lines([Axis(5, 0, 8, 0)], 1)
    (8, 1)
    """
    apart, span = 1, 0
    for axis in axes:
        stride = abs(axis[place])
        if stride >= tuning.CACHE_LINE_BYTES:
            apart *= axis.n
        else:
            span += axis.n * stride
    return apart * max(1, span // tuning.CACHE_LINE_BYTES)


def streams(code: Microkernels, rows: Sequence[Axis], others: Sequence[Axis], elements: int) -> bool:
    """Whether a large result is written in whole cache lines, each far from the previous one.

    >>> code = Microkernels("d", "avx512", 32 << 20)
    >>> rows = [Axis(1 << 17, 0, 0, 128), Axis(2, 0, 0, 1 << 24), Axis(8, 0, 0, 8)]
    >>> streams(code, rows, [], 1 << 21), streams(code, rows, [], 1 << 15), streams(code, rows[2:], rows[1:2], 1 << 21)
    (True, False, True)
    """
    if elements * code.item < tuning.STREAM_MIN_BYTES:
        return False
    run = code.item
    outside = [*others, *rows]
    while outside and outside[-1].c == run:
        run *= outside.pop().n
    whole = run % tuning.CACHE_LINE_BYTES == 0 and all(x.c % tuning.CACHE_LINE_BYTES == 0 for x in outside)
    return whole and run <= 4 * tuning.CACHE_LINE_BYTES


def leaves(axes: Sequence[Axis], place: int, count: int) -> bool:
    """Whether a cache line is left and revisited after eviction; each of the axes' elements has `count` lines."""
    reach = window = 1
    for axis in reversed(axes):
        if 0 < abs(axis[place]) < tuning.CACHE_LINE_BYTES:
            window = reach * min(axis.n, -(-tuning.CACHE_LINE_BYTES // abs(axis[place])))
        reach *= axis.n
    return 2 * window * tuning.CACHE_LINE_BYTES * count > tuning.NEAR_MAX_BYTES


def best_order(
    code: Microkernels, axes: list[Axis], place: int, read: tuple[int, int], written: tuple[int, int]
) -> list[Axis]:
    """The cheapest order of one side's axes: that of the operand or of the result, or that of the operand with the axes
    innermost that fill cache lines of either.

    Args:
        code: the dtype on its host.
        axes: axes of the side.
        place: index of the operand in an axis.
        read: elements of the operand, and cache lines that one index of the side has in it.
        written: the same for the result.
    """
    if len(axes) < 2:
        return axes
    orders = [ordered(axes, 3), ordered(axes, place)]
    if orders[0] == orders[1]:
        return orders[0]
    split = _split(code, _split(code, orders[1], place), 3)
    filling = [x for x in ordered(split, 3) if 0 < abs(x[3]) < tuning.CACHE_LINE_BYTES]
    inside = [x for x in split if 0 < abs(x[place]) < tuning.CACHE_LINE_BYTES and x not in filling]
    if filling and inside:
        orders.append([*[x for x in split if x not in inside and x not in filling], *inside, *filling])

    def cost(order: list[Axis]) -> float:
        _, near = capped(order, tuning.TABLE_MAX_ROWS)
        total = 0.0
        for where, (elements, count) in ((place, read), (3, written)):
            single = alone(code, elements, leaves(order, where, count))
            total += moved(code, elements) + elements * (1 - lying(along(near, where), code.width, code.item)) * single
        return total

    return min(orders, key=cost)


def _split(code: Microkernels, axes: list[Axis], place: int) -> list[Axis]:
    """Split long axes that fill cache lines, so that the inner part is about one line."""
    found: list[Axis] = []
    for axis in axes:
        least = -(-tuning.CACHE_LINE_BYTES // max(1, abs(axis[place])))
        parts = [d for d in range(least, min(axis.n, 8 * tuning.CACHE_LINE_BYTES // code.item)) if axis.n % d == 0]
        if abs(axis[place]) < tuning.CACHE_LINE_BYTES and axis[place] and parts:
            d = min(parts, key=lambda d: (d % code.width != 0, d))
            found += [Axis(axis.n // d, axis.a * d, axis.b * d, axis.c * d), axis._replace(n=d)]
        else:
            found.append(axis)
    return found
