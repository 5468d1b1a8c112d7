"""Lowering of sorting and searching: small arrays by counting smaller elements, vectors by bisection.

NaN comes last in both orders, and equal elements keep their order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tenferro_runtime.lowering._calls import call, call_into
from tenferro_runtime.lowering._lowering import Step, rule
from tenferro_runtime.lowering._values import Formula, Index, Lowered, Stored, count, is_small, kept, stored
from tenferro_runtime.lowering._writer import BOOL, LoopWriter
from tenferro_tensor import Primitive, catalog
from tenferro_tensor.loop_ir import INDEX, Affine, Case, Literal, Order, Switch, Value
from tenferro_tensor_core import DimLike, decide, dim_min, floordiv

MAX_COMPARISONS: Final = 8192
"""Largest number of comparisons, of each element with its whole line, for sorting without a kernel call."""

MAX_HALVINGS: Final = 40
"""Steps of a bisection; no extent has more binary digits."""


@rule(catalog.sort)
def _sort(step: Step) -> list[Lowered]:
    return _ordered(step, lambda x, index, at: x)


@rule(catalog.argsort)
def _argsort(step: Step) -> list[Lowered]:
    return _ordered(step, lambda x, index, at: step.w.position(at))


def _ordered(step: Step, element: Callable[[Value, Index, Affine], Value]) -> list[Lowered]:
    """The results of `element`, in sorted order."""
    axis, dtype = step.params["axis"], step.operand(0).dtype
    comparisons = count(step.out.shape) * step.out.shape[axis]
    fits = decide(comparisons, "<=", MAX_COMPARISONS)
    if dtype.kind not in "iuf" or fits is False or (step.lowering.exact and step.op.primitive is catalog.sort):
        return call(step)
    w, x = step.w, stored(step.w, step.operand(0))
    step.replace(0, x)
    out = Stored.whole_of(w.buffer(step.out.dtype, step.out.shape))
    with w.block() as counted:
        _count(step, x, out, element)
    if fits:
        w.statements += counted
    else:
        with w.block() as library:
            call_into(step, [x], [out])
        short = w.let(catalog.le.op(), BOOL, w.position(Affine(comparisons)), Literal(MAX_COMPARISONS, INDEX))
        number = w.let(catalog.convert.op(dtype=INDEX), INDEX, short)
        w.statements.append(Switch(number, (Case(tuple(library)), Case(tuple(counted)))))
    w.written(out.buffer)
    return [out]


def _count(step: Step, x: Stored, out: Stored, element: Callable[[Value, Index, Affine], Value]) -> None:
    """Write each line in sorted order: the position of an element is the number of elements before it."""
    w, axis, before = step.w, step.params["axis"], _before(step)
    n, others = x.shape[axis], [d for k, d in enumerate(x.shape) if k != axis]
    places = Stored.whole_of(w.buffer(INDEX, x.shape))

    def at(line: Index, k: Affine) -> Index:
        return (*line[:axis], k, *line[axis:])

    def place(index: Index) -> None:
        i, line = index[axis], (*index[:axis], *index[axis + 1 :])
        here = x.at(w, index)
        with w.loop(n, [Literal(0, INDEX)], Order.GROUPED) as loop:
            j = Affine.of(loop.index)
            other = x.at(w, at(line, j))
            earlier = w.let(catalog.lt.op(), BOOL, w.position(j), w.position(i))
            after = w.let(catalog.bitwise_not.op(), BOOL, before(w, here, other))
            equal = w.let(catalog.bitwise_and.op(), BOOL, earlier, after)
            found = w.let(catalog.bitwise_or.op(), BOOL, before(w, other, here), equal)
            one = w.let(catalog.convert.op(dtype=INDEX), INDEX, found)
            loop.following = (w.let(catalog.add.op(), INDEX, loop.inside[0], one),)
        w.store(places.buffer, places.place(index), loop.results[0])

    def move(line: Index) -> None:
        with w.loop(n) as loop:
            i = Affine.of(loop.index)
            to = w.index(places.at(w, at(line, i)))
            value = element(x.at(w, at(line, i)), line, i)
            w.store(out.buffer, out.place(at(line, to)), value)

    w.nest(x.shape, place)

    def level(k: int, line: Index) -> None:
        if k == len(others):
            move(line)
            return
        with w.loop(others[k]) as loop:
            level(k + 1, (*line, Affine.of(loop.index)))

    level(0, ())


Before = Callable[[LoopWriter, Value, Value], Value]


def _before(step: Step) -> Before:
    """The function that decides whether an element precedes a different one."""
    return _comes(catalog.gt if step.params["descending"] else catalog.lt)


def _comes(compare: Primitive) -> Before:
    def before(w: LoopWriter, a: Value, b: Value) -> Value:
        first = w.let(compare.op(), BOOL, a, b)
        if a.dtype.kind != "f":
            return first
        odd, known = w.let(catalog.is_nan.op(), BOOL, b), w.let(catalog.eq.op(), BOOL, a, a)
        return w.let(catalog.bitwise_or.op(), BOOL, first, w.let(catalog.bitwise_and.op(), BOOL, odd, known))

    return before


@rule(catalog.searchsorted)
def _searchsorted(step: Step) -> Lowered:
    """Bisection for each value where it is read, with the same number of steps for all values, so that it vectorizes.

    The position is between ``low`` and ``low + length``, and each step halves the length.
    """
    line, values = kept(step.w, step.operand(0)), step.operand(1)
    step.replace(0, line)
    left, less, n = step.params["side"] == "left", _comes(catalog.lt), line.shape[0]

    def at(w: LoopWriter, index: Index) -> Value:
        value = values.at(w, index)
        if is_small(line.shape):
            return _counted(w, line, value, left)
        with w.loop(_halvings(n), [Literal(0, INDEX), w.position(Affine(n))]) as loop:
            low, length = loop.inside
            longer = w.let(catalog.add.op(), INDEX, length, Literal(1, INDEX))
            half = w.let(catalog.shift_right.op(), INDEX, longer, Literal(1, INDEX))
            after = w.let(catalog.add.op(), INDEX, low, half)
            element = line.at(w, (w.index(after) - 1,))
            right = less(w, element, value) if left else w.let(catalog.bitwise_not.op(), BOOL, less(w, value, element))
            loop.following = (
                w.let(catalog.select.op(), INDEX, right, after, low),
                w.let(catalog.sub.op(), INDEX, length, half),
            )
        return loop.results[0]

    return Formula(step.out.shape, INDEX, at, [line, values], 8 * _digits(n))


def _counted(w: LoopWriter, line: Lowered, value: Value, left: bool) -> Value:
    """The number of elements of a small vector that precede a value."""
    less, total = _comes(catalog.lt), Literal(0, INDEX)
    found: Value = total
    for k in range(int(line.shape[0])):  # type: ignore[arg-type]
        element = line.at(w, (Affine(k),))
        before = less(w, element, value) if left else w.let(catalog.bitwise_not.op(), BOOL, less(w, value, element))
        found = w.let(catalog.add.op(), INDEX, found, w.let(catalog.convert.op(dtype=INDEX), INDEX, before))
    return found


def _halvings(n: DimLike) -> DimLike:
    """Number of halvings of a length, rounded down, until it is 0: its number of binary digits."""
    if isinstance(n, int):
        return n.bit_length()
    found: DimLike = 0
    for k in range(MAX_HALVINGS):
        found = found + dim_min(floordiv(n, 1 << k), 1)
    return found


def _digits(n: DimLike) -> int:
    return n.bit_length() if isinstance(n, int) else MAX_HALVINGS // 2
