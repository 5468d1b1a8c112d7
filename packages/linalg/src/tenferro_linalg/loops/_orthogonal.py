"""QR factors by Householder reflections."""

from __future__ import annotations

from tenferro_linalg.loops._lapack import BLOCK, BOOL, Batch, Lapack, matrix
from tenferro_runtime.lowering import Lowered, Step, Stored, call
from tenferro_tensor import catalog
from tenferro_tensor.loop_ir import Literal, Value
from tenferro_tensor_core import DimLike, decide, dim_max, dim_min


def orthogonal(step: Step) -> list[Lowered]:
    """Q and R; generic extra columns of Q are left to the kernel."""
    m, n = step.operand(0).shape[-2:]
    extra = step.params["mode"] == "complete" and not decide(m, "<=", n)
    if extra and step.params["basis"] == "generic":
        return call(step)
    la, k = Lapack(step), dim_min(m, n)
    (x,), (q, r) = la.operands, la.results

    def one(batch: Batch) -> Value:
        columns = la.in_columns(x, batch)
        scales = reflected(la, columns, matrix(r, batch))
        reflections, count = columns, k
        if extra:
            reflections, count = la.scratch(la.dtype, m, m), m
            la.w.nest((k, m), lambda i: la.w.store(reflections.buffer, reflections.place(i), columns.at(la.w, i)))
        orthogonal_columns(la, reflections, scales, count, k)
        la.from_columns(Stored.whole_of(reflections.buffer, (count, m)), q, batch)
        return la.finite(x, batch)

    return la.lower(x.shape[:-2], one, None if extra else "qr")


def triangle(step: Step) -> list[Lowered]:
    """Only R."""
    la = Lapack(step)
    (x,), (r,) = la.operands, la.results

    def one(batch: Batch) -> Value:
        reflected(la, la.in_columns(x, batch), matrix(r, batch))
        return la.finite(x, batch)

    return la.lower(x.shape[:-2], one, "qr_r")


def reflected(la: Lapack, columns: Stored, r: Stored) -> Stored:
    """Replace a column-major matrix by its reflections, write R to another, and return the scales."""
    w, scales = la.w, scales_of(la, columns)
    zero = Literal(la.dtype.type(0).item(), la.dtype)

    def entry(i: Batch) -> None:
        kept = w.let(catalog.le.op(), BOOL, w.position(i[0]), w.position(i[1]))
        w.store(r.buffer, r.place(i), w.let(catalog.select.op(), la.dtype, kept, columns.at(w, (i[1], i[0])), zero))

    w.nest(r.shape, entry)
    return scales


def scales_of(la: Lapack, columns: Stored) -> Stored:
    """Replace a column-major matrix by its reflections and packed R, and return the scales."""
    n, m = columns.shape
    scales, work = la.scratch(la.dtype, dim_min(m, n)), BLOCK * dim_max(m, n)
    la.call(
        "geqrf", la.number(m), la.number(n), columns.view(), la.extent(m), scales.view(),
        la.scratch(la.dtype, work).view(), la.extent(work), written=(2, 4, 5),
    )  # fmt: skip
    return scales


def orthogonal_columns(la: Lapack, reflections: Stored, scales: Stored, count: DimLike, k: DimLike) -> None:
    """Replace k reflections in a column-major matrix by the first `count` columns of their product."""
    m = reflections.shape[1]
    work = BLOCK * dim_max(*reflections.shape)
    la.call(
        "ungqr" if la.dtype.kind == "c" else "orgqr", la.number(m), la.number(count), la.number(k),
        reflections.view(), la.extent(m), scales.view(), la.scratch(la.dtype, work).view(), la.extent(work),
        written=(3, 6),
    )  # fmt: skip
