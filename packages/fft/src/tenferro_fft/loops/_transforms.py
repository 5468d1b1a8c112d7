"""The loop nests of the three primitives: read, transform and write line by line."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from tenferro_fft.loops._butterflies import Pair
from tenferro_fft.loops._lines import LineTransforms
from tenferro_fft.loops._roots import Roots, roots
from tenferro_runtime.lowering import LoopWriter, Lowered, Step, Stored, call_into, stored
from tenferro_tensor import catalog
from tenferro_tensor.loop_ir import INDEX, Affine, Case, Literal, Switch, Value
from tenferro_tensor_core import DimLike, floordiv, real_of

FORWARD = -1

COLUMNS: Final = 16
"""Number of lines transformed at once along axes other than the last, so that distant rows are read in longer runs."""

Index = tuple[Affine, ...]


def complex_to_complex(step: Step) -> Lowered:
    """Loop nests of `c2c`, axis by axis; the inverse swaps real and imaginary parts before and after.

    Args:
        step: the step to write.

    Returns:
        The stored result.
    """
    x, out = _operand(step), _result(step)
    w, axes, forward = step.w, step.params["axes"], step.params["sign"] == FORWARD

    def order(x: Pair) -> Pair:
        return x if forward else (x[1], x[0])

    found = {axis: roots(w, out.shape[axis], 1, real_of(out.dtype)) for axis in axes}

    def transform() -> None:
        source = x
        for axis in axes:
            _along(w, source, out, axis, found[axis], order)
            source = out

    return _lowered(step, x, out, [each.fits for each in found.values()], transform)


def _along(w: LoopWriter, x: Stored, out: Stored, axis: int, found: Roots, order: Callable[[Pair], Pair]) -> None:
    """Transforms along one axis, possibly in place; several lines at once if their points are adjacent."""

    def lines(number: int, shape: Sequence[DimLike], start: DimLike = 0) -> None:
        """Transform groups of `lines` lines, from an offset along the last axis."""
        line = LineTransforms(w, out.shape[axis], found, lines=number)

        def one(place: Callable[[Affine], Index]) -> None:
            def at(k: Affine, j: Affine) -> Index:
                index = place(k)
                return index if axis == len(index) - 1 else (*index[:-1], index[-1] * number + j + start)

            line.transform(lambda k, j: order(_parts(w, x.at(w, at(k, j)))))
            w.nest((line.length, number), lambda i: _store(w, out, at(*i), order(line.at(*i))))

        _over(w, shape, axis, one)

    if axis == len(out.shape) - 1:
        lines(1, out.shape)
        return
    *leading, last = out.shape
    groups = floordiv(last, COLUMNS)
    lines(COLUMNS, (*leading, groups))
    lines(1, (*leading, last - groups * COLUMNS), groups * COLUMNS)


def real_to_half(step: Step) -> Lowered:
    """Loop nests of `r2c`: the half spectrum of ``2 h`` points by a transform of h points, even plus ``i`` times odd.

    Args:
        step: the step to write.

    Returns:
        The stored result.
    """
    x, out, axis = _operand(step), _result(step), step.params["axis"]
    n = x.shape[axis]
    w, h = step.w, floordiv(n, 2)
    line = _lines(w, h, out.dtype, times=2)
    pairs = line.pairs

    def one(place: Callable[[Affine], Index]) -> None:
        line.transform(lambda j, _: (x.at(w, place(j * 2)), x.at(w, place(j * 2 + 1))))
        re, im = line.at(Affine())
        zero = Literal(0.0, line.dtype)
        for at, op in ((Affine(), catalog.add), (Affine(h), catalog.sub)):
            _store(w, out, place(at), (w.let(op.op(), line.dtype, re, im), zero))

        def coefficient(i: Index) -> None:
            k = i[0] + 1
            (a, b), (c, d) = line.at(k), line.at(-k + h)
            minus_d = w.let(catalog.neg.op(), line.dtype, d)
            even, odd = pairs.add((a, b), (c, minus_d)), pairs.sub((a, b), (c, minus_d))
            turned, _ = pairs.around(even, pairs.mul(odd, _root_of_double(line, k)))
            _store(w, out, place(k), pairs.scaled(turned, 0.5))

        w.nest((h - 1,), coefficient)

    def transform() -> None:
        _over(w, x.shape, axis, one)

    return _lowered(step, x, out, [line.roots.fits, _even(w, n)], transform)


def half_to_real(step: Step) -> Lowered:
    """Loop nests of `c2r`: the inverse of `real_to_half`, unscaled.

    Args:
        step: the step to write.

    Returns:
        The stored result.
    """
    x, out, axis = _operand(step), _result(step), step.params["axis"]
    n = out.shape[axis]
    w, h = step.w, floordiv(n, 2)
    line = _lines(w, h, x.dtype, times=2)
    pairs, dtype = line.pairs, line.dtype
    whole = Stored.whole_of(w.buffer(dtype, (2, h)))  # operand of the inverse transform

    def one(place: Callable[[Affine], Index]) -> None:
        first, last = (_parts(w, x.at(w, place(at)))[0] for at in (Affine(), Affine(h)))
        for part, op in enumerate((catalog.add, catalog.sub)):
            w.store(whole.buffer, whole.place((Affine(part), Affine())), w.let(op.op(), dtype, first, last))

        def coefficient(i: Index) -> None:
            k = i[0] + 1
            (a, b), (c, d) = _parts(w, x.at(w, place(k))), _parts(w, x.at(w, place(-k + h)))
            minus_d = w.let(catalog.neg.op(), dtype, d)
            even, odd = pairs.add((a, b), (c, minus_d)), pairs.sub((a, b), (c, minus_d))
            re, minus_im = _root_of_double(line, k)
            turned = pairs.mul(odd, (re, w.let(catalog.neg.op(), dtype, minus_im)))
            _, found = pairs.around(even, turned)
            for part, value in enumerate(found):
                w.store(whole.buffer, whole.place((Affine(part), k)), value)

        w.nest((h - 1,), coefficient)
        line.transform(lambda j, _: (whole.at(w, (Affine(1), j)), whole.at(w, (Affine(), j))))

        def points(i: Index) -> None:
            im, re = line.at(i[0])
            w.store(out.buffer, out.place(place(i[0] * 2)), re)
            w.store(out.buffer, out.place(place(i[0] * 2 + 1)), im)

        w.nest((h,), points)

    def transform() -> None:
        _over(w, out.shape, axis, one)

    return _lowered(step, x, out, [line.roots.fits, _even(w, n)], transform)


def _root_of_double(line: LineTransforms, k: Affine) -> Pair:
    """``exp(-2 pi i k / n)`` for lines of ``n / 2`` points."""
    return line.roots.cosines.at(line.w, (k,)), line.roots.sines.at(line.w, (k,))


def _lines(w: LoopWriter, length: DimLike, dtype: np.dtype[Any], times: int = 1) -> LineTransforms:
    return LineTransforms(w, length, roots(w, length, times, real_of(dtype)), times)


def _even(w: LoopWriter, n: DimLike) -> Value:
    """1 if a length is even, else 0."""
    rest = w.let(catalog.remainder.op(), INDEX, w.position(Affine(n)), Literal(2, INDEX))
    return w.let(catalog.sub.op(), INDEX, Literal(1, INDEX), rest)


def _operand(step: Step) -> Stored:
    x = stored(step.w, step.operand(0))
    step.replace(0, x)
    return x


def _result(step: Step) -> Stored:
    return Stored.whole_of(step.w.buffer(step.out.dtype, step.out.shape))


def _over(w: LoopWriter, shape: Sequence[DimLike], axis: int, one: Callable[[Callable[[Affine], Index]], None]) -> None:
    """Write `one` for all lines along an axis; its argument maps a position on the line to an index."""

    def level(k: int, index: Index) -> None:
        if k == len(shape):
            one(lambda at: (*index[:axis], at, *index[axis + 1 :]))
        elif k == axis:
            level(k + 1, (*index, Affine()))
        else:
            with w.loop(shape[k]) as loop:
                level(k + 1, (*index, Affine.of(loop.index)))

    level(0, ())


def _parts(w: LoopWriter, x: Value) -> Pair:
    if x.dtype.kind != "c":
        return x, Literal(0.0, x.dtype)
    dtype = real_of(x.dtype)
    return w.let(catalog.real.op(), dtype, x), w.let(catalog.imag.op(), dtype, x)


def _store(w: LoopWriter, out: Stored, index: Index, value: Pair) -> None:
    w.store(out.buffer, out.place(index), w.let(catalog.complex.op(), out.dtype, *value))


def _lowered(step: Step, x: Stored, out: Stored, conditions: Sequence[Value], transform: Callable[[], None]) -> Stored:
    """The result by loops if all conditions are 1, else by the kernel."""
    w = step.w
    fits = conditions[0]
    for each in conditions[1:]:
        fits = w.let(catalog.bitwise_and.op(), INDEX, fits, each)
    if isinstance(fits, Literal) and not fits.value:
        call_into(step, [x], [out])
        return out
    with w.block() as library:
        call_into(step, [x], [out], recourse=True)
    with w.block() as loops:
        transform()
    if isinstance(fits, Literal):
        w.statements += loops
    else:
        w.statements.append(Switch(fits, (Case(tuple(library)), Case(tuple(loops)))))
    w.written(out.buffer)
    return out
