"""Pseudo-inverses by singular values, and the test of the rank in their derivative."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tenferro_linalg.loops._gaps import checked_by_kernel, largest_of, times_size
from tenferro_linalg.loops._lapack import BOOL, PREFIX, Batch, Lapack, counted, matrix, over
from tenferro_linalg.loops._spectra import svd
from tenferro_runtime.lowering import LoopWriter, Lowered, Step, Stored, stored
from tenferro_tensor import catalog
from tenferro_tensor.device_model import Literal
from tenferro_tensor.loop_ir import INDEX, Affine, Foreign, Order, Value
from tenferro_tensor_core import DimLike, dim_max


def _cut(w: LoopWriter, s: Stored, rtol: Sequence[Stored], batch: Batch, size: DimLike) -> Value:
    """The largest singular value that counts as zero."""
    largest = largest_of(w, s)
    if not rtol:
        return times_size(w, largest, float(np.finfo(s.dtype).eps), size)
    return w.let(catalog.mul.op(), s.dtype, largest, rtol[0].at(w, batch))


def pseudo_inverse(step: Step) -> list[Lowered]:
    """``V diag(1 / s) U*`` over the values that count; BLAS writes it column-major, i.e. transposed."""
    la = Lapack(step)
    (x, *rtol), (out, values), w = la.operands, la.results, la.w
    m, n = x.shape[-2:]
    one, zero = (Literal(la.dtype.type(v).item(), la.dtype) for v in (1, 0))

    def computed(batch: Batch) -> Value:
        s, to = matrix(values, batch), matrix(out, batch)
        u, vh, info = svd(la, x, batch, "S", s)
        k = s.shape[0]
        cut = _cut(w, s, rtol, batch, dim_max(m, n))

        def scale(i: Batch) -> None:
            value = s.at(w, (i[1],))
            counts = w.let(catalog.gt.op(), BOOL, value, cut)
            safe = w.let(catalog.select.op(), la.real, counts, value, Literal(1.0, la.real))
            inverse = w.let(catalog.div.op(), la.real, Literal(1.0, la.real), safe)
            inverse = w.let(catalog.select.op(), la.real, counts, inverse, Literal(0.0, la.real))
            by = w.let(catalog.convert.op(dtype=la.dtype), la.dtype, inverse)
            w.store(vh.buffer, vh.place(i), w.let(catalog.mul.op(), la.dtype, vh.at(w, i), by))

        w.nest((n, k), scale)
        arguments = (
            "N", "N", la.number(m), la.number(n), la.number(k), one, u.view(), la.extent(m), vh.view(), la.extent(k),
            zero, to.view(), la.extent(m),
        )  # fmt: skip
        w.statements.append(Foreign(PREFIX[la.dtype.char] + "gemm", arguments, (11,)))
        w.written(to.buffer)
        if la.dtype.kind == "c":
            conj = catalog.conj.op()
            w.nest((n, m), lambda i: w.store(to.buffer, to.place(i), w.let(conj, la.dtype, to.at(w, i))))
        return info

    return la.lower(x.shape[:-2], lambda batch: la.of_finite(x, batch, lambda: computed(batch)))


def ranked(step: Step) -> Lowered:
    """The pseudo-inverse, if every singular value counts or is far from the caller's cutoff."""
    w = step.w
    values, *rtol = [stored(w, x) for x in step.operands[1:]]
    for k, x in enumerate((values, *rtol), 1):
        step.replace(k, x)
    real, size = values.dtype, dim_max(*step.operand(0).shape[-2:])

    def one(batch: Batch) -> Value:
        s = matrix(values, batch)
        cut = _cut(w, s, rtol, batch, size)

        def near(x: Value) -> Value:
            if not rtol:
                return w.let(catalog.le.op(), BOOL, x, cut)
            ten = Literal(10.0, real)
            limits = w.let(catalog.div.op(), real, cut, ten), w.let(catalog.mul.op(), real, cut, ten)
            conditions = (catalog.gt, limits[0]), (catalog.lt, limits[1]), (catalog.gt, Literal(0.0, real))
            first, *rest = [w.let(op.op(), BOOL, x, limit) for op, limit in conditions]
            for each in rest:
                first = w.let(catalog.bitwise_and.op(), BOOL, first, each)
            return first

        with w.loop(s.shape[0], [Literal(0, INDEX)], Order.GROUPED) as loop:
            bad = counted(w, near(s.at(w, (Affine.of(loop.index),))))
            loop.following = (w.let(catalog.bitwise_or.op(), INDEX, loop.inside[0], bad),)
        return loop.results[0]

    checked_by_kernel(step, over(w, values.shape[:-1], one))
    return step.operand(0)
