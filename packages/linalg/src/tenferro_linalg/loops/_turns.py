"""Bases of equal values that are generic, in loops: see `_bases`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tenferro_linalg._bases import COMPLETION, FACTORS, MODULUS, PHASES
from tenferro_linalg.loops._lapack import BOOL, Batch, Lapack, matrix, over, where_not_0
from tenferro_linalg.loops._multiplets import Multiplets, irregular, multiplets_of
from tenferro_linalg.loops._orthogonal import orthogonal_columns, scales_of
from tenferro_runtime.lowering import Stored
from tenferro_tensor import catalog
from tenferro_tensor.device_model import Literal
from tenferro_tensor.loop_ir import INDEX, Affine, Order, Value
from tenferro_tensor_core import DimLike, decide


@dataclass(frozen=True)
class Side:
    """Vectors to turn.

    Attributes:
        vectors: a stack of matrices.
        rows: whether the vectors are conjugated rows, as those of Vh; otherwise they are columns.
        number: number of the unitary matrix for the null space, as in `unitary`.
    """

    vectors: Stored
    rows: bool
    number: int

    def of(self, batch: Batch) -> Side:
        """Those of one matrix of a stack."""
        return Side(matrix(self.vectors, batch), self.rows, self.number)

    @property
    def length(self) -> DimLike:
        """Length of a vector."""
        return self.vectors.shape[-1 if self.rows else -2]

    def place(self, i: Affine, j: Affine) -> Batch:
        """Index of entry `i` of vector `j`."""
        return (j, i) if self.rows else (i, j)


def rebase(la: Lapack, values: Stored, size: DimLike, zeros: bool, sides: Sequence[Side]) -> None:
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
    if basis == "adapted":
        bad = over(w, values.shape[:-1], lambda batch: irregular(w, matrix(values, batch), size, zeros))
        la.recourse(bad)
    elif basis == "generic":
        over(w, values.shape[:-1], lambda batch: _turned(la, matrix(values, batch), size, zeros, batch, sides))


def _turned(la: Lapack, values: Stored, size: DimLike, zeros: bool, batch: Batch, sides: Sequence[Side]) -> Value:
    """Turn the vectors of one matrix, if some values are equal."""
    w, k = la.w, values.shape[0]
    with w.block() as turn:
        runs = multiplets_of(w, values, size, zeros)
        for side in (side.of(batch) for side in sides):
            if zeros and not decide(side.length, "==", k):
                _complete(la, runs, side, k)
            for which in (0, 1):
                _reflect(la, runs, side, k, zeros, which)
    where_not_0(w, irregular(w, values, size, zeros), turn)
    return Literal(0, INDEX)


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


def _complete(la: Lapack, runs: Multiplets, side: Side, k: DimLike) -> None:
    """Replace null vectors, where not all of the null space is given, by others of it."""
    w, m = la.w, side.length
    columns = la.scratch(la.dtype, k, m)

    def entry(i: Batch) -> None:
        known = side.vectors.at(w, side.place(i[1], i[0]))
        if side.rows and la.dtype.kind == "c":
            known = w.let(catalog.conj.op(), la.dtype, known)
        other = _number(la, i[1], i[0] * 2 + COMPLETION, -0.5)
        chosen = w.let(catalog.select.op(), la.dtype, runs.null(w, i[0]), other, known)
        w.store(columns.buffer, columns.place(i), chosen)

    def back(i: Batch) -> None:
        found = columns.at(w, i)
        if side.rows and la.dtype.kind == "c":
            found = w.let(catalog.conj.op(), la.dtype, found)
        place = side.place(i[1], i[0])
        known = side.vectors.at(w, place)
        chosen = w.let(catalog.select.op(), la.dtype, runs.null(w, i[0]), found, known)
        w.store(side.vectors.buffer, side.vectors.place(place), chosen)

    with w.block() as statements:
        w.nest((k, m), entry)
        orthogonal_columns(la, columns, scales_of(la, columns), k, k)
        w.nest((k, m), back)
    above = w.let(catalog.lt.op(), BOOL, runs.rank, w.position(Affine(k)))
    where_not_0(w, w.let(catalog.convert.op(dtype=INDEX), INDEX, above), statements)


def _reflect(la: Lapack, runs: Multiplets, side: Side, k: DimLike, zeros: bool, which: int) -> None:
    """Apply one of the two reflections of `unitary` to all runs; the second also applies the phase."""
    w, cplx = la.w, la.dtype.kind == "c"
    mul, add, sub, select = (op.op() for op in (catalog.mul, catalog.add, catalog.sub, catalog.select))
    zero, (vector, factors) = Literal(la.dtype.type(0).item(), la.dtype), _reflector(la, runs, side, k, zeros, which)
    totals = la.scratch(la.dtype, k)
    with w.loop(side.length) as rows:
        i = Affine.of(rows.index)
        with w.loop(k, [zero]) as before:
            j = Affine.of(before.index)
            term = w.let(mul, la.dtype, side.vectors.at(w, side.place(i, j)), vector.at(w, (j,)))
            total = w.let(add, la.dtype, w.let(select, la.dtype, runs.begins(w, j), zero, before.inside[0]), term)
            w.store(totals.buffer, totals.place((j,)), total)
            before.following = (total,)
        with w.loop(k, order=Order.ANY) as after:
            j, place = Affine.of(after.index), side.place(i, Affine.of(after.index))
            total = totals.at(w, (w.index(runs.last.at(w, (j,))),))
            change = w.let(mul, la.dtype, total, factors.at(w, (j,)))
            x = w.let(sub, la.dtype, side.vectors.at(w, place), change)
            if cplx and which:
                x = w.let(mul, la.dtype, x, _phase(la, runs, side, j, zeros))
            w.store(side.vectors.buffer, side.vectors.place(place), x)


def _reflector(la: Lapack, runs: Multiplets, side: Side, k: DimLike, zeros: bool, which: int) -> tuple[Stored, Stored]:
    """The generic vector u of each run, and ``2 u* / |u|**2``, or 0 for a single value; for rows, the conjugates."""
    w, cplx, real = la.w, la.dtype.kind == "c", la.real
    mul, add, select = (op.op() for op in (catalog.mul, catalog.add, catalog.select))
    none = Literal(0.0, real)
    vector, factors, sums = la.scratch(la.dtype, k), la.scratch(la.dtype, k), la.scratch(real, k)
    with w.loop(k, [none]) as norms:
        j = Affine.of(norms.index)
        number = Affine(0)
        if zeros:
            number = w.index(w.let(select, INDEX, runs.null(w, j), Literal(side.number, INDEX), Literal(0, INDEX)))
        u = _number(la, j - w.index(runs.first.at(w, (j,))), number * 4 + 2 * which, 0.5)
        parts = [w.let(part.op(), real, u) for part in (catalog.real, catalog.imag)] if cplx else [u]
        square = w.let(select, real, runs.begins(w, j), none, norms.inside[0])
        for part in parts:
            square = w.let(add, real, square, w.let(mul, real, part, part))
        w.store(vector.buffer, vector.place((j,)), w.let(catalog.conj.op(), la.dtype, u) if cplx and side.rows else u)
        w.store(sums.buffer, sums.place((j,)), square)
        norms.following = (square,)
    with w.loop(k, order=Order.ANY) as each:
        j = Affine.of(each.index)
        end = runs.last.at(w, (j,))
        factor = w.let(catalog.div.op(), real, Literal(2.0, real), sums.at(w, (w.index(end),)))
        alone = w.let(catalog.eq.op(), BOOL, end, runs.first.at(w, (j,)))
        factor, u = w.let(select, real, alone, none, factor), vector.at(w, (j,))
        if cplx:
            factor = w.let(catalog.convert.op(dtype=la.dtype), la.dtype, factor)
            u = w.let(catalog.conj.op(), la.dtype, u)
        w.store(factors.buffer, factors.place((j,)), w.let(mul, la.dtype, u, factor))
    return vector, factors


def _phase(la: Lapack, runs: Multiplets, side: Side, j: Affine, zeros: bool) -> Value:
    """The phase of a vector: that of its run."""
    w, select = la.w, catalog.select.op()
    phases = [Literal(p.conjugate() if side.rows else p, la.dtype) for p in (1 + 0j, *PHASES)]
    alone = w.let(catalog.eq.op(), BOOL, runs.first.at(w, (j,)), runs.last.at(w, (j,)))
    found = w.let(select, la.dtype, alone, phases[0], phases[1])
    return w.let(select, la.dtype, runs.null(w, j), phases[1 + side.number], found) if zeros else found
