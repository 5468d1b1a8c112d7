"""Lowering of reductions and cumulative operations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from tenferro_runtime.lowering._lowering import Step, rule
from tenferro_runtime.lowering._values import (
    REGISTERS_MAX_ELEMENTS,
    Formula,
    Index,
    Lowered,
    Numbers,
    Stored,
    count,
    indices,
    is_small,
    kept,
    write,
)
from tenferro_runtime.lowering._writer import LoopWriter
from tenferro_tensor import Op, Primitive, catalog
from tenferro_tensor.loop_ir import INDEX, Affine, Literal, Order, Value
from tenferro_tensor_core import DimLike, dim_max, floordiv

RECOMPUTE_MAX_COST: Final = 4
"""Largest cost of an element that is computed twice if it is read twice."""

UNROLL_MAX_TERMS: Final = 64
"""Largest number of terms, over all elements of a result, that are unrolled."""

LONG_FUNCTION_MIN_REGISTERS: Final = 4096
"""Functions with at least this many registers unroll nothing."""

ROWS_PER_PASS: Final = 16
"""Number of rows combined in registers: about as many streams as a processor prefetches."""

Term = Callable[[LoopWriter, Index], Value]


def _lowest(dtype: np.dtype[Any]) -> Any:
    return -np.inf if dtype.kind == "f" else False if dtype.kind == "b" else int(np.iinfo(dtype).min)


def _highest(dtype: np.dtype[Any]) -> Any:
    return np.inf if dtype.kind == "f" else True if dtype.kind == "b" else int(np.iinfo(dtype).max)


COMBINED: Final[dict[Primitive, tuple[Op, Callable[[np.dtype[Any]], Any]]]] = {
    catalog.reduce_sum: (catalog.add.op(), lambda dtype: dtype.type(0).item()),
    catalog.reduce_prod: (catalog.mul.op(), lambda dtype: dtype.type(1).item()),
    catalog.reduce_max: (catalog.maximum.op(), _lowest),
    catalog.reduce_min: (catalog.minimum.op(), _highest),
    catalog.reduce_any: (catalog.bitwise_or.op(), lambda dtype: False),
    catalog.reduce_all: (catalog.bitwise_and.op(), lambda dtype: True),
    catalog.cumsum: (catalog.add.op(), lambda dtype: dtype.type(0).item()),
    catalog.cumprod: (catalog.mul.op(), lambda dtype: dtype.type(1).item()),
    catalog.cummax: (catalog.maximum.op(), _lowest),
    catalog.cummin: (catalog.minimum.op(), _highest),
    catalog.cumlogsumexp: (catalog.logaddexp.op(), _lowest),
}
"""The op that combines two elements, and its neutral element."""


def accumulated(w: LoopWriter, shape: Sequence[DimLike], term: Term, op: Op, first: Literal) -> Value:
    """Combine all terms of a shape, starting from `first`; few terms are unrolled."""
    if _few(shape):
        terms = [term(w, i) for i in indices(shape)]
        total = terms[0]
        for each in terms[1:]:
            total = w.let(op, first.dtype, total, each)
        return total
    return _in_loops(w, shape, term, op, first)


def _in_loops(w: LoopWriter, shape: Sequence[DimLike], term: Term, op: Op, first: Value) -> Value:
    """Combine all terms of a shape in loops, starting from `first`."""

    def level(k: int, index: Index, total: Value) -> Value:
        if k == len(shape):
            return w.let(op, first.dtype, total, term(w, index))
        if shape[k].__class__ is int and shape[k] == 1:
            return level(k + 1, (*index, Affine()), total)
        with w.loop(shape[k], [total], Order.GROUPED) as loop:
            loop.following = (level(k + 1, (*index, Affine.of(loop.index)), loop.inside[0]),)
        return loop.results[0]

    return level(0, (), first)


def _written_out(w: LoopWriter, shape: Sequence[DimLike], over: Sequence[DimLike]) -> bool:
    """Whether each element of a small result is computed separately: there is one, or all have few terms in total.

    Long functions use loops, because unrolled code would dominate the compile time.
    """
    n, terms = count(shape), count(over)
    few = isinstance(n, int) and isinstance(terms, int) and n * terms <= UNROLL_MAX_TERMS
    return n == 1 or (few and w.length < LONG_FUNCTION_MIN_REGISTERS)


def _few(shape: Sequence[DimLike]) -> bool:
    """Whether terms of this shape are unrolled."""
    n = count(shape)
    return isinstance(n, int) and 0 < n <= REGISTERS_MAX_ELEMENTS


def reduced(
    w: LoopWriter, shape: Sequence[DimLike], over: Sequence[DimLike], term: Callable[[LoopWriter, Index, Index], Value],
    op: Op, first: Literal, *, inner: bool,
) -> Lowered:  # fmt: skip
    """An array each of whose elements combines the terms of one index.

    Args:
        w: the writer of statements.
        shape: shape of the result.
        over: extents of the reduced axes.
        term: returns the term at an index of the result and an index of the reduced axes.
        op: combines two terms.
        first: the neutral element.
        inner: whether the reduction is the inner loop, for contiguous terms or many work items; otherwise rows of terms
            are combined.
    """

    def each(w: LoopWriter, i: Index) -> Value:
        return accumulated(w, over, lambda w, r: term(w, i, r), op, first)

    if is_small(shape) and _written_out(w, shape, over):
        return Numbers(shape, first.dtype, [each(w, i) for i in indices(shape)])
    found = Stored.whole_of(w.buffer(first.dtype, shape))
    if inner or _few(over):
        write(w, Formula(shape, first.dtype, each), found)
        return found
    _by_rows(w, found, over, term, op, first)
    return found


def _by_rows(
    w: LoopWriter, to: Stored, over: Sequence[DimLike], term: Callable[[LoopWriter, Index, Index], Value], op: Op,
    first: Literal,
) -> None:  # fmt: skip
    """Combine rows of terms element by element, `ROWS_PER_PASS` rows at a time, which bounds the number of streams.

    The loop over these rows is vectorized over elements. Long sums are as accurate as pairwise ones: the rounding error
    of each pass is added to the next (Kahan summation).
    """
    first_inner = len(over) - 1
    while first_inner and _is_few(over[first_inner - 1 : -1]):
        first_inner -= 1
    outer, inner, last = over[:first_inner], over[first_inner:-1], over[-1]
    groups = floordiv(dim_max(last - 1, 0), ROWS_PER_PASS)
    several = bool(outer) or not (groups.__class__ is int and groups == 0)
    exact = op.primitive is catalog.add and first.dtype.kind in "fc" and several
    lost = Stored.whole_of(w.buffer(first.dtype, to.shape)) if exact else None

    def some(before: Index, start: Affine, rows: DimLike, total: Callable[[Index], Value]) -> None:
        def element(i: Index) -> None:
            def of(w: LoopWriter, r: Index) -> Value:
                return term(w, i, (*before, *r[:-1], r[-1] + start))

            known = total(i)
            if lost is None or isinstance(known, Literal):
                w.store(to.buffer, to.place(i), _in_loops(w, (*inner, rows), of, op, known))
                return
            found, error = _added(w, known, _in_loops(w, (*inner, rows), of, op, first), lost.at(w, i))
            w.store(to.buffer, to.place(i), found)
            w.store(lost.buffer, lost.place(i), error)

        w.nest(to.shape, element)

    def level(k: int, r: Index, total: Callable[[Index], Value]) -> None:
        if k < len(outer):
            with w.loop(outer[k]) as loop:
                level(k + 1, (*r, Affine.of(loop.index)), total)
            return
        some(r, Affine(), last - groups * ROWS_PER_PASS, total)
        if groups.__class__ is int and groups == 0:
            return
        with w.loop(groups) as loop:
            start = Affine.of(loop.index) * ROWS_PER_PASS + (last - groups * ROWS_PER_PASS)
            some(r, start, ROWS_PER_PASS, lambda i: to.at(w, i))

    for x in (to if outer else None, lost):
        if x is not None:
            write(w, Formula(to.shape, first.dtype, lambda w, i: first), x)
    level(0, (), lambda i: to.at(w, i) if outer else first)


def _added(w: LoopWriter, total: Value, x: Value, lost: Value) -> tuple[Value, Value]:
    """A sum and its rounding error, which is 0 if the sum is not finite."""
    add, sub, dtype = catalog.add.op(), catalog.sub.op(), total.dtype
    more = w.let(sub, dtype, x, lost)
    found = w.let(add, dtype, total, more)
    error = w.let(sub, dtype, w.let(sub, dtype, found, total), more)
    known = w.let(catalog.eq.op(), np.dtype(bool), error, error)
    return found, w.let(catalog.select.op(), dtype, known, error, Literal(dtype.type(0).item(), dtype))


def _is_few(shape: Sequence[DimLike]) -> bool:
    """Whether this shape has at most a few rows."""
    n = count(shape)
    return isinstance(n, int) and n <= ROWS_PER_PASS


def _with(index: Index, r: Index, axes: Sequence[int], ndim: int) -> Index:
    """The index of the operand, from those of the result and of the reduced axes."""
    kept, gone = iter(index), iter(r)
    return tuple([next(gone) if k in axes else next(kept) for k in range(ndim)])


@rule(*[p for p in COMBINED if p.name.startswith("reduce_")])
def _reduce(step: Step) -> Lowered:
    x, axes = step.operand(0), step.params["axes"]
    op, neutral = COMBINED[step.op.primitive]
    if x.dtype.kind == "b" and step.op.primitive in (catalog.reduce_sum, catalog.reduce_max):
        op = catalog.bitwise_or.op()
    elif x.dtype.kind == "b" and step.op.primitive in (catalog.reduce_prod, catalog.reduce_min):
        op = catalog.bitwise_and.op()
    first = Literal(neutral(x.dtype), x.dtype)
    over = [n for k, n in enumerate(x.shape) if k in axes]
    ndim = len(x.shape)

    def term(w: LoopWriter, i: Index, r: Index) -> Value:
        return x.at(w, _with(i, r, axes, ndim))

    inner = not ndim or ndim - 1 in axes or not step.lowering.on_host
    return reduced(step.w, step.out.shape, over, term, op, first, inner=inner)


@rule(catalog.argmax, catalog.argmin)
def _located(step: Step) -> Lowered:
    """Find the first best element sequentially; the first NaN is better than any number."""
    x, axis = step.operand(0), step.params["axis"]
    ndim, better = len(x.shape), catalog.gt if step.op.primitive is catalog.argmax else catalog.lt
    if axis == ndim - 1:
        return _located_in_rows(step, x if x.cost <= RECOMPUTE_MAX_COST else kept(step.w, x))

    def at(w: LoopWriter, index: Index) -> Value:
        start = x.at(w, _with(index, (Affine(),), (axis,), ndim))
        with w.loop(x.shape[axis], [start, Literal(0, INDEX)]) as loop:
            best, where = loop.inside
            here = x.at(w, _with(index, (Affine.of(loop.index),), (axis,), ndim))
            wins = _wins(w, better, here, best)
            select = catalog.select.op()
            loop.following = (
                w.let(select, x.dtype, wins, here, best),
                w.let(select, INDEX, wins, w.position(Affine.of(loop.index)), where),
            )
        return loop.results[1]

    return _computed(step, at)


def _located_in_rows(step: Step, x: Lowered) -> Lowered:
    """Find the best value of each row, then the first element equal to it, both vectorized."""
    name = "reduce_max" if step.op.primitive is catalog.argmax else "reduce_min"
    op, neutral = COMBINED[getattr(catalog, name)]
    if x.dtype.kind == "b":
        op = (catalog.bitwise_or if name == "reduce_max" else catalog.bitwise_and).op()
    over, boolean, nowhere = x.shape[-1:], np.dtype(np.bool_), Literal(np.iinfo(INDEX).max, INDEX)

    def at(w: LoopWriter, index: Index) -> Value:
        first = Literal(neutral(x.dtype), x.dtype)
        best = accumulated(w, over, lambda w, r: x.at(w, (*index, *r)), op, first)

        def place(w: LoopWriter, r: Index) -> Value:
            here = x.at(w, (*index, *r))
            found = w.let(catalog.eq.op(), boolean, here, best)
            if x.dtype.kind == "f":
                odd = w.let(catalog.is_nan.op(), boolean, here)
                found = w.let(catalog.bitwise_or.op(), boolean, found, odd)
            return w.let(catalog.select.op(), INDEX, found, w.position(r[0]), nowhere)

        return accumulated(w, over, place, catalog.minimum.op(), nowhere)

    return _computed(step, at)


def _wins(w: LoopWriter, better: Primitive, here: Value, best: Value) -> Value:
    boolean = np.dtype(np.bool_)
    wins = w.let(better.op(), boolean, here, best)
    if here.dtype.kind != "f":
        return wins
    odd, known = (w.let(catalog.is_nan.op(), boolean, v) for v in (here, best))
    new = w.let(catalog.bitwise_and.op(), boolean, odd, w.let(catalog.bitwise_not.op(), boolean, known))
    return w.let(catalog.bitwise_or.op(), boolean, wins, new)


def _computed(step: Step, at: Term) -> Lowered:
    """Compute an array now, each element by a loop."""
    if count(step.out.shape) == 1:
        return Numbers(step.out.shape, step.out.dtype, [at(step.w, i) for i in indices(step.out.shape)])
    found = Stored.whole_of(step.w.buffer(step.out.dtype, step.out.shape))
    write(step.w, Formula(step.out.shape, step.out.dtype, at), found)
    return found


@rule(*[p for p in COMBINED if p.name.startswith("cum")])
def _cumulative(step: Step) -> Lowered:
    """Sequential along the axis, independent along the others."""
    x, axis, reverse = step.operand(0), step.params["axis"], step.params["reverse"]
    op, neutral = COMBINED[step.op.primitive]
    if x.dtype.kind == "b":
        op = (catalog.bitwise_or if step.op.primitive in (catalog.cumsum, catalog.cummax) else catalog.bitwise_and).op()
    first, ndim, w = Literal(neutral(x.dtype), x.dtype), len(x.shape), step.w
    found = Stored.whole_of(w.buffer(x.dtype, x.shape))
    others = [n for k, n in enumerate(x.shape) if k != axis]

    def line(i: Index) -> None:
        with w.loop(x.shape[axis], [first]) as loop:
            r = Affine.of(loop.index)
            at = _with(i, (-r + (x.shape[axis] - 1) if reverse else r,), (axis,), ndim)
            total = w.let(op, x.dtype, loop.inside[0], x.at(w, at))
            w.store(found.buffer, found.place(at), total)
            loop.following = (total,)

    w.nest(others, line)
    return found
