"""QR factors by Householder reflections."""

from __future__ import annotations

from tenferro_linalg.loops._lapack import BOOL, Batch, Lapack, matrix
from tenferro_linalg.loops._spectra import BLOCK
from tenferro_runtime.lowering import Lowered, Step, Stored, call
from tenferro_tensor import catalog
from tenferro_tensor.device_model import Literal
from tenferro_tensor.loop_ir import Value
from tenferro_tensor_core import decide, dim_max, dim_min


def orthogonal(step: Step) -> list[Lowered]:
    """Q and R; generic extra columns of Q are left to the kernel."""
    m, n = step.operand(0).shape[-2:]
    extra = step.params["mode"] == "complete" and not decide(m, "<=", n)
    if extra and step.params["basis"] == "generic":
        return call(step)
    la, k = Lapack(step), dim_min(m, n)
    (x,), (q, r) = la.operands, la.results

    def one(batch: Batch) -> Value:
        columns, scales = _reflected(la, x, batch, r)
        reflections, count = columns, k
        if extra:
            reflections, count = la.scratch(la.dtype, m, m), m
            la.w.nest((k, m), lambda i: la.w.store(reflections.buffer, reflections.place(i), columns.at(la.w, i)))
        work = BLOCK * dim_max(m, n)
        la.call(
            "ungqr" if la.dtype.kind == "c" else "orgqr", la.number(m), la.number(count), la.number(k),
            reflections.view(), la.extent(m), scales.view(), la.scratch(la.dtype, work).view(), la.extent(work),
            written=(3, 6),
        )  # fmt: skip
        la.from_columns(Stored.whole_of(reflections.buffer, (count, m)), q, batch)
        return la.finite(x, batch)

    return la.lower(x.shape[:-2], one, None if extra else "qr")


def triangle(step: Step) -> list[Lowered]:
    """Only R."""
    la = Lapack(step)
    (x,), (r,) = la.operands, la.results

    def one(batch: Batch) -> Value:
        _reflected(la, x, batch, r)
        return la.finite(x, batch)

    return la.lower(x.shape[:-2], one, "qr_r")


def _reflected(la: Lapack, x: Stored, batch: Batch, r: Stored) -> tuple[Stored, Stored]:
    """The reflections of a matrix in columns and their scales; writes R to a matrix of a stack."""
    w, (m, n) = la.w, x.shape[-2:]
    columns, scales, work = la.in_columns(x, batch), la.scratch(la.dtype, dim_min(m, n)), BLOCK * dim_max(m, n)
    la.call(
        "geqrf", la.number(m), la.number(n), columns.view(), la.extent(m), scales.view(),
        la.scratch(la.dtype, work).view(), la.extent(work), written=(2, 4, 5),
    )  # fmt: skip
    to, zero = matrix(r, batch), Literal(la.dtype.type(0).item(), la.dtype)

    def entry(i: Batch) -> None:
        kept = w.let(catalog.le.op(), BOOL, w.position(i[0]), w.position(i[1]))
        w.store(to.buffer, to.place(i), w.let(catalog.select.op(), la.dtype, kept, columns.at(w, (i[1], i[0])), zero))

    w.nest(to.shape, entry)
    return columns, scales
