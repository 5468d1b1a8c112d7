"""Products whose operands or result have the batch innermost: block by block of the batch, with cached copies.

Where elements of several batches share cache lines, one block of the batch is copied at a time: with the batch
innermost, so that vectors run along it, or outermost, so that each batch is a matrix. The copies of consecutive blocks
share memory, so that they stay in the nearest caches.
"""

from collections.abc import Iterator, Mapping, Sequence
from math import prod

from tenferro_cpu.native.contraction import tuning
from tenferro_cpu.native.contraction._axes import Axis, Plain, merged, ordered, size
from tenferro_cpu.native.contraction._chunks import cut
from tenferro_cpu.native.contraction._microkernels import Microkernels
from tenferro_cpu.native.contraction._record import Places, Step
from tenferro_cpu.native.contraction._step import copied, plan_step, three

COPIES, ONE = 3, 4
"""Base pointers of the copies and of the number one, after both operands and the result."""


def blocked(code: Microkernels, axes: Sequence[Plain], most: int, cost: float) -> Step | None:
    """The product over these axes in blocks, if that costs less than `cost` nanoseconds."""
    if cost < tuning.BLOCKS_MIN_COST:
        return None
    best = min(ways(code, axes, most), key=lambda step: step.cost, default=None)
    return best if best is not None and best.cost < cost else None


def ways(code: Microkernels, axes: Sequence[Plain], most: int) -> list[Step]:
    """All ways to compute the product over these axes in blocks."""
    whole = merged([Axis(*numbers) for numbers in axes])
    return [step for axis in whole for step in _along(code, whole, axis, most)]


def _along(code: Microkernels, axes: Sequence[Axis], axis: Axis, most: int) -> Iterator[Step]:
    """Ways to take blocks along one axis of the batch that is inside cache lines and long enough."""
    n, *strides = axis
    if n < code.width or not all(strides) or min(map(abs, strides)) >= tuning.CACHE_LINE_BYTES:
        return
    block = n if n <= 2 * code.width else code.width
    outside = [x for x in axes if x is not axis and all(abs(stride) >= tuning.CACHE_LINE_BYTES for stride in x[1:])]
    inside = [axis._replace(n=block), *[x for x in axes if x is not axis and x not in outside]]
    for layouts in (_innermost(code, inside), _outermost(inside)):
        if layouts:
            step = _step(code, axes, outside, axis, inside, layouts)
            if step is not None:
                yield cut(code, step, most)


def _innermost(code: Microkernels, axes: Sequence[Axis]) -> dict[int, list[Axis]]:
    """Axis orders for copies, with the first axis innermost, of the operands that have it elsewhere."""
    first, *rest = axes
    return {place: [*ordered(_of(rest, place), place), first] for place in (1, 2, 3) if first[place] != code.item}


def _outermost(axes: Sequence[Axis]) -> dict[int, list[Axis]]:
    """Axis orders for copies, with the first axis outermost, of the operands that have it inside cache lines."""
    first, *rest = axes
    found = {}
    for place in (1, 2, 3):
        if abs(first[place]) < tuning.CACHE_LINE_BYTES:
            batch = [x for x in rest if all(x[1:])]
            groups = [[x for x in _of(rest, place) if not all(x[1:]) and not x[other]] for other in (3, 2, 1)]
            groups = [ordered(group, place) for group in groups if group]
            if place == 3:  # the longer side innermost
                groups.sort(key=size)
            found[place] = [first, *ordered(batch, place), *[x for group in groups for x in group]]
    return found


def _of(axes: Sequence[Axis], place: int) -> list[Axis]:
    return [x for x in axes if x[place]]


def _step(
    code: Microkernels, axes: Sequence[Axis], outside: list[Axis], axis: Axis, inside: list[Axis],
    layouts: Mapping[int, list[Axis]],
) -> Step | None:  # fmt: skip
    """For each block: copies of some operands, the product, a copy of the result."""
    own = {place: [x[place] for x in inside] for place in (1, 2, 3)}
    places = [(place - 1, 0) for place in (1, 2, 3)]
    copies: dict[int, Step] = {}
    room = 0
    for place, order in layouts.items():
        strides, size_of = {}, code.item
        for x in reversed(order):
            strides[id(x)] = size_of  # axes may be equal
            size_of *= x.n
        made = [strides.get(id(x), 0) for x in inside]
        pair = (made, own[place]) if place == 3 else (own[place], made)
        moves = [Axis(x.n, old, 0, new) for x, old, new in zip(inside, *pair, strict=True) if x[place]]
        found = copied(code, moves, 1) or plan_step(code, tuple(moves), 1, often=True)
        if found is None:
            return None
        copies[place], own[place], places[place - 1] = found, made, (COPIES, room)
        room += -(-size_of // tuning.CACHE_LINE_BYTES) * tuning.CACHE_LINE_BYTES
    near = tuple([(x.n, *along) for x, *along in zip(inside, *own.values(), strict=True)])
    product = plan_step(code, near, 1, often=True)
    if product is None or room > tuning.BLOCKS_MAX_BYTES:
        return None
    one = (ONE, 0)
    parts: list[tuple[Step, Places]] = [
        (copies[place], ((place - 1, 0), one, places[place - 1])) for place in (1, 2) if place in copies
    ]
    parts.append((product, (places[0], places[1], places[2])))
    if 3 in copies:
        parts.append((copies[3], (places[2], one, (2, 0))))
    step = Step("blocks", _sizes(axes))
    step.words = {
        "batch": size(outside), "sums": 1, "rows": axis.n, "row_block": inside[0].n, "room": room,
        "parts": len(parts), "scratch": room + max([part.scratch for part, _ in parts]),
    }  # fmt: skip
    step.fill = lambda: three("batch", outside) | three("row", [axis])
    step.inside = tuple(parts)
    blocks = size(outside) * -(-axis.n // inside[0].n)
    step.cost = blocks * (tuning.BLOCK_COST + sum([part.cost for part, _ in parts]))
    for place in (1, 2, 3):
        elements = prod([x.n for x in axes if x[place]])
        step.cost += tuning.FAR_BLOCK_COST * elements * (elements * code.item > tuning.NEAR_MAX_BYTES)
    return step


def _sizes(axes: Sequence[Axis]) -> tuple[int, int, int, int]:
    kinds = [tuple([stride != 0 for stride in x[1:]]) for x in axes]
    batch, rows, columns, inner = (
        prod([x.n for x, found in zip(axes, kinds, strict=True) if found == wanted])
        for wanted in ((True, True, True), (True, False, True), (False, True, True), (True, True, False))
    )
    return batch, rows, columns, inner
