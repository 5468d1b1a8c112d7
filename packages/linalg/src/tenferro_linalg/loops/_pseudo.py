"""Pseudo-inverses and least squares by QR factors or singular values, and the test of the rank in derivatives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from tenferro_linalg.loops._lapack import BLOCK, BOOL, PREFIX, Batch, Lapack, counted, matrix
from tenferro_linalg.loops._multiplets import largest_of, not_above, times_size
from tenferro_linalg.loops._orthogonal import orthogonal_columns, reflected
from tenferro_linalg.loops._spectra import svd
from tenferro_runtime.lowering import LoopWriter, Lowered, Step, Stored
from tenferro_tensor import catalog
from tenferro_tensor.loop_ir import INDEX, Case, Foreign, Literal, Switch, Value
from tenferro_tensor_core import DimLike, dim_max, dim_min


def _cut(w: LoopWriter, largest: Value, rtol: Sequence[Stored], batch: Batch, size: DimLike) -> Value:
    """The largest singular value that counts as zero."""
    if not rtol:
        return times_size(w, largest, float(np.finfo(largest.dtype).eps), size)
    return w.let(catalog.mul.op(), largest.dtype, largest, rtol[0].at(w, batch))


def pseudo_inverse(step: Step) -> list[Lowered]:
    """``R^-1 Q*`` from QR factors if these prove full rank, otherwise from singular values."""
    la = Lapack(step)
    (x, *rtol), (out,), w = la.operands, la.results, la.w

    def one(batch: Batch) -> Value:
        doubt, report = _by_reflections(la, x, rtol, out, batch), w.reg(INDEX)
        with w.block() as inner:
            found = la.of_finite(x, batch, lambda: _by_values(la, x, rtol, out, batch))
        cases = Case((), (Literal(0, INDEX),)), Case(tuple(inner), (found,))
        w.statements.append(Switch(doubt, cases, (report,)))
        return report

    return la.lower(x.shape[:-2], one)


class _Proof(NamedTuple):
    """QR factors of a matrix, or of its transpose if it is wide, that may prove full rank.

    Attributes:
        wide: whether the matrix is wide.
        columns: the reflections of Q, column-major.
        scales: their scales.
        inverse: the inverse of R, row-major.
        doubt: 1 if R may have a singular value that counts as zero.
    """

    wide: Value
    columns: Stored
    scales: Stored
    inverse: Stored
    doubt: Value


def _proof(la: Lapack, x: Stored, rtol: Sequence[Stored], batch: Batch) -> _Proof:
    """The ratio of the singular values is at least 1 over the product of the Frobenius norms of R and its inverse."""
    w, source = la.w, matrix(x, batch)
    m, k = dim_max(*source.shape), dim_min(*source.shape)
    wide = w.let(catalog.lt.op(), BOOL, *map(la.number, source.shape))
    q, r = la.scratch(la.dtype, k, m), la.scratch(la.dtype, k, k)
    _by_shape(
        w,
        wide,
        lambda: w.nest(q.shape, lambda i: w.store(q.buffer, q.place(i), source.at(w, i))),
        lambda: w.nest(q.shape, lambda i: w.store(q.buffer, q.place(i), source.at(w, (i[1], i[0])))),
    )
    scales = reflected(la, q, r)
    size = _squares(la, r)
    singular = la.call("trtri", "L", "N", la.number(k), r.view(), la.extent(k), written=(3,))  # rows read as columns
    cut = _cut(w, Literal(1.0, la.real), rtol, batch, m)
    bound: Value = Literal(4.0, la.real)
    for factor in (cut, cut, size, _squares(la, r)):
        bound = w.let(catalog.mul.op(), la.real, bound, factor)
    return _Proof(wide, q, scales, r, la.both(singular, not_above(w, Literal(1.0, la.real), bound)))


def _by_reflections(la: Lapack, x: Stored, rtol: Sequence[Stored], out: Stored, batch: Batch) -> Value:
    """Write ``R^-1 Q*``; 1 if there is doubt about the rank."""
    w, to = la.w, matrix(out, batch)
    wide, q, scales, inverse, doubt = _proof(la, x, rtol, batch)
    k, m = q.shape
    orthogonal_columns(la, q, scales, k, k)
    _conjugate(la, q)
    _multiply(la, "R", "N", inverse, q, la.number(m), la.number(k))
    _by_shape(
        w,
        wide,
        lambda: w.nest(to.shape, lambda i: w.store(to.buffer, to.place(i), q.at(w, (i[1], i[0])))),
        lambda: w.nest(to.shape, lambda i: w.store(to.buffer, to.place(i), q.at(w, i))),
    )
    return doubt


def least_squares(step: Step) -> list[Lowered]:
    """Solutions from QR factors if these prove full rank, otherwise by the kernel.

    For tall matrices ``R^-1 Q* b``; for wide ones, whose transposes are decomposed, ``conj(Q) R^-T b``.
    """
    la = Lapack(step)
    (x, *rtol, b), (out,), w = la.operands, la.results, la.w

    def one(batch: Batch) -> Value:
        wide, q, scales, inverse, doubt = _proof(la, x, rtol, batch)
        (k, m), source, to = q.shape, matrix(b, batch), matrix(out, batch)
        rows, count = source.shape
        right = la.scratch(la.dtype, count, m)
        zero = Literal(la.dtype.type(0).item(), la.dtype)

        def entry(i: Batch) -> None:
            inside = w.let(catalog.lt.op(), BOOL, w.position(i[1]), la.number(rows))
            value = source.at(w, (w.clamped(i[1], rows - 1), i[0]))
            w.store(right.buffer, right.place(i), w.let(catalog.select.op(), la.dtype, inside, value, zero))

        def rotate(transposed: str) -> None:
            work = BLOCK * dim_max(count, m)
            la.call(
                "unmqr" if la.dtype.kind == "c" else "ormqr", "L", transposed, la.number(m), la.number(count),
                la.number(k), q.view(), la.extent(m), scales.view(), right.view(), la.extent(m),
                la.scratch(la.dtype, work).view(), la.extent(work), written=(8, 10),
            )  # fmt: skip

        def of_tall() -> None:
            rotate("C" if la.dtype.kind == "c" else "T")
            _multiply(la, "L", "T", inverse, right, la.number(k), la.number(count))

        def of_wide() -> None:
            _multiply(la, "L", "N", inverse, right, la.number(k), la.number(count))
            _conjugate(la, right)
            rotate("N")
            _conjugate(la, right)

        w.nest(right.shape, entry)
        _by_shape(w, wide, of_wide, of_tall)
        w.nest(to.shape, lambda i: w.store(to.buffer, to.place(i), right.at(w, (i[1], i[0]))))
        return doubt

    return la.lower(x.shape[:-2], one)


def _conjugate(la: Lapack, x: Stored) -> None:
    w = la.w
    if la.dtype.kind == "c":
        w.nest(x.shape, lambda i: w.store(x.buffer, x.place(i), w.let(catalog.conj.op(), la.dtype, x.at(w, i))))


def _multiply(la: Lapack, side: str, transposed: str, inverse: Stored, x: Stored, m: Value, n: Value) -> None:
    """Multiply the leading part of a column-major matrix by the inverse of R, which BLAS reads transposed."""
    one, k = Literal(la.dtype.type(1).item(), la.dtype), la.extent(inverse.shape[0])
    arguments = (side, "L", transposed, "N", m, n, one, inverse.view(), k, x.view(), la.extent(x.shape[-1]))
    la.w.statements.append(Foreign(PREFIX[la.dtype.char] + "trmm", arguments, (9,)))
    la.w.written(x.buffer)


def _by_shape(w: LoopWriter, wide: Value, of_wide: Callable[[], None], of_tall: Callable[[], None]) -> None:
    """Write one of two statements, depending on whether the matrix is wide."""
    cases = []
    for write in (of_tall, of_wide):
        with w.block() as body:
            write()
        cases.append(Case(tuple(body)))
    w.statements.append(Switch(counted(w, wide), tuple(cases)))


def _squares(la: Lapack, x: Stored) -> Value:
    """Sum of the squared moduli of a matrix."""
    w = la.w

    def term(i: Batch) -> Value:
        value = x.at(w, i)
        if la.dtype.kind != "c":
            return w.let(catalog.mul.op(), la.real, value, value)
        parts = [w.let(p.op(), la.real, value) for p in (catalog.real, catalog.imag)]
        return w.let(catalog.add.op(), la.real, *[w.let(catalog.mul.op(), la.real, v, v) for v in parts])

    return la.summed(x.shape, term)


def _by_values(la: Lapack, x: Stored, rtol: Sequence[Stored], out: Stored, batch: Batch) -> Value:
    """Write ``V diag(1 / s) U*`` over the values that count; BLAS writes it column-major, i.e. transposed."""
    w = la.w
    m, n = x.shape[-2:]
    k = dim_min(m, n)
    one, zero = (Literal(la.dtype.type(v).item(), la.dtype) for v in (1, 0))
    s, to = la.scratch(la.real, k), matrix(out, batch)
    u, vh, info = svd(la, x, batch, "S", s)
    cut = _cut(w, largest_of(w, s), rtol, batch, dim_max(m, n))

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
