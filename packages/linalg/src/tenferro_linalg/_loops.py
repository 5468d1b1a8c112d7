"""Decompositions and solvers in programs that run as one native function: subroutines of LAPACK between loops.

Every rule computes on the way that needs no second attempt. Where LAPACK reports something, or an entry is not finite,
the ordinary kernel runs in its place: it raises the typed error, or knows a further attempt.

LAPACK stores columns: to it, a matrix in rows is the transpose. Where that does not matter it works in place, else on
a copy in columns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from tenferro_linalg._host import STACKED_SOLVE_MAX_SIZE
from tenferro_runtime.lowering import Formula, Lowered, Step, Stored, call, call_into, stored, write
from tenferro_tensor import catalog
from tenferro_tensor.device_model import Literal
from tenferro_tensor.loop_ir import INDEX, Affine, Case, Foreign, Order, Switch, Value, View
from tenferro_tensor_core import DimLike, dim_max, real_of

PREFIX: Final = {"f": "s", "d": "d", "F": "c", "D": "z"}
"""How LAPACK calls the dtypes, by NumPy's letters."""

INT32: Final = np.dtype(np.int32)
BOOL: Final = np.dtype(np.bool_)

Batch = tuple[Affine, ...]


class Lapack:
    """The statements of one decomposition of a stack of matrices.

    Args:
        step: the equation.
    """

    def __init__(self, step: Step) -> None:
        self.step, self.w = step, step.w
        self.operands = []
        for k in range(len(step.eq.operands)):
            x = stored(step.w, step.operand(k))
            step.replace(k, x)
            self.operands.append(x)
        self.results = [Stored.whole_of(step.w.buffer(s.dtype, s.shape)) for s in step.outs]
        self.dtype = self.operands[0].dtype
        self.real = real_of(self.dtype)

    def lower(self, batch: Sequence[DimLike], body: Callable[[Batch], Value]) -> list[Lowered]:
        """The results of `body` for each matrix of the stack, or of the kernel where one of its reports is not 0."""
        w, zero = self.w, Literal(0, INDEX)

        def level(index: Batch, bad: Value) -> Value:
            if len(index) == len(batch):
                return w.let(catalog.bitwise_or.op(), INDEX, bad, body(index))
            with w.loop(batch[len(index)], [bad]) as loop:
                loop.following = (level((*index, Affine.of(loop.index)), loop.inside[0]),)
            return loop.results[0]

        bad = level((), zero)
        with w.block() as again:
            call_into(self.step, self.operands, self.results)
        odd = w.let(catalog.ne.op(), BOOL, bad, zero)
        number = w.let(catalog.convert.op(dtype=INDEX), INDEX, odd)
        w.statements.append(Switch(number, (Case(()), Case(tuple(again)))))
        w.written(*[x.buffer for x in self.results])
        return list[Lowered](self.results)

    def call(self, name: str, *arguments: str | Value | View, written: Sequence[int]) -> Value:
        """A subroutine for the dtype of the operands; its report."""
        info = self.w.reg(INDEX)
        self.w.statements.append(Foreign(PREFIX[self.dtype.char] + name, arguments, tuple(written), info))
        self.w.written(*[arguments[k].buffer for k in written])  # type: ignore[union-attr]
        return info

    def extent(self, d: DimLike) -> Value:
        """An extent as a number, at least 1, as leading dimensions are."""
        return self.w.position(Affine(dim_max(d, 1)))

    def number(self, d: DimLike) -> Value:
        """An extent as a number."""
        return self.w.position(Affine(d))

    def scratch(self, dtype: np.dtype[Any], *shape: DimLike) -> Stored:
        """Memory of its own."""
        return Stored.whole_of(self.w.buffer(dtype, shape))

    def finite(self, x: Stored, batch: Batch) -> Value:
        """0 where all entries of a matrix are finite."""
        w, zero = self.w, Literal(0.0, self.real)

        def term(index: Batch) -> Value:
            value = x.at(w, (*batch, *index))
            if x.dtype.kind == "c":
                parts = [w.let(p.op(), self.real, value) for p in (catalog.real, catalog.imag)]
                value = w.let(
                    catalog.add.op(), self.real, *[w.let(catalog.mul.op(), self.real, v, zero) for v in parts]
                )
                return value
            return w.let(catalog.mul.op(), self.real, value, zero)

        total: Value = zero
        m, n = x.shape[-2:]
        with w.loop(m, [zero], Order.GROUPED) as rows:
            with w.loop(n, [rows.inside[0]], Order.GROUPED) as columns:
                each = term((Affine.of(rows.index), Affine.of(columns.index)))
                columns.following = (w.let(catalog.add.op(), self.real, columns.inside[0], each),)
            rows.following = (columns.results[0],)
        total = rows.results[0]
        odd = w.let(catalog.ne.op(), BOOL, total, zero)
        return w.let(catalog.convert.op(dtype=INDEX), INDEX, odd)

    def both(self, *reports: Value) -> Value:
        """Not 0 where one of the reports is not."""
        found = reports[0]
        for each in reports[1:]:
            found = self.w.let(catalog.bitwise_or.op(), INDEX, found, each)
        return found

    def in_columns(self, x: Stored, batch: Batch) -> Stored:
        """A matrix of a stack, copied in columns: row ``j`` of the copy is column ``j``."""
        m, n = x.shape[-2:]
        to = self.scratch(x.dtype, n, m)
        source = matrix(x, batch)
        self.w.nest((n, m), lambda i: self.w.store(to.buffer, to.place(i), source.at(self.w, (i[1], i[0]))))
        return to

    def from_columns(self, x: Stored, out: Stored, batch: Batch) -> None:
        """Write a matrix in columns to a matrix of a stack."""
        to = matrix(out, batch)
        self.w.nest(to.shape, lambda i: self.w.store(to.buffer, to.place(i), x.at(self.w, (i[1], i[0]))))


def matrix(x: Stored, batch: Batch) -> Stored:
    """A matrix, or a vector, of a stack."""
    place = x.offset
    for i, stride in zip(batch, x.strides, strict=False):
        place = place + i * stride
    return Stored(x.buffer, x.shape[len(batch) :], place, x.strides[len(batch) :])


def cholesky(step: Step) -> list[Lowered]:
    """Lower factors of Hermitian parts: to LAPACK, the upper ones of the transposes, which are the conjugates."""
    la = Lapack(step)
    (x,), (out,), w = la.operands, la.results, la.w
    n, half = x.shape[-1], Literal(0.5, la.dtype)
    zero = Literal(la.dtype.type(0).item(), la.dtype)

    def one(batch: Batch) -> Value:
        source, to = matrix(x, batch), matrix(out, batch)

        def entry(i: Batch) -> None:
            here, there = (w.let(catalog.mul.op(), la.dtype, source.at(w, k), half) for k in (i, (i[1], i[0])))
            if la.dtype.kind == "c":
                there = w.let(catalog.conj.op(), la.dtype, there)
            value = w.let(catalog.add.op(), la.dtype, here, there)
            below = w.let(catalog.le.op(), BOOL, w.position(i[1]), w.position(i[0]))
            w.store(to.buffer, to.place(i), w.let(catalog.select.op(), la.dtype, below, value, zero))

        w.nest(to.shape, entry)
        return la.both(la.finite(x, batch), la.call("potrf", "U", la.number(n), to.view(), la.extent(n), written=(2,)))

    return la.lower(x.shape[:-2], one)


def solve(step: Step) -> list[Lowered]:
    """Solutions by LU factors."""
    la = Lapack(step)
    (a, b), (out,) = la.operands, la.results
    return la.lower(a.shape[:-2], lambda batch: _solved(la, a, b, out, batch, adjoint=False))


def _solved(la: Lapack, a: Stored, b: Stored, out: Stored, batch: Batch, *, adjoint: bool) -> Value:
    n, k = b.shape[-2:]
    factors, right = la.in_columns(a, batch), la.in_columns(b, batch)
    if adjoint:
        factors = _adjoint_in_columns(la, a, batch)
    pivots = la.scratch(INT32, n)
    info = la.call(
        "gesv", la.number(n), la.number(k), factors.view(), la.extent(n), pivots.view(), right.view(), la.extent(n),
        written=(2, 4, 5),
    )  # fmt: skip
    la.from_columns(right, out, batch)
    return la.both(la.finite(a, batch), info)


def _adjoint_in_columns(la: Lapack, a: Stored, batch: Batch) -> Stored:
    w, to, source = la.w, la.scratch(a.dtype, *a.shape[-2:]), matrix(a, batch)

    def entry(i: Batch) -> None:
        value = source.at(w, i)
        w.store(to.buffer, to.place(i), w.let(catalog.conj.op(), a.dtype, value) if a.dtype.kind == "c" else value)

    w.nest(to.shape, entry)
    return to


def factors(step: Step) -> list[Lowered]:
    """LU factors of one matrix; stacks are solved from the matrices themselves, as the ordinary kernels do."""
    (x,) = step.operands
    if len(x.shape) > 2:
        small = isinstance(x.shape[-1], int) and x.shape[-1] <= STACKED_SOLVE_MAX_SIZE
        return [x, Formula(step.outs[1].shape, INDEX, lambda w, i: Literal(0, INDEX))] if small else call(step)
    la = Lapack(step)
    (x,), (out, swaps), w = la.operands, la.results, la.w
    n = x.shape[-1]

    def one(batch: Batch) -> Value:
        columns, pivots = la.in_columns(x, batch), la.scratch(INT32, n)
        extent = la.number(n)
        info = la.call("getrf", extent, extent, columns.view(), la.extent(n), pivots.view(), written=(2, 4))
        la.from_columns(columns, out, batch)

        def pivot(i: Batch) -> None:
            here = w.let(catalog.convert.op(dtype=INDEX), INDEX, pivots.at(w, i))
            w.store(swaps.buffer, swaps.place(i), w.let(catalog.sub.op(), INDEX, here, Literal(1, INDEX)))

        w.nest((n,), pivot)
        return la.both(la.finite(x, batch), info)

    return la.lower((), one)


def solve_by_factors(step: Step) -> list[Lowered]:
    """Solutions from LU factors, of stacks from the matrices."""
    la = Lapack(step)
    (a, lu, swaps, b), (out,), w = la.operands, la.results, la.w
    adjoint = step.params["adjoint"]
    if len(a.shape) > 2:
        return la.lower(a.shape[:-2], lambda batch: _solved(la, a, b, out, batch, adjoint=adjoint))
    n, k = b.shape

    def one(batch: Batch) -> Value:
        columns, right, pivots = la.in_columns(lu, batch), la.in_columns(b, batch), la.scratch(INT32, n)

        def pivot(i: Batch) -> None:
            here = w.let(catalog.add.op(), INDEX, swaps.at(w, i), Literal(1, INDEX))
            w.store(pivots.buffer, pivots.place(i), w.let(catalog.convert.op(dtype=INT32), INT32, here))

        w.nest((n,), pivot)
        info = la.call(
            "getrs", "C" if adjoint else "N", la.number(n), la.number(k), columns.view(), la.extent(n), pivots.view(),
            right.view(), la.extent(n), written=(6,),
        )  # fmt: skip
        la.from_columns(right, out, batch)
        return info

    return la.lower((), one)


def solve_triangular(step: Step) -> list[Lowered]:
    """``a Y = B`` is ``Y' a' = B'`` for transposes, which is how LAPACK sees matrices in rows: no copy is needed."""
    la = Lapack(step)
    (a, b), (out,), w = la.operands, la.results, la.w
    lower, unit, adjoint = (step.params[name] for name in ("lower", "unit", "adjoint"))
    n, k = b.shape[-2:]
    a = a if a.without_gaps else _gapless(la, a)
    one_ = Literal(la.dtype.type(1).item(), la.dtype)

    def one(batch: Batch) -> Value:
        factor, to = matrix(a, batch), matrix(out, batch)
        write(w, matrix(b, batch), to)
        w.statements.append(
            Foreign(
                PREFIX[la.dtype.char] + "trsm",
                ("R", "U" if lower else "L", "C" if adjoint else "N", "U" if unit else "N", la.number(k), la.number(n),
                 one_, factor.view(), la.extent(n), to.view(), la.extent(k)),
                (9,),
            )
        )  # fmt: skip
        w.written(to.buffer)
        return Literal(0, INDEX) if unit else _zero_on_diagonal(la, factor)

    return la.lower(a.shape[:-2], one)


def _gapless(la: Lapack, x: Stored) -> Stored:
    found = la.scratch(x.dtype, *x.shape)
    write(la.w, x, found)
    return found


def _zero_on_diagonal(la: Lapack, x: Stored) -> Value:
    w = la.w
    with w.loop(x.shape[-1], [Literal(0, INDEX)]) as loop:
        i = Affine.of(loop.index)
        zero = Literal(la.dtype.type(0).item(), la.dtype)
        hit = w.let(catalog.eq.op(), BOOL, x.at(w, (i, i)), zero)
        number = w.let(catalog.convert.op(dtype=INDEX), INDEX, hit)
        loop.following = (w.let(catalog.bitwise_or.op(), INDEX, loop.inside[0], number),)
    return loop.results[0]


def inverse(step: Step) -> list[Lowered]:
    """Inverses: solutions for the columns of the identity."""
    la = Lapack(step)
    (x,), (out,), w = la.operands, la.results, la.w
    n = x.shape[-1]
    numbers = [Literal(la.dtype.type(v).item(), la.dtype) for v in (1, 0)]

    def one(batch: Batch) -> Value:
        factors, pivots, right = la.in_columns(x, batch), la.scratch(INT32, n), la.scratch(la.dtype, n, n)

        def entry(i: Batch) -> None:
            on = w.let(catalog.eq.op(), BOOL, *map(w.position, i))
            w.store(right.buffer, right.place(i), w.let(catalog.select.op(), la.dtype, on, *numbers))

        w.nest((n, n), entry)
        info = la.call(
            "gesv", la.number(n), la.number(n), factors.view(), la.extent(n), pivots.view(), right.view(),
            la.extent(n), written=(2, 4, 5),
        )  # fmt: skip
        la.from_columns(right, out, batch)
        return la.both(la.finite(x, batch), info)

    return la.lower(x.shape[:-2], one)


def _determinant(la: Lapack, x: Stored, batch: Batch, first: Sequence[Value], factor: Any) -> tuple[Value, ...]:
    """What is made of the diagonal of the triangular factor, one entry after the other, with the signs of the swaps."""
    w, n = la.w, x.shape[-1]
    factors, pivots = la.in_columns(x, batch), la.scratch(INT32, n)
    la.call("getrf", la.number(n), la.number(n), factors.view(), la.extent(n), pivots.view(), written=(2, 4))
    with w.loop(n, first) as loop:
        i = Affine.of(loop.index)
        here = w.let(catalog.convert.op(dtype=INDEX), INDEX, pivots.at(w, (i,)))
        swapped = w.let(catalog.ne.op(), BOOL, here, w.position(i + 1))
        loop.following = factor(loop.inside, factors.at(w, (i, i)), swapped)
    return loop.results


def determinant(step: Step) -> list[Lowered]:
    """Products of the diagonals of triangular factors."""
    la = Lapack(step)
    (x,), (out,), w = la.operands, la.results, la.w

    def one(batch: Batch) -> Value:
        def factor(inside: Sequence[Value], entry: Value, swapped: Value) -> tuple[Value, ...]:
            turned = w.let(catalog.select.op(), la.dtype, swapped, w.let(catalog.neg.op(), la.dtype, entry), entry)
            return (w.let(catalog.mul.op(), la.dtype, inside[0], turned),)

        (value,) = _determinant(la, x, batch, [Literal(la.dtype.type(1).item(), la.dtype)], factor)
        w.store(out.buffer, matrix(out, batch).offset, value)
        return Literal(0, INDEX)

    return la.lower(x.shape[:-2], one)


def sign_and_logarithm(step: Step) -> list[Lowered]:
    """Signs, or phases, and logarithms of absolute values of determinants."""
    la = Lapack(step)
    (x,), (signs, logs), w = la.operands, la.results, la.w

    def one(batch: Batch) -> Value:
        def factor(inside: Sequence[Value], entry: Value, swapped: Value) -> tuple[Value, ...]:
            size = w.let(catalog.abs.op(), la.real, entry)
            phase = w.let(catalog.sign.op(), la.dtype, entry)
            turned = w.let(catalog.select.op(), la.dtype, swapped, w.let(catalog.neg.op(), la.dtype, phase), phase)
            return (
                w.let(catalog.mul.op(), la.dtype, inside[0], turned),
                w.let(catalog.add.op(), la.real, inside[1], w.let(catalog.log.op(), la.real, size)),
            )

        first = [Literal(la.dtype.type(1).item(), la.dtype), Literal(0.0, la.real)]
        sign, log = _determinant(la, x, batch, first, factor)
        w.store(signs.buffer, matrix(signs, batch).offset, sign)
        w.store(logs.buffer, matrix(logs, batch).offset, log)
        return Literal(0, INDEX)

    return la.lower(x.shape[:-2], one)
