"""The tests of derivatives of decompositions (see `_degeneracy`), decided by a loop over the values.

If no two values are equal, a test passes its operand on and quotients need no masks. Otherwise the kernel decides.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tenferro_linalg._degeneracy import TOLERANCE
from tenferro_linalg._multiplets import EPS
from tenferro_linalg.loops._lapack import BOOL, Batch, counted, matrix, over, where_not_0
from tenferro_runtime.lowering import LoopWriter, Lowered, Step, Stored, call_into, stored
from tenferro_tensor import Op, catalog
from tenferro_tensor.device_model import Literal
from tenferro_tensor.loop_ir import INDEX, Affine, Case, Order, Switch, Value
from tenferro_tensor_core import DimLike, dim_max


def folded(w: LoopWriter, n: DimLike, first: Value, op: Op, term: Callable[[Affine], Value]) -> Value:
    """Combine terms by an associative op."""
    with w.loop(n, [first], Order.GROUPED) as loop:
        loop.following = (w.let(op, first.dtype, loop.inside[0], term(Affine.of(loop.index))),)
    return loop.results[0]


def times_size(w: LoopWriter, x: Value, factor: float, size: DimLike) -> Value:
    """``factor * size * x``."""
    if isinstance(size, int):
        return w.let(catalog.mul.op(), x.dtype, x, Literal(factor * size, x.dtype))
    number = w.let(catalog.convert.op(dtype=x.dtype), x.dtype, w.position(Affine(size)))
    scaled = w.let(catalog.mul.op(), x.dtype, number, Literal(factor, x.dtype))
    return w.let(catalog.mul.op(), x.dtype, x, scaled)


def not_above(w: LoopWriter, x: Value, limit: Value) -> Value:
    """0 if a number is above a limit, otherwise 1; a NaN is not above."""
    above = w.let(catalog.gt.op(), BOOL, x, limit)
    return counted(w, w.let(catalog.bitwise_not.op(), BOOL, above))


def largest_of(w: LoopWriter, values: Stored) -> Value:
    """The largest absolute value of a vector; 0 if it is empty."""
    zero = Literal(0.0, values.dtype)
    size = catalog.abs.op()
    return folded(
        w, values.shape[0], zero, catalog.maximum.op(), lambda i: w.let(size, values.dtype, values.at(w, (i,)))
    )


def irregular(w: LoopWriter, values: Stored, size: DimLike, zeros: bool, strict: str | None = None) -> Value:
    """0 if all sorted values differ and, with `zeros`, the last of descending ones is not zero.

    Args:
        w: the writer of statements.
        values: a vector.
        size: the larger extent of the matrix.
        zeros: whether zero counts as a value to distinguish.
        strict: kind of the gaps that must be far from zero, so that derivatives of their quotients have digits.
    """
    dtype, k = values.dtype, values.shape[0]
    largest = largest_of(w, values)
    limit = times_size(w, largest, 8 * EPS[dtype], size)
    limits = {"difference": limit, "zero": limit}
    if strict is not None:
        root = float(np.sqrt(EPS[dtype])) / (2 if strict == "sum" else 1)
        apart = w.let(catalog.mul.op(), dtype, largest, Literal(root, dtype))
        limits["difference" if strict == "difference" else "zero"] = w.let(catalog.maximum.op(), dtype, limit, apart)

    def equal(i: Affine) -> Value:
        gap = w.let(catalog.sub.op(), dtype, values.at(w, (i + 1,)), values.at(w, (i,)))
        return not_above(w, w.let(catalog.abs.op(), dtype, gap), limits["difference"])

    either = catalog.bitwise_or.op()
    bad = folded(w, dim_max(k - 1, 0), Literal(0, INDEX), either, equal)
    if not zeros:
        return bad
    least = folded(w, k, Literal(np.inf, dtype), catalog.minimum.op(), lambda i: values.at(w, (i,)))
    return w.let(either, INDEX, bad, not_above(w, least, limits["zero"]))


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
    w, values, kind = step.w, _values(step, 1), step.params["kind"]
    bad = _irregular(step, values, kind != "difference")
    if kind == "difference" and step.params["role"] == "cotangent" and step.out.dtype.kind == "c":
        bad = w.let(catalog.bitwise_or.op(), INDEX, bad, _turned(step, values))
    checked_by_kernel(step, bad)
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
    """A cotangent of values that all differ."""
    checked_by_kernel(step, _irregular(step, _values(step, 1), step.params["what"] != "eigh"))
    return step.operand(0)


def unsigned(step: Step) -> Lowered:
    """A cotangent of vectors of nonzero values."""
    checked_by_kernel(step, _irregular(step, _values(step, 2), True))
    return step.operand(0)


def quotient(step: Step) -> Lowered:
    """A numerator over gaps of values that all differ; otherwise with masks, by the kernel."""
    w, values, kind = step.w, _values(step, 1), step.params["kind"]
    numerator, dtype, real = step.operand(0), step.out.dtype, values.dtype
    bad = _irregular(step, values, kind != "difference", kind if step.params["strict"] else None)
    out = Stored.whole_of(w.buffer(dtype, step.out.shape))

    def entry(i: Batch) -> None:
        *batch, row, column = i
        gap = values.at(w, (*batch, column))
        if kind != "column":
            op = catalog.sub if kind == "difference" else catalog.add
            gap = w.let(op.op(), real, gap, values.at(w, (*batch, row)))
        if dtype != real:
            gap = w.let(catalog.convert.op(dtype=dtype), dtype, gap)
        found = w.let(catalog.div.op(), dtype, numerator.at(w, i), gap)
        if kind == "difference":
            on = w.let(catalog.eq.op(), BOOL, w.position(row), w.position(column))
            found = w.let(catalog.select.op(), dtype, on, Literal(dtype.type(0).item(), dtype), found)
        w.store(out.buffer, out.place(i), found)

    with w.block() as plain:
        w.nest(out.shape, entry)
    with w.block() as masked:
        call_into(step, [stored(w, x) for x in step.operands], [out], recourse=True)
    odd = counted(w, w.let(catalog.ne.op(), BOOL, bad, Literal(0, INDEX)))
    w.statements.append(Switch(odd, (Case(tuple(plain)), Case(tuple(masked)))))
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
