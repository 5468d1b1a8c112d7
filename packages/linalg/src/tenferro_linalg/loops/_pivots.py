"""LU factors with their row exchanges, and the test of their pivots."""

from __future__ import annotations

from tenferro_linalg.loops._lapack import INT32, Batch, Lapack, matrix
from tenferro_runtime.lowering import Lowered, Step, Stored, stored
from tenferro_tensor import catalog
from tenferro_tensor.loop_ir import INDEX, Affine, Literal, Value
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
