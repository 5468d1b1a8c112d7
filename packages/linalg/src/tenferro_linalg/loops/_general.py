"""Eigenvalues and eigenvectors of general matrices, by the QR algorithm.

Of a real matrix, LAPACK returns real and imaginary parts of the values, and of a pair of conjugate vectors the real
part in one column and the imaginary part in the next.

Single precision is left to the kernel: NumPy computes in double precision, which may find another order.
"""

from __future__ import annotations

from typing import Final

from tenferro_linalg.loops._lapack import BLOCK, BOOL, Batch, Lapack, counted, matrix
from tenferro_runtime.lowering import Lowered, Step, Stored, call
from tenferro_tensor import catalog
from tenferro_tensor.loop_ir import INDEX, Literal, Value

SINGLE: Final = "fF"
"""NumPy's letters of single precision."""


def general_eigenpairs(step: Step) -> list[Lowered]:
    """Eigenvalues and eigenvectors, both complex."""
    if step.operand(0).dtype.char in SINGLE:
        return call(step)
    la = Lapack(step)
    (x,), (values, vectors) = la.operands, la.results

    def one(batch: Batch) -> Value:
        def decomposed() -> Value:
            parts, right, info = _geev(la, x, batch, "V")
            _write_values(la, parts, matrix(values, batch))
            if la.dtype.kind == "c":
                la.from_columns(right, vectors, batch)
            else:
                _write_pairs(la, parts[1], right, matrix(vectors, batch))
            return info

        return la.of_finite(x, batch, decomposed)

    return la.lower(x.shape[:-2], one)


def general_eigenvalues(step: Step) -> list[Lowered]:
    """Only eigenvalues, complex."""
    if step.operand(0).dtype.char in SINGLE:
        return call(step)
    la = Lapack(step)
    (x,), (values,) = la.operands, la.results

    def one(batch: Batch) -> Value:
        def decomposed() -> Value:
            parts, _, info = _geev(la, x, batch, "N")
            _write_values(la, parts, matrix(values, batch))
            return info

        return la.of_finite(x, batch, decomposed)

    return la.lower(x.shape[:-2], one)


def _geev(la: Lapack, x: Stored, batch: Batch, job: str) -> tuple[list[Stored], Stored, Value]:
    """The values, or their real and imaginary parts, the right vectors in columns if `job` is ``"V"``, and a status."""
    n, plain = x.shape[-1], la.dtype.kind != "c"
    columns, left = la.in_columns(x, batch), la.scratch(la.dtype, 1)
    parts = [la.scratch(la.dtype, n) for _ in range(1 + plain)]
    right = la.scratch(la.dtype, *((n, n) if job == "V" else (1,)))
    work = (BLOCK + 4) * n + 1
    more = [] if plain else [la.scratch(la.real, 2 * n).view()]
    info = la.call(
        "geev", "N", job, la.number(n), columns.view(), la.extent(n), *[p.view() for p in parts], left.view(),
        la.number(1), right.view(), la.extent(n), la.scratch(la.dtype, work).view(), la.number(work), *more,
        written=(3, 5, 6, 7, 9, 11) if plain else (3, 5, 6, 8, 10, 12),
    )  # fmt: skip
    return parts, right, info


def _write_values(la: Lapack, parts: list[Stored], to: Stored) -> None:
    w = la.w

    def value(i: Batch) -> Value:
        found = [p.at(w, i) for p in parts]
        return w.let(catalog.complex.op(), to.dtype, *found) if len(found) == 2 else found[0]

    w.nest(to.shape, lambda i: w.store(to.buffer, to.place(i), value(i)))


def _write_pairs(la: Lapack, imaginary: Stored, right: Stored, to: Stored) -> None:
    """Write complex vectors; the first of a pair belongs to the value with positive imaginary part."""
    w, zero = la.w, Literal(0.0, la.real)

    def entry(i: Batch) -> None:
        row, column = i
        part = imaginary.at(w, (column,))
        first, second = (w.let(op.op(), BOOL, part, zero) for op in (catalog.gt, catalog.lt))
        other = w.let(catalog.add.op(), INDEX, w.position(column), counted(w, first))
        other = w.let(catalog.sub.op(), INDEX, other, counted(w, second))
        own, partner = right.at(w, (column, row)), right.at(w, (w.index(other), row))
        below = w.let(catalog.neg.op(), la.real, own)
        re = w.let(catalog.select.op(), la.real, second, partner, own)
        im = w.let(catalog.select.op(), la.real, first, partner, zero)
        im = w.let(catalog.select.op(), la.real, second, below, im)
        w.store(to.buffer, to.place(i), w.let(catalog.complex.op(), to.dtype, re, im))

    w.nest(to.shape, entry)
