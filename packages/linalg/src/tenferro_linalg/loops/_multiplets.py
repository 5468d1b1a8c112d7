"""Which values of a matrix count as equal, and which as zero, decided by a loop; see `_multiplets`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tenferro_linalg._multiplets import EPS
from tenferro_linalg.loops._lapack import BOOL, counted
from tenferro_runtime.lowering import LoopWriter, Stored
from tenferro_tensor import Op, catalog
from tenferro_tensor.loop_ir import INDEX, Affine, Literal, Order, Value
from tenferro_tensor_core import DimLike, dim_max


@dataclass(frozen=True)
class Multiplets:
    """The runs of equal values among k sorted ones.

    Attributes:
        first: for each value, the position where its run begins.
        last: for each value, the position where its run ends.
        rank: position of the run of zeros, or k.
    """

    first: Stored
    last: Stored
    rank: Value

    def begins(self, w: LoopWriter, j: Affine) -> Value:
        """Whether a run begins at a position."""
        return w.let(catalog.eq.op(), BOOL, self.first.at(w, (j,)), w.position(j))

    def alone(self, w: LoopWriter, j: Affine) -> Value:
        """Whether a value has no equal."""
        return w.let(catalog.eq.op(), BOOL, self.first.at(w, (j,)), self.last.at(w, (j,)))

    def same(self, w: LoopWriter, i: Affine, j: Affine) -> Value:
        """Whether two values are equal."""
        return w.let(catalog.eq.op(), BOOL, self.first.at(w, (i,)), self.first.at(w, (j,)))

    def null(self, w: LoopWriter, j: Affine) -> Value:
        """Whether a value is zero."""
        return w.let(catalog.ge.op(), BOOL, w.position(j), self.rank)

    def extended(self, w: LoopWriter, count: DimLike) -> Multiplets:
        """The runs of at least k vectors: those beyond the values belong to the run of zeros."""
        ends = (self.rank, w.position(Affine(count - 1)))
        first, last = (Stored.whole_of(w.buffer(INDEX, (count,))) for _ in ends)
        for to, old, end in zip((first, last), (self.first, self.last), ends, strict=True):
            w.nest((count,), lambda i, to=to, end=end: w.store(to.buffer, to.place(i), end))  # type: ignore[misc]
            with w.loop(old.shape[0]) as loop:
                j = Affine.of(loop.index)
                known = w.let(catalog.select.op(), INDEX, self.null(w, j), end, old.at(w, (j,)))
                w.store(to.buffer, to.place((j,)), known)
        return Multiplets(first, last, self.rank)

    def vanishing(self, w: LoopWriter, kind: str, i: Affine, j: Affine) -> Value:
        """Whether the gap of two values vanishes, for the kinds of `_multiplets.gaps`."""
        if kind == "difference":
            return self.same(w, i, j)
        return self.null(w, j) if kind == "column" else w.both(self.null(w, i), self.null(w, j))


def multiplets_of(w: LoopWriter, values: Stored, size: DimLike, zeros: bool) -> Multiplets:
    """Find the runs; the arguments are those of `irregular`."""
    dtype, k = values.dtype, values.shape[0]
    limit = tau(w, largest_of(w, values), size)
    first, last = (Stored.whole_of(w.buffer(INDEX, (k,))) for _ in range(2))
    with w.loop(k, [Literal(0, INDEX)]) as up:
        j = Affine.of(up.index)
        step = w.let(catalog.sub.op(), dtype, values.at(w, (j,)), values.at(w, (w.clamped(j - 1, k - 1),)))
        apart = w.let(catalog.gt.op(), BOOL, w.let(catalog.abs.op(), dtype, step), limit)
        begin = w.let(catalog.select.op(), INDEX, apart, w.position(j), up.inside[0])
        w.store(first.buffer, first.place((j,)), begin)
        up.following = (begin,)
    with w.loop(k, [w.position(Affine(k - 1))]) as down:
        j = Affine(k - 1) - Affine.of(down.index)
        w.store(last.buffer, last.place((j,)), down.inside[0])
        begins = w.let(catalog.eq.op(), BOOL, first.at(w, (j,)), w.position(j))
        down.following = (w.let(catalog.select.op(), INDEX, begins, w.position(j - 1), down.inside[0]),)
    rank = w.position(Affine(k))
    if zeros:
        is_null = w.let(catalog.le.op(), BOOL, least_of(w, values), limit)
        rank = w.let(catalog.select.op(), INDEX, is_null, up.results[0], rank)
    return Multiplets(first, last, rank)


def folded(w: LoopWriter, n: DimLike, first: Value, op: Op, term: Callable[[Affine], Value]) -> Value:
    """Combine terms by an associative op."""
    with w.loop(n, [first], Order.GROUPED) as loop:
        loop.following = (w.let(op, first.dtype, loop.inside[0], term(Affine.of(loop.index))),)
    return loop.results[0]


def times_size(w: LoopWriter, x: Value, factor: float, size: DimLike) -> Value:
    """``factor * size * x``."""
    if isinstance(size, int):
        return w.let(catalog.mul.op(), x.dtype, x, Literal(factor * size, x.dtype))
    number = w.let(catalog.convert.op(dtype=x.dtype), x.dtype, w.position(Affine(size)))
    scaled = w.let(catalog.mul.op(), x.dtype, number, Literal(factor, x.dtype))
    return w.let(catalog.mul.op(), x.dtype, x, scaled)


def tau(w: LoopWriter, largest: Value, size: DimLike) -> Value:
    """Largest gap that rounding can explain, given the largest absolute value; see `_multiplets.tau`."""
    return times_size(w, largest, 8 * EPS[largest.dtype], size)


def not_above(w: LoopWriter, x: Value, limit: Value) -> Value:
    """0 if a number is above a limit, otherwise 1; a NaN is not above."""
    above = w.let(catalog.gt.op(), BOOL, x, limit)
    return counted(w, w.let(catalog.bitwise_not.op(), BOOL, above))


def largest_of(w: LoopWriter, values: Stored) -> Value:
    """The largest absolute value of a vector; 0 if it is empty."""
    zero = Literal(0.0, values.dtype)
    size = catalog.abs.op()
    return folded(
        w, values.shape[0], zero, catalog.maximum.op(), lambda i: w.let(size, values.dtype, values.at(w, (i,)))
    )


def least_of(w: LoopWriter, values: Stored) -> Value:
    """The least value of a vector; infinity if it is empty."""
    none = Literal(np.inf, values.dtype)
    return folded(w, values.shape[0], none, catalog.minimum.op(), lambda i: values.at(w, (i,)))


def irregular(w: LoopWriter, values: Stored, size: DimLike, zeros: bool, strict: str | None = None) -> Value:
    """0 if all sorted values differ and, with `zeros`, the last of descending ones is not zero.

    Args:
        w: the writer of statements.
        values: a vector.
        size: the larger extent of the matrix.
        zeros: whether zero counts as a value to distinguish.
        strict: kind of the gaps that must be far from zero, so that derivatives of their quotients have digits.
    """
    dtype, k = values.dtype, values.shape[0]
    largest = largest_of(w, values)
    limit = tau(w, largest, size)
    limits = {"difference": limit, "zero": limit}
    if strict is not None:
        root = float(np.sqrt(EPS[dtype])) / (2 if strict == "sum" else 1)
        apart = w.let(catalog.mul.op(), dtype, largest, Literal(root, dtype))
        limits["difference" if strict == "difference" else "zero"] = w.let(catalog.maximum.op(), dtype, limit, apart)

    def equal(i: Affine) -> Value:
        gap = w.let(catalog.sub.op(), dtype, values.at(w, (i + 1,)), values.at(w, (i,)))
        return not_above(w, w.let(catalog.abs.op(), dtype, gap), limits["difference"])

    either = catalog.bitwise_or.op()
    bad = folded(w, dim_max(k - 1, 0), Literal(0, INDEX), either, equal)
    if not zeros:
        return bad
    return w.let(either, INDEX, bad, not_above(w, least_of(w, values), limits["zero"]))
