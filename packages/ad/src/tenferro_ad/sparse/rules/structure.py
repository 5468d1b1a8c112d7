"""Shape and order: each element of the output is one element of an operand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from tenferro_runtime.control_flow import rows
from tenferro_runtime.extension import IndexForm, IndexMap, SparsityStep, Spec, catalog, index_map

Parts = tuple[tuple[tuple[IndexMap, ...] | None, ...], ...]


def affine(x: Spec, offsets: Sequence[Any], steps: Sequence[Any]) -> tuple[IndexForm, ...]:
    """Indices along the axes of a spec, each an affine function of its own label."""
    return tuple([IndexForm(a, ((k, s),)) for k, (a, s) in enumerate(zip(offsets, steps, strict=True))])


def labels(x: Spec) -> tuple[IndexForm, ...]:
    """A label for each axis."""
    return affine(x, (0,) * x.ndim, (1,) * x.ndim)


def _broadcast(step: SparsityStep) -> Parts:
    (x,), (out,) = step.ins, step.outs
    return (((index_map(range(out.ndim), step.op.params["dims"], out, x),),),)


def _transpose(step: SparsityStep) -> Parts:
    (x,), (out,) = step.ins, step.outs
    return (((index_map(step.op.params["permutation"], range(x.ndim), out, x),),),)


def _transfer(step: SparsityStep) -> Parts:
    (x,) = step.ins
    return (((IndexMap(x.shape, labels(x), labels(x)),),),)


def _reverse(step: SparsityStep) -> Parts:
    (x,) = step.ins
    axes = step.op.params["axes"]
    offsets = [n - 1 if i in axes else 0 for i, n in enumerate(x.shape)]
    steps = [-1 if i in axes else 1 for i in range(x.ndim)]
    return (((IndexMap(x.shape, labels(x), affine(x, offsets, steps)),),),)


def _slice(step: SparsityStep) -> Parts:
    (x,), (out,) = step.ins, step.outs
    p = step.op.params
    return (((IndexMap(out.shape, labels(out), affine(x, p["start"], p["stride"])),),),)


def _update_slice(step: SparsityStep) -> Parts:
    x, update = step.ins
    p = step.op.params
    there = IndexMap(update.shape, affine(x, p["start"], p["stride"]), labels(update))
    kept = [IndexMap(x.shape, labels(x), labels(x))]
    if p["mode"] == "set" and all(s == 1 for s in p["stride"]):
        kept = _outside(x, p["start"], update)
    return ((tuple(kept), (there,)),)


def _outside(x: Spec, start: Sequence[Any], update: Spec) -> list[IndexMap]:
    """The elements before and after a block, along each axis on which it is smaller than the whole."""
    found = []
    for k, (n, a, m) in enumerate(zip(x.shape, start, update.shape, strict=True)):
        if m == n:
            continue
        for first, count in ((0, a), (a + m, n - a - m)):
            extents = (*x.shape[:k], count, *x.shape[k + 1 :])
            forms = affine(x, [first if i == k else 0 for i in range(x.ndim)], (1,) * x.ndim)
            found.append(IndexMap(extents, forms, forms))
    return found


def _pad(step: SparsityStep) -> Parts:
    x, _value = step.ins
    (out,) = step.outs
    p = step.op.params
    rows = affine(out, p["low"], [gap + 1 for gap in p["interior"]])
    inside = []
    for form, n, low, high in zip(rows, out.shape, p["low"], p["high"], strict=True):
        # A negative low or high takes elements away.
        if low.__class__ is not int or low < 0:
            inside.append(form)
        if high.__class__ is not int or high < 0:
            inside.append(IndexForm(n - 1 - form.offset, tuple([(k, -s) for k, s in form.terms])))
    whole = IndexMap(out.shape, labels(out), ())
    return (((IndexMap(x.shape, rows, labels(x), tuple(inside)),), (whole,)),)


def _concatenate(step: SparsityStep) -> Parts:
    (out,) = step.outs
    axis = step.op.params["axis"]
    found, first = [], 0
    for x in step.ins:
        rows = affine(out, [first if i == axis else 0 for i in range(x.ndim)], (1,) * x.ndim)
        found.append((IndexMap(x.shape, rows, labels(x)),))
        first = first + x.shape[axis]
    return (tuple(found),)


def _rows(step: SparsityStep) -> Parts:
    found = []
    for k, out in enumerate(step.outs):
        operand = (IndexForm(k), *labels(out))
        found.append(((IndexMap(out.shape, labels(out), operand),),))
    return tuple(found)


RULES: Final = {
    rows: _rows,
    catalog.broadcast_in_dim: _broadcast,
    catalog.transpose: _transpose,
    catalog.transfer: _transfer,
    catalog.reverse: _reverse,
    catalog.slice_: _slice,
    catalog.update_slice: _update_slice,
    catalog.pad: _pad,
    catalog.concatenate: _concatenate,
}
