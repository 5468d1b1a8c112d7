"""Lowering of concatenation and padding: one nest for each part."""

from __future__ import annotations

from tenferro_runtime.lowering._lowering import Step, rule
from tenferro_runtime.lowering._values import (
    Formula,
    Lowered,
    Numbers,
    Stored,
    count,
    indices,
    is_small,
    numbers,
    row_major,
    write,
)
from tenferro_runtime.lowering._views import mapped
from tenferro_runtime.lowering._writer import never_negative
from tenferro_tensor import catalog
from tenferro_tensor.loop_ir import Affine, Value
from tenferro_tensor_core import DimLike, dim_max, floordiv


@rule(catalog.concatenate)
def _concatenate(step: Step) -> Lowered:
    axis, shape, w = step.params["axis"], step.out.shape, step.w
    if is_small(shape):
        return _joined(step, axis)
    found = _columns(step) if _is_of_indices(step, axis) else Stored.whole_of(w.buffer(step.out.dtype, shape))
    start: DimLike = 0
    for x in step.operands:
        write(w, x, Stored(found.buffer, x.shape, Affine(start) * found.strides[axis], found.strides))
        start = start + x.shape[axis]
    return found


def _is_of_indices(step: Step, axis: int) -> bool:
    """Whether single integers are concatenated, as in index vectors."""
    single = all(x.shape[axis].__class__ is int and x.shape[axis] == 1 for x in step.operands)
    return single and 0 < axis == len(step.out.shape) - 1 and step.out.dtype.kind in "iu"


def _columns(step: Step) -> Stored:
    """Column-major memory, because columns are written and read one by one."""
    *batch, n = step.out.shape
    buffer = step.w.buffer(step.out.dtype, (n, *batch))
    return Stored(buffer, step.out.shape, Affine(), (*row_major(batch), count(batch)))


def _joined(step: Step, axis: int) -> Numbers:
    """Concatenate small parts element by element."""
    found: dict[tuple[DimLike, ...], Value] = {}
    start: DimLike = 0
    for x in step.operands:
        for index, element in zip(indices(x.shape), numbers(step.w, x).elements):
            place = [i.constant for i in index]
            place[axis] = place[axis] + start
            found[tuple(place)] = element
        start = start + x.shape[axis]
    return Numbers(
        step.out.shape, step.out.dtype, [found[tuple([i.constant for i in index])] for index in indices(step.out.shape)]
    )


@rule(catalog.pad)
def _pad(step: Step) -> Lowered:
    """Fill with the padding value, then write the remaining elements of the operand."""
    w, shape, dtype = step.w, step.out.shape, step.out.dtype
    x, value = step.operand(0), step.operand(1, dtype).at(w, ())
    low, high, interior = step.params["low"], step.params["high"], step.params["interior"]
    for k, (lo, hi, gap) in enumerate(zip(low, high, interior)):
        if not (never_negative(lo) and never_negative(hi)):
            if not gap:
                x = _cropped(step, x, k, dim_max(-lo, 0), dim_max(-hi, 0))
            elif never_negative(lo):
                fitting = floordiv(dim_max(shape[k] - lo, 0) + gap, gap + 1)
                x = _cropped(step, x, k, 0, dim_max(x.shape[k] - fitting, 0))
            else:
                raise step.unsupported("negative padding together with interior padding")
    if is_small(shape):
        return _padded_numbers(step, x, value)
    found = Stored.whole_of(w.buffer(dtype, shape))
    write(w, Formula(shape, dtype, lambda w, i: value), found)
    offset = Affine()
    for lo, stride in zip(low, found.strides):
        offset = offset + Affine(_positive(lo)) * stride
    strides = tuple([stride * (1 + gap) for stride, gap in zip(row_major(shape), interior)])
    write(w, x, Stored(found.buffer, x.shape, offset, strides))
    return found


def _positive(d: DimLike) -> DimLike:
    return d if never_negative(d) else dim_max(d, 0)


def _cropped(step: Step, x: Lowered, axis: int, first: DimLike, last: DimLike) -> Lowered:
    shape = tuple([dim_max(n - first - last, 0) if k == axis else n for k, n in enumerate(x.shape)])
    return mapped(step, x, shape, lambda index: tuple([i + first if k == axis else i for k, i in enumerate(index)]))


def _padded_numbers(step: Step, x: Lowered, value: Value) -> Numbers:
    inside: dict[tuple[DimLike, ...], Value] = {}
    low, interior = step.params["low"], step.params["interior"]
    for index, element in zip(indices(x.shape), numbers(step.w, x).elements):
        place = [i.constant * (1 + gap) + _positive(lo) for i, gap, lo in zip(index, interior, low)]
        inside[tuple(place)] = element
    return Numbers(
        step.out.shape, step.out.dtype,
        [inside.get(tuple([i.constant for i in index]), value) for index in indices(step.out.shape)],
    )  # fmt: skip
