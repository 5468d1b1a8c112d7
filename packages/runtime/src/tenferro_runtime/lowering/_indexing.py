"""Lowering of indexing at computed positions: windows whose starts are numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from tenferro_runtime.lowering._lowering import Step, rule
from tenferro_runtime.lowering._values import (
    Formula,
    Index,
    Lowered,
    Numbers,
    Stored,
    copied,
    indices,
    is_small,
    kept,
)
from tenferro_runtime.lowering._views import mapped
from tenferro_runtime.lowering._writer import BOOL, LoopWriter
from tenferro_tensor import Op, catalog
from tenferro_tensor.loop_ir import INDEX, Affine, Case, Literal, Switch, Value
from tenferro_tensor_core import DimLike

COMBINING: Final[dict[str, Op]] = {
    "add": catalog.add.op(), "mul": catalog.mul.op(), "min": catalog.minimum.op(), "max": catalog.maximum.op(),
}  # fmt: skip
"""The op with which `scatter` combines an update and an element."""

PRECOMPUTE_MIN_COST: Final = 6
"""Cost above which the operand of a gather is computed first, because each element may be read many times."""

SEPARATE_MIN_COST: Final = 10
"""Cost above which indices and updates of a scatter are computed before it, in vector loops."""


def _starts(w: LoopWriter, vector: Lowered, batch: Index) -> list[Affine]:
    """The entries of an index vector."""
    return [w.index(vector.at(w, (*batch, Affine(k)))) for k in range(vector.shape[-1])]  # type: ignore[arg-type]


def _places(step: Step, first: int) -> list[Affine]:
    """The operands from `first`, which are indices along the axes."""
    return [step.w.index(step.operand(k, INDEX).at(step.w, ())) for k in range(first, len(step.eq.operands))]


def _moved(step: Step, x: Lowered, shape: Sequence[DimLike], starts: Sequence[Affine]) -> Lowered:
    """The window of `x` with the given starts."""
    return mapped(step, x, shape, lambda index: tuple([i + a for i, a in zip(index, starts, strict=True)]))


@rule(catalog.dynamic_slice)
def _dynamic_slice(step: Step) -> Lowered:
    x, sizes = step.operand(0), step.params["sizes"]
    found = [step.w.clamped(i, n - size) for i, n, size in zip(_places(step, 1), x.shape, sizes, strict=True)]
    return _moved(step, x, sizes, found)


@rule(catalog.gather)
def _gather(step: Step) -> Lowered:
    x, vectors = step.operand(0), step.operand(1)
    offsets, collapsed = step.params["offset_dims"], step.params["collapsed_dims"]
    along, sizes = step.params["start_index_map"], step.params["slice_sizes"]
    kept_axes = [d for d in range(len(x.shape)) if d not in collapsed]

    def starts(w: LoopWriter, batch: Index) -> list[Affine]:
        found = [Affine()] * len(x.shape)
        for d, i in zip(along, _starts(w, vectors, batch), strict=True):
            found[d] = w.clamped(i, x.shape[d] - sizes[d])
        return found

    if len(vectors.shape) == 1:
        window = _moved(step, x, sizes, starts(step.w, ()))
        return mapped(step, window, step.out.shape, lambda index: _spread(index, kept_axes, len(x.shape)))
    vectors = kept(step.w, vectors) if vectors.cost else vectors
    x = kept(step.w, x) if x.cost > PRECOMPUTE_MIN_COST and not is_small(step.out.shape) else x

    def at(w: LoopWriter, index: Index) -> Value:
        batch = tuple([i for k, i in enumerate(index) if k not in offsets])
        inside = _spread(tuple([index[k] for k in offsets]), kept_axes, len(x.shape))
        return x.at(w, tuple([a + i for a, i in zip(starts(w, batch), inside)]))

    return Formula(step.out.shape, x.dtype, at, [x, vectors], cost=3)


def _spread(index: Index, axes: Sequence[int], ndim: int) -> Index:
    """Extend an index of some axes to all axes, with 0 for the others."""
    found = [Affine()] * ndim
    for k, i in zip(axes, index, strict=True):
        found[k] = i
    return tuple(found)


@rule(catalog.dynamic_update_slice)
def _dynamic_update_slice(step: Step) -> Lowered:
    x, update = step.operand(0), step.operand(1)
    starts = [step.w.clamped(i, n - size) for i, n, size in zip(_places(step, 2), x.shape, update.shape, strict=True)]
    if isinstance(x, Numbers):
        return _updated_numbers(step, x, update, starts, None)
    to = step.target(0)
    update = _apart(step, step.operand(1), to)
    step.w.nest(update.shape, lambda i: step.w.store(to.buffer, to.place(_sum(starts, i)), update.at(step.w, i)))
    return to


@rule(catalog.update_slice)
def _update_slice(step: Step) -> Lowered:
    x, update = step.operand(0), step.operand(1)
    start, stride, adds = step.params["start"], step.params["stride"], step.params["mode"] == "add"

    def there(index: Index) -> Index:
        return tuple([i * by + a for i, by, a in zip(index, stride, start, strict=True)])

    if isinstance(x, Numbers):
        return _updated_slice_of_numbers(step, x, update, there, adds)
    if adds and step.overwritable(0) and not x.reads.isdisjoint(update.reads):
        # All sums are computed before any is stored, and then written like other updates.
        update, adds = _unchanging(step, _summed(mapped(step, x, update.shape, there), update)), False
        to = step.target(0)
    else:
        to = step.target(0)
        update = _apart(step, step.operand(1), to)

    def put(i: Index) -> None:
        place, value = to.place(there(i)), update.at(step.w, i)
        if adds:
            value = _sum_of(step.w, step.w.load(to.buffer, place), value)
        step.w.store(to.buffer, place, value)

    step.w.nest(update.shape, put)
    return to


def _sum_of(w: LoopWriter, x: Value, y: Value) -> Value:
    op = catalog.bitwise_or.op() if x.dtype.kind == "b" else catalog.add.op()
    return w.let(op, x.dtype, x, y)


def _summed(x: Lowered, y: Lowered) -> Lowered:
    return Formula(y.shape, x.dtype, lambda w, i: _sum_of(w, x.at(w, i), y.at(w, i)), [x, y], cost=1)


def _updated_slice_of_numbers(
    step: Step, x: Numbers, update: Lowered, there: Callable[[Index], Index], adds: bool
) -> Lowered:
    found = dict(zip(indices(x.shape), x.elements, strict=True))
    for i in indices(update.shape):
        value = update.at(step.w, i)
        found[there(i)] = _sum_of(step.w, found[there(i)], value) if adds else value
    return Numbers(x.shape, x.dtype, list(found.values()))


@rule(catalog.scatter)
def _scatter(step: Step) -> Lowered:
    w, mode = step.w, step.params["mode"]
    x, vectors, updates = step.operands
    inserted, along = step.params["inserted_dims"], step.params["scatter_dims"]
    windows = step.params["update_window_dims"]
    kept_axes = [d for d in range(len(x.shape)) if d not in inserted]
    batch_axes = [k for k in range(len(updates.shape)) if k not in windows]
    window = [updates.shape[k] for k in windows]
    extents: list[DimLike] = [1] * len(x.shape)
    for d, n in zip(kept_axes, window):
        extents[d] = n

    def starts(batch: Index) -> tuple[list[Affine], Value]:
        found, fits = [Affine()] * len(x.shape), Literal(True, BOOL)
        for d, i in zip(along, _starts(w, vectors, batch), strict=True):
            found[d] = i
            fits = w.both(fits, w.inside(i, x.shape[d] - extents[d]))  # type: ignore[assignment]
        return found, fits

    if isinstance(x, Numbers) and not batch_axes and mode == "set":
        found, fits = starts(())
        update = mapped(step, updates, extents, lambda i: tuple([i[d] for d in kept_axes]))
        return _updated_numbers(step, x, update, found, fits)
    to = step.target(0)
    vectors, updates = step.operand(1), _apart(step, step.operand(2), to)
    vectors = _apart(step, vectors, to)
    if batch_axes:  # these loops are scalar
        vectors, updates = (kept(w, v) if v.cost > SEPARATE_MIN_COST else v for v in (vectors, updates))

    def one(batch: Index) -> None:
        found, fits = starts(batch)
        with _where(w, fits):
            w.nest(window, lambda i: put(batch, found, i))

    def put(batch: Index, found: list[Affine], i: Index) -> None:
        places = to.place(_sum(found, _spread(i, kept_axes, len(x.shape))))
        of_batch, of_window = iter(batch), iter(i)
        value = updates.at(w, tuple([next(of_window if k in windows else of_batch) for k in range(len(updates.shape))]))
        if mode != "set":
            op = COMBINING[mode]
            if x.dtype.kind == "b":
                op = (catalog.bitwise_or if mode in ("add", "max") else catalog.bitwise_and).op()
            value = w.let(op, x.dtype, w.load(to.buffer, places), value)
        w.store(to.buffer, places, value)

    def level(k: int, batch: Index) -> None:
        if k == len(batch_axes):
            one(batch)
        else:
            with w.loop(updates.shape[batch_axes[k]]) as loop:
                level(k + 1, (*batch, Affine.of(loop.index)))

    level(0, ())
    return to


def _sum(starts: Sequence[Affine], index: Index) -> Index:
    return tuple([a + i for a, i in zip(starts, index, strict=True)])


def _apart(step: Step, x: Lowered, to: Stored) -> Lowered:
    """The update, with elements that do not change while it is written."""
    return _unchanging(step, x) if to.buffer.number in x.reads else x


def _unchanging(step: Step, x: Lowered) -> Lowered:
    """The elements as they are now."""
    return kept(step.w, x) if is_small(x.shape) else copied(step.w, x)


def _updated_numbers(step: Step, x: Lowered, update: Lowered, starts: Sequence[Affine], fits: Value | None) -> Lowered:
    """A small array in registers: each element is selected from the update or the old value."""
    w, elements = step.w, []
    for i in indices(x.shape):
        value = x.at(w, i)
        for j in indices(update.shape):
            here: Value = Literal(True, BOOL) if fits is None else fits
            for a, b, start in zip(i, j, starts, strict=True):
                same = w.let(catalog.eq.op(), BOOL, w.position(start), w.position(a - b))
                here = w.both(here, same)
            value = w.let(catalog.select.op(), x.dtype, here, update.at(w, j), value)
        elements.append(value)
    return Numbers(x.shape, x.dtype, elements)


@contextmanager
def _where(w: LoopWriter, condition: Value) -> Iterator[None]:
    """Context for statements that run only if a condition holds."""
    if isinstance(condition, Literal) and condition.value:
        yield
        return
    with w.block() as inside:
        yield
    number = w.let(catalog.convert.op(dtype=INDEX), INDEX, condition)
    w.statements.append(Switch(number, (Case(()), Case(tuple(inside)))))
