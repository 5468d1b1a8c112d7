"""The tests of derivatives of QR factors, which pass their operands on at full rank."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tenferro_linalg.loops._gaps import checked_by_kernel
from tenferro_linalg.loops._lapack import BOOL, Batch, counted, matrix, over
from tenferro_linalg.loops._multiplets import times_size
from tenferro_runtime.lowering import Formula, LoopWriter, Lowered, Step, Stored, call_into, stored
from tenferro_tensor import catalog
from tenferro_tensor.loop_ir import INDEX, Affine, Case, Literal, Order, Switch, Value
from tenferro_tensor_core import DimLike, decide, dim_min


def _limit(w: LoopWriter, r: Stored, size: DimLike) -> Value:
    """The largest pivot that counts as zero."""
    real = np.dtype(r.dtype.char.lower())
    with w.loop(r.shape[0], [Literal(0.0, real)], Order.GROUPED) as down:
        with w.loop(r.shape[1], [down.inside[0]], Order.GROUPED) as across:
            entry = w.let(catalog.abs.op(), real, r.at(w, (Affine.of(down.index), Affine.of(across.index))))
            across.following = (w.let(catalog.maximum.op(), real, across.inside[0], entry),)
        down.following = (across.results[0],)
    return times_size(w, down.results[0], 8 * float(np.finfo(r.dtype).eps), size)


def _pivots(w: LoopWriter, r: Stored, limit: Value, out: Stored | None) -> Value:
    """1 if all pivots are above a limit, otherwise 0; writes 1 to `out` before the first one that is not."""
    real = limit.dtype
    with w.loop(dim_min(*r.shape), [Literal(1, INDEX)]) as loop:
        i = Affine.of(loop.index)
        pivot = w.let(catalog.abs.op(), real, r.at(w, (i, i)))
        fine = counted(w, w.let(catalog.gt.op(), BOOL, pivot, limit))
        kept = w.let(catalog.bitwise_and.op(), INDEX, loop.inside[0], fine)
        if out is not None:
            w.store(out.buffer, out.place((i,)), w.let(catalog.convert.op(dtype=real), real, kept))
        loop.following = (kept,)
    return loop.results[0]


def prefix(step: Step) -> Lowered:
    """1 for the columns before the first dependent one, 0 for the rest."""
    w, r = step.w, _operand(step, 0)
    out = Stored.whole_of(w.buffer(step.out.dtype, step.out.shape))
    k, zero = dim_min(*r.shape[-2:]), Literal(0.0, step.out.dtype)
    rest = out.shape[-1] - k

    def one(batch: Batch) -> Value:
        triangle, flags = matrix(r, batch), matrix(out, batch)
        w.nest((rest,), lambda i: w.store(flags.buffer, flags.place((i[0] + k,)), zero))
        _pivots(w, triangle, _limit(w, triangle, step.params["size"]), flags)
        return Literal(0, INDEX)

    over(w, r.shape[:-2], one)
    return out


def full_rank(step: Step) -> Lowered:
    """R, if no pivot is zero."""
    w, r = step.w, _operand(step, 0)

    def one(batch: Batch) -> Value:
        triangle = matrix(r, batch)
        fine = _pivots(w, triangle, _limit(w, triangle, step.params["size"]), None)
        return w.let(catalog.sub.op(), INDEX, Literal(1, INDEX), fine)

    checked_by_kernel(step, over(w, r.shape[:-2], one))
    return r


def rows(step: Step) -> Lowered:
    """The upper triangle of a cotangent of R."""
    checked_by_kernel(step, _shorter(step, dim_min(*step.operand(1).shape[-2:])))
    g, dtype = step.operand(0), step.out.dtype

    def at(w: LoopWriter, index: Batch) -> Value:
        kept = w.let(catalog.le.op(), BOOL, w.position(index[-2]), w.position(index[-1]))
        return w.let(catalog.select.op(), dtype, kept, g.at(w, index), Literal(dtype.type(0).item(), dtype))

    return Formula(step.out.shape, dtype, at, [g], 1)


def frame(step: Step) -> Lowered:
    """A cotangent of Q, if every column is determined."""
    q, k = step.operand(1), step.params["k"]
    checked_by_kernel(step, _shorter(step, k) if decide(q.shape[-1], "==", k) else Literal(1, INDEX))
    return step.operand(0)


def kept(step: Step) -> Lowered:
    """A cotangent of Q, if every column is kept."""
    return _unless_shorter(step, step.operand(0).at)


def beyond(step: Step) -> Lowered:
    """0 if no column depends on others: no product with such columns is computed."""
    return _unless_shorter(step, lambda w, i: Literal(step.out.dtype.type(0).item(), step.out.dtype))


def _unless_shorter(step: Step, entry: Callable[[LoopWriter, Batch], Value]) -> Lowered:
    """Entries if all columns are in the prefix, otherwise the kernel's result."""
    w, size = step.w, step.operand(len(step.eq.operands) - 1).shape[-1]
    out = Stored.whole_of(w.buffer(step.out.dtype, step.out.shape))
    odd = _shorter(step, size)
    with w.block() as plain:
        w.nest(out.shape, lambda i: w.store(out.buffer, out.place(i), entry(w, i)))
    with w.block() as full:
        call_into(step, [stored(w, x) for x in step.operands], [out], recourse=True)
    odd = counted(w, w.let(catalog.ne.op(), BOOL, odd, Literal(0, INDEX)))
    w.statements.append(Switch(odd, (Case(tuple(plain)), Case(tuple(full)))))
    w.written(out.buffer)
    return out


def _shorter(step: Step, k: DimLike) -> Value:
    """0 if the first columns of every matrix are all in the prefix."""
    w, flags = step.w, _operand(step, len(step.eq.operands) - 1)

    def one(batch: Batch) -> Value:
        with w.loop(k, [Literal(0, INDEX)], Order.GROUPED) as loop:
            flag = flags.at(w, (*batch, Affine.of(loop.index)))
            odd = counted(w, w.let(catalog.eq.op(), BOOL, flag, Literal(0.0, flags.dtype)))
            loop.following = (w.let(catalog.bitwise_or.op(), INDEX, loop.inside[0], odd),)
        return loop.results[0]

    return over(w, flags.shape[:-1], one)


def _operand(step: Step, k: int) -> Stored:
    x = stored(step.w, step.operand(k))
    step.replace(k, x)
    return x
