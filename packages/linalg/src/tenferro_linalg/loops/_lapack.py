"""Code shared by the rules that call LAPACK.

LAPACK is column-major: it reads a row-major matrix as the transpose. Where that does not matter it works in place,
otherwise on a column-major copy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, Final

import numpy as np

from tenferro_linalg._small import SMALL_MAX_SIZE
from tenferro_runtime.lowering import LoopWriter, Lowered, Step, Stored, call_into, stored, write
from tenferro_tensor import catalog
from tenferro_tensor.loop_ir import INDEX, Affine, Case, Foreign, Literal, Order, Statement, Switch, Value, View
from tenferro_tensor_core import DimLike, dim_max, real_of

PREFIX: Final = {"f": "s", "d": "d", "F": "c", "D": "z"}
"""LAPACK's prefixes of the dtypes, by NumPy's letters."""

BLOCK: Final = 64
"""Maximum number of columns that LAPACK's blocked algorithms process at once."""

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

    def lower(
        self,
        batch: Sequence[DimLike],
        body: Callable[[Batch], Value],
        small: str | None = None,
        flags: int = 0,
        given: Sequence[int] = (0,),
    ) -> list[Lowered]:
        """The results of `body` for each matrix of the stack, or of the kernel if a status is not 0.

        Args:
            batch: the leading axes.
            body: writes the results for one matrix, and returns a status.
            small: a routine for small matrices, which is tried first.
            flags: flags of the routine.
            given: the operands that it takes.
        """
        w, taken = self.w, [self.operands[k] for k in given]
        extents = [n for x in taken for n in x.shape[-2:]]
        if small is None or any(isinstance(n, int) and not 1 <= n <= SMALL_MAX_SIZE for n in extents):
            self._lower_each(batch, body)
        else:
            report = self._small(small, flags, batch, taken)
            with w.block() as large:
                self._lower_each(batch, body)
            where_not_0(w, report, large)
        w.written(*[x.buffer for x in self.results])
        return list[Lowered](self.results)

    def _lower_each(self, batch: Sequence[DimLike], body: Callable[[Batch], Value]) -> None:
        self.recourse(over(self.w, batch, body))

    def recourse(self, bad: Value) -> None:
        """Leave all results to the kernel if a status is not 0."""
        with self.w.block() as again:
            call_into(self.step, self.operands, self.results, recourse=True)
        where_not_0(self.w, bad, again)

    def _small(self, name: str, flags: int, batch: Sequence[DimLike], taken: Sequence[Stored]) -> Value:
        """The status of a routine for small matrices."""
        given = [gapless(self, x) for x in taken]
        arguments: list[Value | View] = [self.number(prod(batch)), self.number(given[0].shape[-2])]
        arguments += [self.number(given[-1].shape[-1]), Literal(flags, INDEX)]
        arguments += [x.view() for x in (*given, *self.results)]
        spare = [given[0].view()] * (8 - len(arguments))
        info, first = self.w.reg(INDEX), 4 + len(given)
        written = tuple(range(first, first + len(self.results)))
        symbol = f"small.{name}.{self.dtype.char}"
        self.w.statements.append(Foreign(symbol, (*arguments, *spare), written, info))
        self.w.written(*[x.buffer for x in self.results])
        return info

    def of_finite(self, x: Stored, batch: Batch, body: Callable[[], Value]) -> Value:
        """The status of `body`, which runs if all entries of a matrix are finite; otherwise 1."""
        return self.unless(self.finite(x, batch), body)

    def unless(self, bad: Value, body: Callable[[], Value]) -> Value:
        """The status of `body`, which runs if `bad` is 0; otherwise 1."""
        report = self.w.reg(INDEX)
        with self.w.block() as inner:
            found = body()
        cases = Case(tuple(inner), (found,)), Case((), (Literal(1, INDEX),))
        self.w.statements.append(Switch(bad, cases, (report,)))
        return report

    def call(self, name: str, *arguments: str | Value | View, written: Sequence[int]) -> Value:
        """Call a subroutine for the dtype of the operands and return its status."""
        info = self.w.reg(INDEX)
        self.w.statements.append(Foreign(PREFIX[self.dtype.char] + name, arguments, tuple(written), info))
        self.w.written(*[arguments[k].buffer for k in written])  # type: ignore[union-attr]
        return info

    def extent(self, d: DimLike) -> Value:
        """An extent as a number of at least 1, as LAPACK requires of leading dimensions."""
        return self.w.position(Affine(dim_max(d, 1)))

    def number(self, d: DimLike) -> Value:
        """An extent as a number."""
        return self.w.position(Affine(d))

    def scratch(self, dtype: np.dtype[Any], *shape: DimLike) -> Stored:
        """Allocate workspace."""
        return Stored.whole_of(self.w.buffer(dtype, shape))

    def finite(self, x: Stored, batch: Batch) -> Value:
        """0 if all entries of a matrix are finite."""
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

        return counted(w, w.let(catalog.ne.op(), BOOL, self.summed(x.shape[-2:], term), zero))

    def summed(self, shape: Sequence[DimLike], term: Callable[[Batch], Value]) -> Value:
        """The sum of real terms over the indices of a matrix."""
        w, (m, n) = self.w, shape
        with w.loop(m, [Literal(0.0, self.real)], Order.GROUPED) as rows:
            with w.loop(n, [rows.inside[0]], Order.GROUPED) as columns:
                each = term((Affine.of(rows.index), Affine.of(columns.index)))
                columns.following = (w.let(catalog.add.op(), self.real, columns.inside[0], each),)
            rows.following = (columns.results[0],)
        return rows.results[0]

    def both(self, *reports: Value) -> Value:
        """Nonzero if one of the statuses is."""
        found = reports[0]
        for each in reports[1:]:
            found = self.w.let(catalog.bitwise_or.op(), INDEX, found, each)
        return found

    def in_columns(self, x: Stored, batch: Batch) -> Stored:
        """A column-major copy of a matrix of a stack: row ``j`` of the copy is column ``j``."""
        m, n = x.shape[-2:]
        to = self.scratch(x.dtype, n, m)
        source = matrix(x, batch)
        self.w.nest((n, m), lambda i: self.w.store(to.buffer, to.place(i), source.at(self.w, (i[1], i[0]))))
        return to

    def from_columns(self, x: Stored, out: Stored, batch: Batch) -> None:
        """Write a column-major matrix to a matrix of a stack."""
        to = matrix(out, batch)
        self.w.nest(to.shape, lambda i: self.w.store(to.buffer, to.place(i), x.at(self.w, (i[1], i[0]))))


def over(w: LoopWriter, batch: Sequence[DimLike], body: Callable[[Batch], Value]) -> Value:
    """0 if all statuses of `body` over the indices of a stack are 0."""

    def level(index: Batch, bad: Value) -> Value:
        if len(index) == len(batch):
            return w.let(catalog.bitwise_or.op(), INDEX, bad, body(index))
        with w.loop(batch[len(index)], [bad]) as loop:
            loop.following = (level((*index, Affine.of(loop.index)), loop.inside[0]),)
        return loop.results[0]

    return level((), Literal(0, INDEX))


def where_not_0(w: LoopWriter, report: Value, statements: Sequence[Statement]) -> None:
    """Run statements if a status is not 0."""
    number = counted(w, w.let(catalog.ne.op(), BOOL, report, Literal(0, INDEX)))
    w.statements.append(Switch(number, (Case(()), Case(tuple(statements)))))


def counted(w: LoopWriter, condition: Value) -> Value:
    """1 if a condition holds, otherwise 0."""
    return w.let(catalog.convert.op(dtype=INDEX), INDEX, condition)


def gapless(la: Lapack, x: Stored) -> Stored:
    """The same matrices, contiguous and row-major."""
    if x.without_gaps:
        return x
    found = la.scratch(x.dtype, *x.shape)
    write(la.w, x, found)
    return found


def matrix(x: Stored, batch: Batch) -> Stored:
    """One matrix, or vector, of a stack."""
    place = x.offset
    for i, stride in zip(batch, x.strides, strict=False):
        place = place + i * stride
    return Stored(x.buffer, x.shape[len(batch) :], place, x.strides[len(batch) :])
