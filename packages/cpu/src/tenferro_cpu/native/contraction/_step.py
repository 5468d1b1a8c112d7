"""One step as a record: which kernel runs, which operand provides the rows, what is packed at once."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Final

from tenferro_cpu.native.contraction import tuning
from tenferro_cpu.native.contraction._axes import Axis, Plain, along, capped, merged, ordered, size, tables
from tenferro_cpu.native.contraction._chunks import SIDES, STRIPS, cut
from tenferro_cpu.native.contraction._costs import (
    alone,
    best_order,
    flop,
    lines,
    moved,
    packed,
    settled,
    stored,
    streams,
)
from tenferro_cpu.native.contraction._microkernels import Microkernels
from tenferro_cpu.native.contraction._record import PREFETCHED, STREAM, Step
from tenferro_cpu.native.contraction._tables import Entries, Flags, Offsets, Tiles, lying, offsets
from tenferro_tensor.tables import Table

Groups = tuple[list[Axis], list[Axis], list[Axis], list[Axis]]
"""Axes of batch, rows, columns and sum."""

Sizes = tuple[int, int, int, int]
"""Sizes of the four."""

STEPS: Final = Table("steps of contractions", 4096)
"""Steps with small tables, by dtype, host and axes, which networks repeat."""

LENGTHS: Final = ("batch", "rows", "columns", "inner")


def plan_step(code: Microkernels, plain: tuple[Plain, ...], most: int, *, often: bool = False) -> Step | None:
    """The step over these axes in at most `most` chunks, or None if there is nothing to write.

    Several methods are compared if there is enough work, or the step is done `often`.
    """
    # One step for both orders of the operands.
    exchanged = sum([numbers[1] for numbers in plain]) < sum([numbers[2] for numbers in plain])
    axes = merged([Axis(n, b, a, c) if exchanged else Axis(n, a, b, c) for n, a, b, c in plain if n != 1])
    key = (code.key, tuple(axes), most, often)
    found: Step | None = STEPS.get(key)
    if found is None:
        found = _planned(code, axes, most, often)
        if found is None or sum([found.words.get(name, 0) for name in LENGTHS]) > tuning.REMEMBERED_MAX_ENTRIES:
            if found is not None and exchanged:
                found.swapped = not found.swapped
            return found
        STEPS.remember(key, found)
    return found.exchanged() if exchanged else found


def _planned(code: Microkernels, axes: list[Axis], most: int, often: bool) -> Step | None:
    if not all(axis.n for axis in axes):
        if any(axis.n == 0 and axis.c for axis in axes):
            return None
        return cut(code, _zeros(code, [axis for axis in axes if axis.c and axis.n]), most)
    groups = _groups(axes)
    batch, rows, columns, inner = groups
    sizes = (size(batch), size(rows), size(columns), size(inner))
    last = min([axis for axis in axes if axis.c], key=lambda axis: abs(axis.c), default=None)
    if sizes[3] == 1:
        found = _runs(code, axes, [], sizes)
        if found is not None or sizes[1] * sizes[2] < tuning.TILE_MIN_ELEMENTS:
            return cut(code, found or _gather(code, axes, sizes), most)
    elif last in batch and max(sizes[1:3]) < code.width and last.n >= code.width:
        found = _runs(code, [axis for axis in axes if axis.c], inner, sizes)
        if found is not None:
            return cut(code, found, most)
    swaps, worth = _swaps(code, groups, sizes, last), often or prod(sizes) >= tuning.COMPARE_MIN_WORK
    others = [] if worth else _stripped(code, groups, sizes)
    oriented = _oriented(code, groups, sizes, swaps, worth=worth, estimated=worth or bool(others))
    found = min(oriented, key=_cost)
    if worth and not settled(code, sizes, found.cost):
        others = _stripped(code, groups, sizes)
        if min(sizes[1:3]) < tuning.DIRECT_MAX_COLUMNS:
            others += _oriented(code, groups, sizes, not swaps, worth=True, estimated=True)
    return cut(code, min([found, *others], key=_cost), most)


def _cost(step: Step) -> float:
    return step.cost


def _stripped(code: Microkernels, groups: Groups, sizes: Sizes) -> list[Step]:
    """Products by strips, if there are any."""
    if not any(axis.a == axis.b == code.item for axis in groups[0] + groups[3]):
        return []
    return [step for name in STRIPS if (step := _strips(code, name, groups, sizes)) is not None]


def _oriented(
    code: Microkernels, groups: Groups, sizes: Sizes, swaps: bool, *, worth: bool, estimated: bool
) -> list[Step]:
    """Matrix products whose rows come from the left operand, or from the right one.

    Rows that are many short runs are read in place if each run is a product of its own.
    """
    if swaps:
        batch, columns, rows, inner = [[axis.swapped() for axis in group] for group in groups]
        groups = batch, rows, columns, inner
        sizes = sizes[0], sizes[2], sizes[1], sizes[3]
    batch, rows, columns, inner = groups
    found = [_product(code, groups, sizes, estimated=estimated)]
    if worth and len(rows) > 1 and sizes[2] <= tuning.DIRECT_MAX_COLUMNS:
        run = next((x for x in rows if x.a == x.c == code.item and x.n % code.width and x.n > code.width), None)
        if run is not None:
            single = [*[x for x in rows if x is not run], *batch], [run], columns, inner
            parts = sizes[0] * sizes[1] // run.n, run.n, sizes[2], sizes[3]
            found.append(_product(code, single, parts, estimated=estimated))
    for step in found:
        step.swapped = swaps
    return found


def _groups(axes: Sequence[Axis]) -> Groups:
    batch: list[Axis] = []
    rows: list[Axis] = []
    columns: list[Axis] = []
    inner: list[Axis] = []
    for axis in axes:
        _, a, b, c = axis
        (inner if not c else batch if bool(a) == bool(b) else rows if a else columns).append(axis)
    return batch, rows, columns, inner


def _swaps(code: Microkernels, groups: Groups, sizes: Sizes, last: Axis | None) -> bool:
    """Whether the right operand provides the rows: it has the innermost axis of the result, or the left one is thin."""
    _, rows, columns, _ = sizes
    if last in groups[1]:
        return rows < code.width and columns >= 2 * code.width
    if last in groups[2]:
        return not (columns < code.width and rows >= 2 * code.width)
    return columns > rows


def _zeros(code: Microkernels, axes: Sequence[Axis]) -> Step:
    outer, inner = capped(merged([axis._replace(a=0, b=0) for axis in axes]), tuning.RUN_ELEMENTS)
    batch, rows = offsets(along(outer, 3)), offsets(along(inner, 3))
    words = {"batch": batch.length, "rows": rows.length, "sums": 1}
    sizes = (batch.length, rows.length, 1, 0)
    return Step("fill", sizes, False, words, lambda: {"batch_c": batch, "row_c": rows})


def zeros(code: Microkernels, axes: Sequence[Axis], most: int) -> Step | None:
    """Zeros everywhere along these axes of the result."""
    if any(axis.n == 0 for axis in axes):
        return None
    return cut(code, _zeros(code, axes), most)


def accumulation(code: Microkernels, axes: Sequence[Axis], apart: int, most: int) -> Step | None:
    """Adds a left operand to the values at byte distance `apart`, times the number one on the right."""
    if any(axis.n == 0 for axis in axes):
        return None
    axes, both = merged(axes), [Axis(2, apart, 0, 0)]
    sizes = (1, size(axes), 1, 2)
    return cut(code, _runs(code, axes, both, sizes) or _gather(code, axes, sizes, both), most)


def _run(code: Microkernels, axes: Sequence[Axis]) -> tuple[int, bool, bool, list[Axis]]:
    """Length of the trailing run of the axes, whether each operand moves along it, and the axes before it."""
    item, left = code.item, list(axes)
    if not left or left[-1].c != item or not {left[-1].a, left[-1].b} <= {0, item}:
        return 1, False, False, left
    last = left.pop()
    return last.n, bool(last.a), bool(last.b), left


def _runs(code: Microkernels, axes: Sequence[Axis], inner: Sequence[Axis], sizes: Sizes) -> Step | None:
    """Element-wise work over runs of the result; the sums over `inner` accumulate in place."""
    axes = sorted(axes, key=lambda axis: -abs(axis.c))
    run, with_a, with_b, left = _run(code, axes)
    if run < max(4, code.width):
        return None
    if not with_a and not with_b:
        return None
    outer, chunk = capped([Axis(run, code.item * with_a, code.item * with_b, code.item)], tuning.RUN_ELEMENTS)
    more, rows = capped([*left, *outer], max(1, tuning.RUN_ELEMENTS // size(chunk)))
    words = {"rows": size(rows), "run": size(chunk), "sums": size(inner), "batch": size(more) * size(inner)}
    far = size(axes) * (1 + with_a + with_b) * code.item > code.near_bytes
    if (
        far
        and not inner
        and size(chunk) * code.item >= tuning.STREAM_MIN_RUN_BYTES
        and all(x.c % code.item == 0 for x in axes)
    ):
        words["stream"] = STREAM
    found = Step("elementwise" if with_a and with_b else "scaling", sizes, with_b and not with_a, words)
    found.cost = tuning.RUN_COSTS[1] * prod(sizes) * (2 + (with_a and with_b))
    if found.swapped:
        more, rows, inner = ([axis.swapped() for axis in group] for group in (more, rows, inner))
    found.fill = lambda: three("batch", [*more, *inner]) | three("row", rows)
    return found


def _gather(code: Microkernels, axes: Sequence[Axis], sizes: Sizes, summed: Sequence[Axis] = ()) -> Step:
    more, left = capped(axes, tuning.RUN_ELEMENTS)
    rows, inner = left[: len(left) // 2], left[len(left) // 2 :]
    words = {"rows": size(rows), "inner": size(inner), "sums": size(summed), "batch": size(more) * size(summed)}
    found = Step("gather", sizes, False, words, cost=2 * alone(code, prod(sizes), True) * prod(sizes))
    found.fill = lambda: three("batch", [*more, *summed]) | three("row", rows) | three("inner", inner)
    return found


def three(name: str, axes: Sequence[Axis]) -> dict[str, Entries]:
    """The offsets of both operands and of the result."""
    if not axes:
        return dict.fromkeys((f"{name}_a", f"{name}_b", f"{name}_c"), Offsets((), 1))
    return {f"{name}_{operand}": table for operand, table in zip("abc", tables(axes), strict=True)}


def _strips(code: Microkernels, name: str, groups: Groups, sizes: Sizes) -> Step | None:
    """Products whose vectors run along the sum or along the batch, if one of their axes is contiguous everywhere."""
    batch, rows, columns, inner = groups
    dot, item, w = name == "dot", code.item, code.width
    among = inner if dot else batch
    last = next((x for x in among if x.a == x.b == item and (dot or x.c == item)), None)
    pairs = dot and code.masks and sizes[1] == sizes[2] == 1  # a row and a column alone fill no tile
    if last is None or last.n < (2 if pairs else w if dot else w // 2):
        return None
    if not dot and last.n % w and not code.masks:
        return None
    run = last.n
    more_rows, rows = capped(rows, tuning.TABLE_MAX_COLUMNS)
    more_columns, columns = capped(columns, tuning.TABLE_MAX_COLUMNS)
    rest = ordered([x for x in inner if x is not last], 1)
    outer, near = capped(
        rest, max(1, min(tuning.TABLE_MAX_INNER, tuning.STRIP_CHUNK // run if dot else tuning.TABLE_MAX_INNER))
    )
    outside = [*more_rows, *more_columns, *[x for x in batch if x is not last]]
    words = {
        "batch": size(outside) * size(outer), "sums": size(outer), "rows": size(rows),
        "columns": size(columns), "inner": size(near), "run": run,
    }  # fmt: skip
    found = Step(name, sizes, False, words)
    found.fill = lambda: three("batch", [*outside, *outer]) | {
        "row_a": offsets(along(rows, 1)), "row_c": offsets(along(rows, 3)),
        "column_b": offsets(along(columns, 2)), "column_c": offsets(along(columns, 3)),
        "inner_a": offsets(along(near, 1)), "inner_b": offsets(along(near, 2)),
    }  # fmt: skip
    m, n = (min(x, y) for x, y in zip(sizes[1:3], code.strips[name], strict=True))
    vectors = prod(sizes) // run * -(-run // w)
    left, right, result = sizes[0] * sizes[1] * sizes[3], sizes[0] * sizes[2] * sizes[3], prod(sizes[:3])
    passes = -(-sizes[1] // m)  # cost of the columns, in near caches if they fit
    reach = sizes[2] * item * (min(sizes[3], tuning.STRIP_CHUNK) if dot else w * sizes[3])
    found.cost = (
        2 * w * flop(code) * vectors * max(1.0, (m + n) / (m * n))
        + moved(code, left)
        + moved(code, right) * (passes if 2 * reach > tuning.NEAR_MAX_BYTES else 1)
        + (tuning.LANE_SUM_COST * -(-sizes[3] // tuning.STRIP_CHUNK) * result if dot else moved(code, result))
    )
    return found


def _product(code: Microkernels, groups: Groups, sizes: Sizes, *, estimated: bool = True) -> Step:
    """A matrix product: which side is read in place, and which is packed; its cost only if `estimated`."""
    batch, rows, columns, inner = groups
    result = prod(sizes[:3])
    left, right = sizes[0] * sizes[1] * sizes[3], sizes[0] * sizes[2] * sizes[3]
    passes = max(1, sizes[3] // tuning.INNER_BLOCK)
    if len(rows) > 1:
        rows = best_order(code, rows, 1, (left, lines(inner, 1)), (result * passes, lines(columns, 3)))
    if len(columns) > 1:
        columns = best_order(code, columns, 2, (right, lines(inner, 2)), (result * passes, lines(rows, 3)))
    inner = ordered(inner, 1 if left >= right else 2)
    outer, sums = batch, 1
    count, m, n, k = sizes
    if m > tuning.TABLE_MAX_ROWS or n > tuning.TABLE_MAX_COLUMNS or k > tuning.TABLE_MAX_INNER:
        more_rows, rows = capped(rows, tuning.TABLE_MAX_ROWS)
        more_columns, columns = capped(columns, tuning.TABLE_MAX_COLUMNS)
        more_inner, inner = capped(inner, tuning.TABLE_MAX_INNER)
        m, n, k, sums = size(rows), size(columns), size(inner), size(more_inner)
        outer = [*more_rows, *more_columns, *batch, *more_inner]
        count = size(outer)
    found = Step("gemm", sizes, False, {"sums": sums, "rows": m, "columns": n, "inner": k})
    found.words["batch"] = count
    w, item, n_w = code.width, code.item, code.columns
    found.fill = lambda: three("batch", outer) | {
        "row_a": Offsets(along(rows, 1), m), "row_c": Offsets(along(rows, 3), m),
        "inner_a": Offsets(along(inner, 1), k), "inner_b": Offsets(along(inner, 2), k),
        "column_b": Offsets(along(columns, 2), n), "column_c": Offsets(along(columns, 3), n),
        "row_flags": Flags("row_a", m, w, item), "row_inner_flags": Flags("inner_a", k, w, item),
        "column_flags": Flags("column_b", n, n_w, item),
        "column_inner_flags": Flags("inner_b", k, n_w, item),
        "tile_flags": Tiles("row_c", m, w, item, code.vectors),
    }  # fmt: skip
    lies = lying(along(rows, 1), w, item) == 1.0 and (m % w == 0 or code.masks)
    few = m <= 2 * code.rows or n * k * item <= tuning.DIRECT_MAX_COLUMN_BYTES
    # All columns are packed first: they must stay near, because every block of rows meets them.
    direct = lies and (
        n <= tuning.DIRECT_MAX_COLUMNS
        or (m * k * item <= tuning.DIRECT_MAX_ROW_BYTES and (few or n * k * item <= tuning.NEAR_MAX_BYTES))
    )
    if estimated:
        vectors, full = min(code.vectors, -(-m // w)), min(n, n_w)
        flops = flop(code) * 2 * prod(sizes)
        found.cost = (
            (moved(code, left) if direct else packed(code, rows, inner, 1, (left, m * k)))
            + (moved(code, right) if direct and few else packed(code, columns, inner, 2, (right, n * k)))
            + stored(code, rows, columns, result) * -(-k // tuning.INNER_BLOCK)
            + flops * (-(-m // w) * w / m) * max(1.0, (vectors + full) / (vectors * full))
            + tuning.TILE_COST
            * -(-m // (vectors * w))
            * -(-n // full)
            * -(-k // tuning.INNER_BLOCK)
            * found.words["batch"]
            + 2 * tuning.TILE_COST * (m % w > 0) * -(-n // full) * sizes[0]  # the last vector is stored via the stack
            + tuning.TILE_COST
            * ((not direct) * -(-m // w) + (not direct or not few) * -(-n // n_w))
            * found.words["batch"]
        )
    if k <= tuning.INNER_BLOCK and sums == 1 and streams(code, rows, [*outer, *columns], result):
        found.words["stream"] = STREAM
    if tuning.PREFETCH_BATCH_MIN_BYTES <= (m + n) * k * item <= tuning.NEAR_MAX_BYTES and k <= tuning.INNER_BLOCK:
        sides = ((1, [*rows, *inner]), (2, [*columns, *inner]))
        if all(_compact(code, side, place) or not any(x[place] for x in outer) for place, side in sides):
            found.words["ahead"] = -(-2 * max(m, n) * item // (-(-m // code.rows) * -(-n // n_w)))
    if direct:
        found.kernel = "gemm direct" if few else "gemm direct rows"
        found.words["scratch"] = 0 if few else n * k * item
        found.words["row_block"] = code.rows * max(1, tuning.ROWS_NEAR_BYTES // (code.rows * k * item))
        return found
    found.words |= {
        f"far_{side}": PREFETCHED * (n * item > tuning.PREFETCH_MIN_BYTES)
        for side, n in zip(SIDES, (left, right), strict=True)
    }
    block = code.rows * max(1, tuning.ROW_BLOCK_BYTES // (code.rows * 8))
    row_block = min(block, -(-m // code.rows) * code.rows)
    inner_block, column_block = (
        min(tuning.INNER_BLOCK, k),
        min(tuning.COLUMN_BLOCK, -(-n // code.columns) * code.columns),
    )
    found.words |= {"row_block": row_block, "inner_block": inner_block, "column_block": column_block}
    found.words["scratch"] = (row_block + column_block) * inner_block * item
    return found


def _compact(code: Microkernels, axes: Sequence[Axis], place: int) -> bool:
    """Whether axes fill a contiguous block of memory."""
    step = code.item
    for axis in reversed(ordered(axes, place)):
        if axis[place] != step and axis.n > 1:
            return False
        step *= axis.n
    return True


def copied(code: Microkernels, axes: Sequence[Axis], most: int) -> Step | None:
    """A copy of a left operand to a result with another innermost axis, if each has a contiguous one."""
    axes, item = merged(axes), code.item
    row = next((x for x in axes if x.c == item), None)
    inner = next((x for x in axes if x.a == item), None)
    if row is None or inner is None or row is inner:
        return None
    batch = [x for x in axes if x is not row and x is not inner]
    sizes = (size(batch), row.n, 1, inner.n)
    words = {"batch": sizes[0], "sums": 1, "rows": row.n, "columns": 1, "inner": inner.n, "run": inner.c}
    found = Step(
        "transpose",
        sizes,
        False,
        words,
        cost=tuning.COPY_COSTS[prod(sizes) * item > tuning.NEAR_MAX_BYTES] * prod(sizes),
    )
    found.fill = lambda: three("batch", batch) | {
        "row_a": offsets(along([row], 1)), "inner_a": offsets(along([inner], 1)),
        "row_inner_flags": Flags("inner_a", inner.n, code.width, item),
    }  # fmt: skip
    return cut(code, found, most)
