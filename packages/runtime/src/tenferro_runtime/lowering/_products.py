"""Lowering of contractions of two operands: written out, as loops, or as products of matrices by BLAS."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import numpy as np

from tenferro_runtime.lowering._calls import call
from tenferro_runtime.lowering._lowering import Step, rule
from tenferro_runtime.lowering._reductions import reduced
from tenferro_runtime.lowering._values import Index, Lowered, Stored, copied, count, kept, stored
from tenferro_runtime.lowering._views import transposed
from tenferro_runtime.lowering._writer import LoopWriter, never_negative
from tenferro_tensor import catalog
from tenferro_tensor.loop_ir import INDEX, Affine, Case, Foreign, Literal, Order, Switch, Value, View
from tenferro_tensor_core import DimLike, dim_max

LOOPS_MAX_MULTIPLICATIONS: Final = 512
"""Largest number of multiplications of a matrix product that becomes loops; kernels are faster beyond."""

STACK_MAX_EXTENT: Final = 4
"""Largest extent of matrices that the routine for stacks of small matrices multiplies."""

BLAS: Final = {"f": "s", "d": "d", "F": "c", "D": "z"}
"""BLAS prefixes of dtypes, by NumPy's letters."""

PRECOMPUTE_MIN_COST: Final = 6
"""Cost above which an operand is computed first, because each element is read many times."""


@rule(catalog.dot_general)
def _dot_general(step: Step) -> Lowered | Sequence[Lowered]:
    w = step.w
    (cx, cy), (bx, by) = step.params["contract"], step.params["batch"]
    x, y = step.operands
    fx = [k for k in range(len(x.shape)) if k not in cx and k not in bx]
    fy = [k for k in range(len(y.shape)) if k not in cy and k not in by]
    over = [x.shape[k] for k in cx]
    rows, columns = count([x.shape[k] for k in fx]), count([y.shape[k] for k in fy])
    if over and not (_one(rows) or _one(columns)) and not _few(rows * columns * count(over)) and x.dtype.char in BLAS:
        if not step.lowering.on_host:
            return call(step)
        return multiplied(step, _Axes(tuple(bx), tuple(fx), tuple(cx)), _Axes(tuple(by), tuple(fy), tuple(cy)))
    x, y = (kept(w, v) if v.cost > PRECOMPUTE_MIN_COST else v for v in (x, y))
    inner = bool(cx) and _last_is(x.shape, cx, fx) and _last_is(y.shape, cy, fy)
    inner |= not step.lowering.on_host
    dtype, nb, nx = x.dtype, len(bx), len(fx)

    def term(w: LoopWriter, i: Index, r: Index) -> Value:
        ix, iy = [Affine()] * len(x.shape), [Affine()] * len(y.shape)
        for axes, index, of in ((bx, i[:nb], ix), (fx, i[nb : nb + nx], ix), (cx, r, ix)):
            for k, a in zip(axes, index, strict=True):
                of[k] = a
        for axes, index, of in ((by, i[:nb], iy), (fy, i[nb + nx :], iy), (cy, r, iy)):
            for k, a in zip(axes, index, strict=True):
                of[k] = a
        multiply = catalog.bitwise_and.op() if dtype.kind == "b" else catalog.mul.op()
        return w.let(multiply, dtype, x.at(w, tuple(ix)), y.at(w, tuple(iy)))

    op = catalog.bitwise_or.op() if dtype.kind == "b" else catalog.add.op()
    return reduced(w, step.out.shape, over, term, op, Literal(dtype.type(0).item(), dtype), inner=inner)


@dataclass(frozen=True)
class _Axes:
    """The axes of an operand."""

    batch: tuple[int, ...]
    free: tuple[int, ...]
    summed: tuple[int, ...]


@dataclass(frozen=True)
class _Matrix:
    """An operand as a stack of matrices in memory: extents and strides of its free and its contracted axis."""

    x: Stored
    batch: tuple[int, ...]
    free: tuple[DimLike, DimLike]
    summed: tuple[DimLike, DimLike]

    def at(self, batch: Sequence[Affine]) -> View:
        place = self.x.offset
        for k, i in zip(self.batch, batch, strict=True):
            place = place + i * self.x.strides[k]
        extents, strides = zip(self.free, self.summed)
        return View(self.x.buffer, place, extents, strides)


def multiplied(step: Step, x_axes: _Axes, y_axes: _Axes) -> Lowered:
    """One BLAS call for each index of the batch axes."""
    w, letter = step.w, BLAS[step.out.dtype.char]
    x, y = _matrix(step, 0, x_axes), _matrix(step, 1, y_axes)
    if not x_axes.batch and _is_one(x, y):
        return _squared(step, x)
    out = Stored.whole_of(w.buffer(step.out.dtype, step.out.shape))
    shape = step.out.shape[: len(x_axes.batch)]
    m, n, k = x.free[0], y.free[0], x.summed[0]
    one, zero = (Literal(step.out.dtype.type(v).item(), step.out.dtype) for v in (1, 0))

    def product(batch: tuple[Affine, ...]) -> None:
        """BLAS is column-major, so a row-major result is computed as its transpose: that of `y` times that of `x`."""
        place = out.offset
        for i, stride in zip(batch, out.strides):
            place = place + i * stride
        result = View(out.buffer, place, (m, n), (n, 1))
        (left, a), (right, b) = (_letter(v.summed, v.free) for v in (y, x))
        extents = [w.position(Affine(d)) for d in (n, m, k)]
        leading = [w.position(Affine(dim_max(d, 1))) for d in (a, b, n)]
        arguments = (
            "T" if left else "N", "N" if right else "T", *extents, one, y.at(batch), leading[0], x.at(batch),
            leading[1], zero, result, leading[2],
        )  # fmt: skip
        w.statements.append(Foreign(f"{letter}gemm", arguments, (11,)))

    def level(axis: int, batch: tuple[Affine, ...]) -> None:
        if axis == len(shape):
            product(batch)
        else:
            with w.loop(shape[axis]) as loop:
                level(axis + 1, (*batch, Affine.of(loop.index)))

    small = _small(w, step.out.dtype, x, y, out)
    if small is None:
        level(0, ())
    else:
        with w.block() as large:
            level(0, ())
        number = w.let(catalog.ne.op(), np.dtype(bool), small, Literal(0, INDEX))
        number = w.let(catalog.convert.op(dtype=INDEX), INDEX, number)
        w.statements.append(Switch(number, (Case(()), Case(tuple(large)))))
    w.written(out.buffer)
    return out


def _small(w: LoopWriter, dtype: np.dtype[Any], x: _Matrix, y: _Matrix, out: Stored) -> Value | None:
    """Call the routine for stacks of small matrices; returns its report, or None if it does not apply."""
    extents = (x.free[0], y.free[0], x.summed[0])
    if not x.batch or any(isinstance(n, int) and n > STACK_MAX_EXTENT for n in extents):
        return None
    left, right = (_merged(m.x, m.batch) for m in (x, y))
    if left is None or right is None:
        return None
    numbers = (left[0], *extents, left[1], x.free[1], x.summed[1], right[1], y.summed[1], y.free[1])
    start = (Affine(),) * len(x.batch)
    views = (x.at(start), y.at(start), out.view())
    info = w.reg(INDEX)
    arguments = (*[w.position(Affine(d)) for d in numbers], *views)
    w.statements.append(Foreign(f"small.product.{dtype.char}", arguments, (len(arguments) - 1,), info))
    return info


def _is_one(x: _Matrix, y: _Matrix) -> bool:
    """Whether two matrices are the same memory."""
    places = [(m.x.buffer.number, m.x.offset, m.free, m.summed) for m in (x, y)]
    return places[0] == places[1]


def _squared(step: Step, x: _Matrix) -> Lowered:
    """The products of all pairs of rows of a matrix: BLAS computes one triangle, which is copied to the other."""
    w, dtype = step.w, step.out.dtype
    half, n = Stored.whole_of(w.buffer(dtype, step.out.shape)), x.free[0]
    one, zero = (Literal(dtype.type(v).item(), dtype) for v in (1, 0))
    by_rows, distance = _letter(x.summed, x.free)
    extents = [w.position(Affine(d)) for d in (n, x.summed[0])]
    leading = [w.position(Affine(dim_max(d, 1))) for d in (distance, n)]
    result = View(half.buffer, half.offset, (n, n), (n, 1))
    arguments = (
        "U", "T" if by_rows else "N", *extents, one, x.at(()), leading[0], zero, result, leading[1],
    )  # fmt: skip
    w.statements.append(Foreign(f"{BLAS[dtype.char]}syrk", arguments, (8,)))
    w.written(half.buffer)
    out = Stored.whole_of(w.buffer(dtype, step.out.shape))
    less, choose = catalog.lt.op(), catalog.select.op()
    with w.loop(n, order=Order.ANY) as i, w.loop(n, order=Order.ANY) as j:
        across, back = (w.position(at) for at in (Affine.of(i.index) * n + j.index, Affine.of(j.index) * n + i.index))
        lower = w.let(less, np.dtype(bool), w.position(Affine.of(i.index)), w.position(Affine.of(j.index)))
        place = w.let(choose, INDEX, lower, back, across)
        w.store(out.buffer, Affine.of(i.index) * n + j.index, w.load(half.buffer, w.index(place)))
    w.written(out.buffer)
    return out


def _letter(rows: tuple[DimLike, DimLike], columns: tuple[DimLike, DimLike]) -> tuple[bool, DimLike]:
    """Whether the unit stride is along the rows, and the stride of the other axis."""
    if _one(rows[1]) and not _one(columns[1]):
        return True, columns[1]
    return False, dim_max(rows[1], columns[0]) if _one(rows[0]) or _one(columns[0]) else rows[1]


def _matrix(step: Step, k: int, axes: _Axes) -> _Matrix:
    """An operand as a stack of matrices; copied if its layout does not allow that."""
    x = stored(step.w, step.operand(k))
    step.replace(k, x)
    groups = [_merged(x, group) for group in (axes.free, axes.summed)]
    if not _fits(groups):
        order = (*axes.batch, *axes.free, *axes.summed)
        x = copied(step.w, transposed(step, x, order))
        batch, free = len(axes.batch), len(axes.free)
        axes = _Axes(tuple(range(batch)), tuple(range(batch, batch + free)), tuple(range(batch + free, len(order))))
        groups = [_merged(x, group) for group in (axes.free, axes.summed)]
    free_, summed = groups
    assert free_ is not None and summed is not None
    return _Matrix(x, axes.batch, free_, summed)


def _fits(groups: Sequence[tuple[DimLike, DimLike] | None]) -> bool:
    """Whether BLAS can read a matrix in place: unit stride along one axis, and a larger stride along the other."""
    strides = [group[1] for group in groups if group is not None]
    if len(strides) < 2 or not any(map(_one, strides)):
        return False
    extent, other = next((groups[1 - i], strides[i]) for i in (0, 1) if _one(strides[1 - i]))
    assert extent is not None
    for i in (0, 1):
        if (one := groups[i]) is not None and _one(one[0]):
            return never_negative(strides[1 - i] - 1)  # a single row or column: its own stride does not matter
    return never_negative(other - extent[0])


def _merged(x: Stored, axes: tuple[int, ...]) -> tuple[DimLike, DimLike] | None:
    """Merge axes into one: extent and stride; None if they have no common stride."""
    kept = [k for k in axes if not _one(x.shape[k])]
    if not kept:
        return 1, 1
    for a, b in pairwise(kept):
        if x.strides[a] != x.strides[b] * x.shape[b]:
            return None
    return count([x.shape[k] for k in kept]), x.strides[kept[-1]]


def _last_is(shape: tuple[DimLike, ...], contracted: tuple[int, ...], free: list[int]) -> bool:
    """Whether the terms of one element are contiguous, or the operand has no other axis to iterate along."""
    return not free or len(shape) - 1 in contracted


def _one(n: DimLike) -> bool:
    return n.__class__ is int and n == 1


def _few(n: DimLike) -> bool:
    return isinstance(n, int) and n <= LOOPS_MAX_MULTIPLICATIONS
