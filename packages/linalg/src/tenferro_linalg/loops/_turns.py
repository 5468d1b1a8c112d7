"""Bases of equal values that are generic, in loops: see `_bases`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tenferro_linalg._bases import COMPLETION, FACTORS, MODULUS, PHASES
from tenferro_linalg.loops._lapack import BOOL, Batch, Lapack, counted, matrix, over, where_not_0
from tenferro_linalg.loops._multiplets import Multiplets, irregular, multiplets_of
from tenferro_linalg.loops._orthogonal import orthogonal_columns, scales_of
from tenferro_runtime.lowering import Stored
from tenferro_tensor import catalog
from tenferro_tensor.loop_ir import INDEX, Affine, Literal, Order, Value
from tenferro_tensor_core import DimLike, decide


@dataclass(frozen=True)
class VectorSide:
    """Vectors to turn.

    Attributes:
        vectors: a stack of matrices.
        rows: whether the vectors are conjugated rows, as those of Vh; otherwise they are columns.
        number: number of the unitary matrix for the null space, as in `unitary`.
    """

    vectors: Stored
    rows: bool
    number: int

    @property
    def shape(self) -> tuple[DimLike, DimLike]:
        """How many vectors there are, and their length."""
        *_, m, n = self.vectors.shape
        return (m, n) if self.rows else (n, m)


def rebase(la: Lapack, values: Stored, size: DimLike, zeros: bool, sides: Sequence[VectorSide]) -> None:
    """Choose the basis of equal values, and of zeros if these count.

    A generic one is made here; one that is adapted to a perturbation is left to the kernel.

    Args:
        la: the decomposition.
        values: the sorted values.
        size: the larger extent of the matrix.
        zeros: whether zeros have a basis on each side; otherwise they are values like others.
        sides: the vectors.
    """
    w, basis = la.w, la.step.params.get("basis", "adapted")
    if basis == "plain":
        return
    extra: Value = Literal(0, INDEX)
    for count, _ in (side.shape for side in sides):
        more = w.let(catalog.gt.op(), BOOL, w.position(Affine(count)), w.position(Affine(values.shape[-1])))
        extra = la.both(extra, counted(w, more))

    def special(batch: Batch) -> Value:
        return la.both(extra, irregular(w, matrix(values, batch), size, zeros))

    def one(batch: Batch) -> Value:
        with w.block() as turn:
            runs = multiplets_of(w, matrix(values, batch), size, zeros)
            for side in sides:
                _turn(la, runs, side, matrix(side.vectors, batch), zeros)
        where_not_0(w, special(batch), turn)
        return Literal(0, INDEX)

    if basis == "adapted":
        la.recourse(over(w, values.shape[:-1], special))
    else:
        over(w, values.shape[:-1], one)


def _turn(la: Lapack, runs: Multiplets, side: VectorSide, x: Stored, zeros: bool) -> None:
    """Turn the vectors of one side of one matrix."""
    x = x if side.rows else Stored(x.buffer, x.shape[::-1], x.offset, x.strides[::-1])
    columns = la.scratch(la.dtype, *x.shape)
    _copy(la, x, columns, side.rows)
    if zeros and not decide(x.shape[0], "==", x.shape[1]):
        _complete(la, runs, columns)
    if not decide(x.shape[0], "==", runs.first.shape[0]):
        runs = runs.extended(la.w, x.shape[0])
    for which in (0, 1):
        _reflect(la, runs, columns, side.number if zeros else 0, which)
    _copy(la, columns, x, side.rows)


def _copy(la: Lapack, x: Stored, to: Stored, conjugate: bool) -> None:
    """Copy vectors, which are rows in memory."""
    w = la.w

    def entry(i: Batch) -> None:
        value = x.at(w, i)
        if conjugate and la.dtype.kind == "c":
            value = w.let(catalog.conj.op(), la.dtype, value)
        w.store(to.buffer, to.place(i), value)

    w.nest(to.shape, entry)


def _fraction(la: Lapack, j: Affine, k: Affine) -> Value:
    """`fraction` over its modulus."""
    w = la.w
    product = w.let(catalog.mul.op(), INDEX, w.position(j + 1), w.position(j + k))
    number = w.position(w.index(product) * FACTORS[0] + k * FACTORS[1])
    number = w.let(catalog.remainder.op(), INDEX, number, Literal(MODULUS, INDEX))
    number = w.let(catalog.convert.op(dtype=la.real), la.real, number)
    return w.let(catalog.mul.op(), la.real, number, Literal(1 / MODULUS, la.real))


def _number(la: Lapack, j: Affine, k: Affine, least: float) -> Value:
    """A generic number whose parts are between `least` and ``least + 1``."""
    w, count = la.w, 2 if la.dtype.kind == "c" else 1
    parts = [
        w.let(catalog.add.op(), la.real, _fraction(la, j, k + part), Literal(least, la.real)) for part in range(count)
    ]
    return w.let(catalog.complex.op(), la.dtype, *parts) if count == 2 else parts[0]


def _complete(la: Lapack, runs: Multiplets, columns: Stored) -> None:
    """Replace null vectors, where not all of the null space is given, by others of it."""
    w, (k, m) = la.w, columns.shape
    others = la.scratch(la.dtype, k, m)

    def chosen(i: Batch, null: Value, known: Value) -> Value:
        return w.let(catalog.select.op(), la.dtype, runs.null(w, i[0]), null, known)

    def entry(i: Batch) -> None:
        null = _number(la, i[1], i[0] * 2 + COMPLETION, -0.5)
        w.store(others.buffer, others.place(i), chosen(i, null, columns.at(w, i)))

    def back(i: Batch) -> None:
        w.store(columns.buffer, columns.place(i), chosen(i, others.at(w, i), columns.at(w, i)))

    with w.block() as statements:
        w.nest((k, m), entry)
        orthogonal_columns(la, others, scales_of(la, others), k, k)
        w.nest((k, m), back)
    some = w.let(catalog.lt.op(), BOOL, runs.rank, w.position(Affine(k)))
    part = w.let(catalog.lt.op(), BOOL, w.position(Affine(k)), w.position(Affine(m)))
    where_not_0(w, counted(w, w.both(some, part)), statements)


def _reflect(la: Lapack, runs: Multiplets, columns: Stored, side: int, which: int) -> None:
    """Apply one of the two reflections of `unitary` to all runs; the second also applies the phase."""
    w, (k, m) = la.w, columns.shape
    mul, add, sub, select = (op.op() for op in (catalog.mul, catalog.add, catalog.sub, catalog.select))
    zero, (vector, factors) = Literal(la.dtype.type(0).item(), la.dtype), _reflector(la, runs, k, side, which)
    totals, sums = la.scratch(la.dtype, k, m), la.scratch(la.dtype, m)
    w.nest((m,), lambda i: w.store(sums.buffer, sums.place(i), zero))
    with w.loop(k) as before:
        j = Affine.of(before.index)
        begins, u = runs.begins(w, j), vector.at(w, (j,))

        def summed(i: Batch) -> None:
            earlier = w.let(select, la.dtype, begins, zero, sums.at(w, i))
            total = w.let(add, la.dtype, earlier, w.let(mul, la.dtype, columns.at(w, (j, *i)), u))
            w.store(sums.buffer, sums.place(i), total)
            w.store(totals.buffer, totals.place((j, *i)), total)

        w.nest((m,), summed)
    with w.loop(k) as after:
        j = Affine.of(after.index)
        factor, last = factors.at(w, (j,)), w.index(runs.last.at(w, (j,)))
        phase = _phase(la, runs, side, j) if which and la.dtype.kind == "c" else None

        def turned(i: Batch) -> None:
            change = w.let(mul, la.dtype, totals.at(w, (last, *i)), factor)
            x = w.let(sub, la.dtype, columns.at(w, (j, *i)), change)
            x = x if phase is None else w.let(mul, la.dtype, x, phase)
            w.store(columns.buffer, columns.place((j, *i)), x)

        w.nest((m,), turned)


def _reflector(la: Lapack, runs: Multiplets, k: DimLike, side: int, which: int) -> tuple[Stored, Stored]:
    """The generic vector u of each run, and ``2 u* / |u|**2``, or 0 for a single value."""
    w, cplx, real = la.w, la.dtype.kind == "c", la.real
    mul, add, select = (op.op() for op in (catalog.mul, catalog.add, catalog.select))
    none = Literal(0.0, real)
    vector, factors, sums = la.scratch(la.dtype, k), la.scratch(la.dtype, k), la.scratch(real, k)
    with w.loop(k, [none]) as norms:
        j = Affine.of(norms.index)
        number = w.index(w.let(select, INDEX, runs.null(w, j), Literal(side, INDEX), Literal(0, INDEX)))
        u = _number(la, j - w.index(runs.first.at(w, (j,))), number * 4 + 2 * which, 0.5)
        parts = [w.let(part.op(), real, u) for part in (catalog.real, catalog.imag)] if cplx else [u]
        square = w.let(select, real, runs.begins(w, j), none, norms.inside[0])
        for part in parts:
            square = w.let(add, real, square, w.let(mul, real, part, part))
        w.store(vector.buffer, vector.place((j,)), u)
        w.store(sums.buffer, sums.place((j,)), square)
        norms.following = (square,)
    with w.loop(k, order=Order.ANY) as each:
        j = Affine.of(each.index)
        end, u = runs.last.at(w, (j,)), vector.at(w, (j,))
        factor = w.let(catalog.div.op(), real, Literal(2.0, real), sums.at(w, (w.index(end),)))
        factor = w.let(select, real, runs.alone(w, j), none, factor)
        if cplx:
            factor = w.let(catalog.convert.op(dtype=la.dtype), la.dtype, factor)
            u = w.let(catalog.conj.op(), la.dtype, u)
        w.store(factors.buffer, factors.place((j,)), w.let(mul, la.dtype, u, factor))
    return vector, factors


def _phase(la: Lapack, runs: Multiplets, side: int, j: Affine) -> Value:
    """The phase of a vector: that of its run."""
    w, select = la.w, catalog.select.op()
    phases = [Literal(p, la.dtype) for p in (1 + 0j, *PHASES)]
    found = w.let(select, la.dtype, runs.alone(w, j), phases[0], phases[1])
    return w.let(select, la.dtype, runs.null(w, j), phases[1 + side], found) if side else found
