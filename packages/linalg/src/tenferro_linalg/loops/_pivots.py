"""LU factors with their row exchanges, and the test of their pivots."""

from __future__ import annotations

from tenferro_linalg.loops._lapack import BOOL, INT32, Batch, Lapack, counted, matrix, over
from tenferro_runtime.lowering import Lowered, Step, Stored, call_into, stored
from tenferro_tensor import catalog
from tenferro_tensor.loop_ir import INDEX, Affine, Case, Literal, Order, Switch, Value
from tenferro_tensor_core import dim_min


def exchanged(step: Step) -> list[Lowered]:
    """Packed factors, the exchanges, and the resulting order of the rows; defined for singular matrices too."""
    la = Lapack(step)
    (x,), (out, swaps, order), w = la.operands, la.results, la.w
    m, n = x.shape[-2:]
    k = dim_min(m, n)

    def one(batch: Batch) -> Value:
        columns, pivots = la.in_columns(x, batch), la.scratch(INT32, k)
        la.call("getrf", la.number(m), la.number(n), columns.view(), la.extent(m), pivots.view(), written=(2, 4))
        la.from_columns(columns, out, batch)
        rows, places = matrix(swaps, batch), matrix(order, batch)
        w.nest((m,), lambda i: w.store(places.buffer, places.place(i), w.position(i[0])))
        with w.loop(k, []) as loop:
            i = Affine.of(loop.index)
            row = w.let(catalog.convert.op(dtype=INDEX), INDEX, pivots.at(w, (i,)))
            row = w.let(catalog.sub.op(), INDEX, row, Literal(1, INDEX))
            w.store(rows.buffer, rows.place((i,)), row)
            j = w.index(row)
            here, there = places.at(w, (i,)), places.at(w, (j,))
            w.store(places.buffer, places.place((i,)), there)
            w.store(places.buffer, places.place((j,)), here)
        return la.finite(x, batch)

    return la.lower(x.shape[:-2], one, "lu")


def taken(step: Step) -> Lowered:
    """Permute the rows, or invert the permutation."""
    w, (x, order) = step.w, (stored(step.w, step.operand(k)) for k in (0, 1))
    out = Stored.whole_of(w.buffer(step.out.dtype, step.out.shape))
    *lead, columns = out.shape

    def level(index: Batch) -> None:
        if len(index) < len(lead):
            with w.loop(lead[len(index)]) as loop:
                level((*index, Affine.of(loop.index)))
            return
        other = (*index[:-1], w.index(order.at(w, index)))
        to, source = (other, index) if step.params["back"] else (index, other)
        w.nest((columns,), lambda i: w.store(out.buffer, out.place((*to, *i)), x.at(w, (*source, *i))))

    level(())
    w.written(out.buffer)
    return out


def pivoted(step: Step) -> Lowered:
    """The factors, if no pivot is zero; otherwise the kernel decides."""
    w, packed = step.w, stored(step.w, step.operand(0))
    step.replace(0, packed)
    out = Stored.whole_of(w.buffer(step.out.dtype, step.out.shape))
    zero = Literal(packed.dtype.type(0).item(), packed.dtype)

    def one(batch: Batch) -> Value:
        x = matrix(packed, batch)
        with w.loop(dim_min(*x.shape), [Literal(0, INDEX)], Order.GROUPED) as loop:
            i = Affine.of(loop.index)
            hit = counted(w, w.let(catalog.eq.op(), BOOL, x.at(w, (i, i)), zero))
            loop.following = (w.let(catalog.bitwise_or.op(), INDEX, loop.inside[0], hit),)
        return loop.results[0]

    bad = over(w, packed.shape[:-2], one)
    with w.block() as plain:
        w.nest(out.shape, lambda i: w.store(out.buffer, out.place(i), packed.at(w, i)))
    with w.block() as other:
        call_into(step, [packed], [out], recourse=True)
    odd = counted(w, w.let(catalog.ne.op(), BOOL, bad, Literal(0, INDEX)))
    w.statements.append(Switch(odd, (Case(tuple(plain)), Case(tuple(other)))))
    w.written(out.buffer)
    return out
