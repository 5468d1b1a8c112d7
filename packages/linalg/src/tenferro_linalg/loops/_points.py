"""Which eigenvalues are close, and what functions of eigenvalues take from that; see `_spectral`."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tenferro_linalg.loops._gaps import checked_by_kernel, largest_of
from tenferro_linalg.loops._lapack import BOOL, Batch, counted, matrix, over
from tenferro_runtime.lowering import Formula, LoopWriter, Lowered, Step, Stored, stored
from tenferro_tensor import catalog
from tenferro_tensor.device_model import Literal
from tenferro_tensor.loop_ir import INDEX, Affine, Order, Value

COST = 8
"""Operations for an entry, roughly."""


def _values(step: Step, k: int) -> tuple[Stored, Callable[[LoopWriter, Batch], Value]]:
    """Eigenvalues, and whether those of a row and a column are close: their quotient would lose too many digits."""
    w, values = step.w, stored(step.w, step.operand(k))
    step.replace(k, values)
    real = values.dtype
    limits = Stored.whole_of(w.buffer(real, values.shape[:-1]))
    root = Literal(float(np.cbrt(np.finfo(real).eps)), real)

    def limit(batch: Batch) -> None:
        largest = largest_of(w, matrix(values, batch))
        w.store(limits.buffer, limits.place(batch), w.let(catalog.mul.op(), real, root, largest))

    w.nest(limits.shape, limit)

    def close(w: LoopWriter, index: Batch) -> Value:
        *batch, row, column = index
        gap = w.let(catalog.sub.op(), real, values.at(w, (*batch, column)), values.at(w, (*batch, row)))
        size = w.let(catalog.abs.op(), real, gap)
        return w.let(catalog.le.op(), BOOL, size, limits.at(w, tuple(batch)))

    return values, close


def close(step: Step) -> Lowered:
    """1 for pairs of close eigenvalues, else 0."""
    values, close = _values(step, 0)
    convert = catalog.convert.op(dtype=values.dtype)

    def at(w: LoopWriter, index: Batch) -> Value:
        return w.let(convert, values.dtype, close(w, index))

    return Formula(step.out.shape, values.dtype, at, [values], COST)


def points(step: Step) -> Lowered:
    """Means of close eigenvalues, elsewhere the eigenvalue of the row."""
    values, close = _values(step, 1)
    real, half = values.dtype, Literal(0.5, values.dtype)

    def at(w: LoopWriter, index: Batch) -> Value:
        *batch, row, column = index
        down, across = (values.at(w, (*batch, k)) for k in (row, column))
        halves = [w.let(catalog.mul.op(), real, x, half) for x in (down, across)]
        mean = w.let(catalog.add.op(), real, *halves)
        return w.let(catalog.select.op(), real, close(w, index), mean, down)

    return Formula(step.out.shape, real, at, [values], COST)


def slopes(step: Step) -> Lowered:
    """Numerators over gaps, 0 for close pairs; where none may be close off the diagonal, the kernel says which is."""
    values, close = _values(step, 1)
    if step.params["strict"]:
        _refuse_close(step, values, close)
    g, dtype, real = step.operand(0), step.out.dtype, values.dtype

    def at(w: LoopWriter, index: Batch) -> Value:
        *batch, row, column = index
        near = close(w, index)
        gap = w.let(catalog.sub.op(), real, values.at(w, (*batch, column)), values.at(w, (*batch, row)))
        gap = w.let(catalog.select.op(), real, near, Literal(1.0, real), gap)
        if dtype != real:
            gap = w.let(catalog.convert.op(dtype=dtype), dtype, gap)
        quotient = w.let(catalog.div.op(), dtype, g.at(w, index), gap)
        return w.let(catalog.select.op(), dtype, near, Literal(dtype.type(0).item(), dtype), quotient)

    return Formula(step.out.shape, dtype, at, [g, values], COST)


def _refuse_close(step: Step, values: Stored, close: Callable[[LoopWriter, Batch], Value]) -> None:
    w, n = step.w, values.shape[-1]

    def one(batch: Batch) -> Value:
        with w.loop(n, [Literal(0, INDEX)], Order.GROUPED) as down:
            with w.loop(n, [down.inside[0]], Order.GROUPED) as across:
                row, column = Affine.of(down.index), Affine.of(across.index)
                off = w.let(catalog.ne.op(), BOOL, w.position(row), w.position(column))
                bad = w.let(catalog.bitwise_and.op(), BOOL, off, close(w, (*batch, row, column)))
                across.following = (w.let(catalog.bitwise_or.op(), INDEX, across.inside[0], counted(w, bad)),)
            down.following = (across.results[0],)
        return down.results[0]

    checked_by_kernel(step, over(w, values.shape[:-1], one))
