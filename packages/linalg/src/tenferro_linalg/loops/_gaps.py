"""The tests of derivatives of decompositions (see `_degeneracy`), decided by a loop over the values.

If no two values are equal, a test passes its operand on and quotients need no masks. Otherwise the entries of equal
values are tested, and the kernel decides about those that do not pass.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tenferro_linalg._degeneracy import TOLERANCE
from tenferro_linalg._multiplets import EPS
from tenferro_linalg.loops._lapack import BOOL, Batch, counted, matrix, over, where_not_0
from tenferro_linalg.loops._multiplets import folded, irregular, largest_of, multiplets_of, times_size
from tenferro_runtime.lowering import LoopWriter, Lowered, Step, Stored, call_into, stored
from tenferro_tensor import catalog
from tenferro_tensor.loop_ir import INDEX, Affine, Case, Literal, Order, Switch, Value
from tenferro_tensor_core import DimLike


def checked_by_kernel(step: Step, bad: Value) -> None:
    """Run the kernel of a test where it may fail; its result is one of its operands."""
    w = step.w
    with w.block() as again:
        operands = [stored(w, x) for x in step.operands]
        call_into(step, operands, [Stored.whole_of(w.buffer(s.dtype, s.shape)) for s in step.outs], recourse=True)
    where_not_0(w, bad, again)


def _values(step: Step, k: int) -> Stored:
    """An operand in memory."""
    x = stored(step.w, step.operand(k))
    step.replace(k, x)
    return x


def _irregular(step: Step, values: Stored, zeros: bool, strict: str | None = None) -> Value:
    """0 if no matrix of a stack has equal values."""
    w, size = step.w, step.params["size"]
    return over(w, values.shape[:-1], lambda batch: irregular(w, matrix(values, batch), size, zeros, strict))


def checked(step: Step) -> Lowered:
    """A numerator; if all values differ, only phases have vanishing gaps."""
    w, values, kind, size = step.w, _values(step, 1), step.params["kind"], step.params["size"]
    cotangent = step.params["role"] == "cotangent"
    bad = _irregular(step, values, kind != "difference")
    if kind == "difference" and cotangent and step.out.dtype.kind == "c":
        bad = w.let(catalog.bitwise_or.op(), INDEX, bad, _turned(step, values))
    numerator, scale, real = _values(step, 0), step.operand(2), values.dtype

    def one(batch: Batch) -> Value:
        runs = multiplets_of(w, matrix(values, batch), size, kind != "difference")
        limit = times_size(w, scale.at(w, batch), TOLERANCE * EPS[real], size)

        def fails(i: Batch) -> Value:
            here = runs.vanishing(w, kind, *i)
            if kind == "difference" and not cotangent:
                here = w.both(here, w.let(catalog.ne.op(), BOOL, *map(w.position, i)))
            entry = w.let(catalog.abs.op(), real, numerator.at(w, (*batch, *i)))
            return counted(w, w.both(here, w.let(catalog.gt.op(), BOOL, entry, limit)))

        return over(w, numerator.shape[-2:], fails)

    return _passed(step, bad, values.shape[:-1], one)


def _passed(step: Step, bad: Value, batch: Sequence[DimLike], fails: Callable[[Batch], Value]) -> Lowered:
    """The first operand; if the status `bad` is not 0, after a test of each matrix, which the kernel may repeat."""
    with step.w.block() as suspicious:
        checked_by_kernel(step, over(step.w, batch, fails))
    where_not_0(step.w, bad, suspicious)
    return step.operand(0)


def _turned(step: Step, values: Stored) -> Value:
    """0 if the diagonal of a numerator vanishes."""
    w, numerator, scale = step.w, _values(step, 0), step.operand(2)
    real, size = values.dtype, catalog.abs.op()

    def one(batch: Batch) -> Value:
        limit = times_size(w, scale.at(w, batch), TOLERANCE * EPS[real], step.params["size"])

        def above(i: Affine) -> Value:
            found = w.let(size, real, numerator.at(w, (*batch, i, i)))
            fine = w.let(catalog.le.op(), BOOL, found, limit)
            return counted(w, w.let(catalog.bitwise_not.op(), BOOL, fine))

        return folded(w, values.shape[-1], Literal(0, INDEX), catalog.bitwise_or.op(), above)

    return over(w, values.shape[:-1], one)


def certified(step: Step) -> Lowered:
    """A cotangent of values; those of equal values are equal, and those of zero singular values vanish."""
    w, zeros, size = step.w, step.params["what"] != "eigh", step.params["size"]
    cotangent, values = (_values(step, k) for k in (0, 1))
    others = [_values(step, k) for k in range(2, len(step.eq.operands))]
    real, add = values.dtype, catalog.add.op()

    def one(batch: Batch) -> Value:
        given, found = matrix(cotangent, batch), matrix(values, batch)
        runs, largest = multiplets_of(w, found, size, zeros), largest_of(w, found)
        limit = frobenius(w, given, real)
        for x in others:
            norm = frobenius(w, matrix(x, batch), real)
            if len(x.shape) > len(values.shape):
                some = w.let(catalog.gt.op(), BOOL, largest, Literal(0.0, real))
                norm = w.let(catalog.div.op(), real, norm, largest)
                norm = w.let(catalog.select.op(), real, some, norm, Literal(0.0, real))
            limit = w.let(add, real, limit, norm)
        limit = times_size(w, limit, TOLERANCE * EPS[real], size)

        def above(x: Value) -> Value:
            return w.let(catalog.gt.op(), BOOL, w.let(catalog.abs.op(), real, x), limit)

        def fails(at: Batch) -> Value:
            (i, j), other = at, given.at(w, at[1:])
            failing = w.both(runs.same(w, i, j), above(w.let(catalog.sub.op(), real, given.at(w, at[:1]), other)))
            if zeros:
                lost = w.both(runs.null(w, j), above(other))
                failing = w.let(catalog.bitwise_or.op(), BOOL, failing, lost)
            return counted(w, failing)

        return over(w, (values.shape[-1],) * 2, fails)

    return _passed(step, _irregular(step, values, zeros), values.shape[:-1], one)


def unsigned(step: Step) -> Lowered:
    """A cotangent of vectors of nonzero values, or of several zeros; the signs of single null vectors are tested."""
    w, values, size = step.w, _values(step, 2), step.params["size"]
    k = values.shape[-1]

    def one(batch: Batch) -> Value:
        runs = multiplets_of(w, matrix(values, batch), size, True)
        return counted(w, w.let(catalog.eq.op(), BOOL, runs.rank, w.position(Affine(k - 1))))

    return _passed(step, _irregular(step, values, True), values.shape[:-1], one)


def quotient(step: Step) -> Lowered:
    """A numerator over its gaps; where they vanish, 0, or the error of the kernel if that is strict."""
    w, values, kind, size = step.w, _values(step, 1), step.params["kind"], step.params["size"]
    numerator, dtype, real, strict = step.operand(0), step.out.dtype, values.dtype, step.params["strict"]
    bad = _irregular(step, values, kind != "difference", kind if strict else None)
    out = Stored.whole_of(w.buffer(dtype, step.out.shape))
    zero = Literal(dtype.type(0).item(), dtype)

    def divided(i: Batch, vanishing: Value) -> None:
        *batch, row, column = i
        gap = values.at(w, (*batch, column))
        if kind != "column":
            op = catalog.sub if kind == "difference" else catalog.add
            gap = w.let(op.op(), real, gap, values.at(w, (*batch, row)))
        if dtype != real:
            gap = w.let(catalog.convert.op(dtype=dtype), dtype, gap)
        found = w.let(catalog.div.op(), dtype, numerator.at(w, i), gap)
        w.store(out.buffer, out.place(i), w.let(catalog.select.op(), dtype, vanishing, zero, found))

    def regular(i: Batch) -> None:
        on: Value = Literal(False, BOOL)
        if kind == "difference":
            on = w.let(catalog.eq.op(), BOOL, w.position(i[-2]), w.position(i[-1]))
        divided(i, on)

    def masked(batch: Batch) -> Value:
        runs = multiplets_of(w, matrix(values, batch), size, kind != "difference")
        w.nest(out.shape[-2:], lambda i: divided((*batch, *i), runs.vanishing(w, kind, *i)))
        return Literal(0, INDEX)

    with w.block() as plain:
        w.nest(out.shape, regular)
    with w.block() as other:
        if strict:
            call_into(step, [stored(w, x) for x in step.operands], [out], recourse=True)
        else:
            over(w, out.shape[:-2], masked)
    odd = counted(w, w.let(catalog.ne.op(), BOOL, bad, Literal(0, INDEX)))
    w.statements.append(Switch(odd, (Case(tuple(plain)), Case(tuple(other)))))
    w.written(out.buffer)
    return out


def cotangent_scale(step: Step) -> Lowered:
    """Summed Frobenius norms of matrices, and 2-norms of vectors times the largest value."""
    w, values = step.w, _values(step, 0)
    others = [_values(step, k) for k in range(1, len(step.eq.operands))]
    real = values.dtype
    out = Stored.whole_of(w.buffer(real, step.out.shape))

    def one(batch: Batch) -> None:
        total: Value = Literal(0.0, real)
        largest = largest_of(w, matrix(values, batch))
        for x in others:
            norm = frobenius(w, matrix(x, batch), real)
            if len(x.shape) == len(values.shape):
                norm = w.let(catalog.mul.op(), real, largest, norm)
            total = w.let(catalog.add.op(), real, total, norm)
        w.store(out.buffer, out.place(batch), total)

    w.nest(values.shape[:-1], one)
    return out


def frobenius(w: LoopWriter, x: Stored, real: np.dtype[Any]) -> Value:
    """Root of the sum of the squares of all entries of a vector or a matrix."""

    def square(index: Batch) -> Value:
        value = x.at(w, index)
        if x.dtype == real:
            return w.let(catalog.mul.op(), real, value, value)
        parts = [w.let(p.op(), real, value) for p in (catalog.real, catalog.imag)]
        return w.let(catalog.add.op(), real, *[w.let(catalog.mul.op(), real, v, v) for v in parts])

    def level(index: Batch, total: Value) -> Value:
        if len(index) == len(x.shape):
            return w.let(catalog.add.op(), real, total, square(index))
        with w.loop(x.shape[len(index)], [total], Order.GROUPED) as loop:
            loop.following = (level((*index, Affine.of(loop.index)), loop.inside[0]),)
        return loop.results[0]

    return w.let(catalog.sqrt.op(), real, level((), Literal(0.0, real)))
