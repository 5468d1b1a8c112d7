"""Eigenvalues and singular values, with and without vectors.

LAPACK receives the minimal workspace that its documentation states, plus enough columns for its blocked algorithms.
"""

from __future__ import annotations

from typing import Final

from tenferro_linalg.loops._lapack import BLOCK, BOOL, INT32, Batch, Lapack, counted, matrix
from tenferro_linalg.loops._turns import VectorSide, rebase
from tenferro_runtime.lowering import Lowered, Step, Stored
from tenferro_tensor import catalog
from tenferro_tensor.loop_ir import INDEX, Literal, Value
from tenferro_tensor_core import DimLike, decide, dim_max, dim_min

ONE_BY_ONE_MAX_SIZE: Final = 64
"""Largest extent of complex matrices whose reflections LAPACK applies one by one, which skips rows of zeros.

With more workspace it gathers them in blocks, which is faster for larger matrices only.
"""


def eigenpairs(step: Step) -> list[Lowered]:
    """Eigenvalues and eigenvectors."""
    la = Lapack(step)
    x, (values, vectors) = la.operands[0], la.results

    def one(batch: Batch) -> Value:
        def decomposed() -> Value:
            columns = _hermitian(la, x, batch)
            info = _eigh(la, "V", columns, matrix(values, batch))
            la.from_columns(columns, vectors, batch)
            return info

        return la.of_finite(x, batch, decomposed)

    found = la.lower(x.shape[:-2], one, "eigh")
    rebase(la, values, x.shape[-1], False, [VectorSide(vectors, False, 0)])
    return found


def eigenvalues(step: Step) -> list[Lowered]:
    """Only eigenvalues."""
    la = Lapack(step)
    (x,), (values,) = la.operands, la.results

    def one(batch: Batch) -> Value:
        return la.of_finite(x, batch, lambda: _eigh(la, "N", _hermitian(la, x, batch), matrix(values, batch)))

    return la.lower(x.shape[:-2], one, "eigvalsh")


def _hermitian(la: Lapack, x: Stored, batch: Batch) -> Stored:
    """The Hermitian part of a matrix, column-major, halved before the sum to avoid overflow."""
    w, source, half = la.w, matrix(x, batch), Literal(la.dtype.type(0.5).item(), la.dtype)
    to = la.scratch(la.dtype, *source.shape)

    def entry(i: Batch) -> None:
        here, there = (w.let(catalog.mul.op(), la.dtype, source.at(w, k), half) for k in ((i[1], i[0]), i))
        if la.dtype.kind == "c":
            there = w.let(catalog.conj.op(), la.dtype, there)
        w.store(to.buffer, to.place(i), w.let(catalog.add.op(), la.dtype, here, there))

    w.nest(to.shape, entry)
    return to


def _eigh(la: Lapack, job: str, columns: Stored, values: Stored) -> Value:
    """Divide and conquer on a column-major matrix, which becomes the eigenvectors if `job` is ``"V"``."""
    n = columns.shape[0]
    square = 2 * n * n if job == "V" else 0
    if la.dtype.kind == "c":
        work, real = square + (BLOCK + 2) * n + 1, [square + 5 * n + 1]
    else:
        work, real = square + (BLOCK + 6) * n + 1, []
    memory = [(la.dtype, work), *[(la.real, m) for m in real], (INT32, 5 * n + 3)]
    arguments: list[str | Value] = []
    for dtype, length in memory:
        arguments += [la.scratch(dtype, length).view(), la.number(length)]  # type: ignore[list-item]
    name = "heevd" if la.dtype.kind == "c" else "syevd"
    return la.call(
        name, job, "L", la.number(n), columns.view(), la.extent(n), values.view(), *arguments,
        written=(3, 5, *range(6, 6 + len(arguments), 2)),
    )  # fmt: skip


def singular_triplets(step: Step) -> list[Lowered]:
    """U, S and Vh."""
    la, full = Lapack(step), step.params["full"]
    m, n = la.operands[0].shape[-2:]
    x, (left, values, right) = la.operands[0], la.results

    def one(batch: Batch) -> Value:
        def decomposed() -> Value:
            u, vh, info = svd(la, x, batch, "A" if full else "S", matrix(values, batch))
            la.from_columns(u, left, batch)
            la.from_columns(vh, right, batch)
            return info

        bad = la.finite(x, batch)
        if full:  # LAPACK leaves the vectors of an empty matrix undefined
            empty = la.w.let(catalog.eq.op(), BOOL, la.number(dim_min(m, n)), Literal(0, INDEX))
            bad = la.both(bad, counted(la.w, empty))
        return la.unless(bad, decomposed)

    found = la.lower(x.shape[:-2], one, None if full and not decide(m, "==", n) else "svd")
    rebase(la, values, dim_max(m, n), True, [VectorSide(left, False, 1), VectorSide(right, True, 2)])
    return found


def singular_values(step: Step) -> list[Lowered]:
    """Only singular values."""
    la = Lapack(step)
    (x,), (values,) = la.operands, la.results

    def one(batch: Batch) -> Value:
        return la.of_finite(x, batch, lambda: svd(la, x, batch, "N", matrix(values, batch))[2])

    return la.lower(x.shape[:-2], one, "svdvals")


def svd(la: Lapack, x: Stored, batch: Batch, job: str, values: Stored) -> tuple[Stored, Stored, Value]:
    """U and Vh column-major, and the status of divide and conquer; `job` is ``"A"``, ``"S"`` or ``"N"``."""
    m, n = x.shape[-2:]
    k, most = dim_min(m, n), dim_max(m, n)
    columns, one = la.in_columns(x, batch), 1
    p, q = {"A": (m, n), "S": (k, k), "N": (one, one)}[job]
    left = la.scratch(la.dtype, p, m if job != "N" else one)
    right = la.scratch(la.dtype, n if job != "N" else one, q)
    square: DimLike = 0 if job == "N" else k * k
    work = dim_max(4 * square + 7 * k + most + BLOCK * (m + n), 1)
    length = la.number(work)
    if la.dtype.kind == "c":
        least = la.number(dim_max(square + 3 * k + most, 1))
        small = la.w.let(catalog.le.op(), BOOL, la.number(k), Literal(ONE_BY_ONE_MAX_SIZE, INDEX))
        length = la.w.let(catalog.select.op(), INDEX, small, least, length)
    memory = [la.scratch(la.dtype, work).view(), length]
    if la.dtype.kind == "c":
        memory.append(la.scratch(la.real, 7 * k + 7 * square + 2 * most * (0 if job == "N" else k)).view())
    memory.append(la.scratch(INT32, 8 * k).view())
    written = (3, 5, 6, 8, 10, *range(12, 10 + len(memory)))
    info = la.call(
        "gesdd", job, la.number(m), la.number(n), columns.view(), la.extent(m), values.view(), left.view(),
        la.extent(m) if job != "N" else la.number(1), right.view(), la.extent(q), *memory, written=written,
    )  # fmt: skip
    return left, right, info
