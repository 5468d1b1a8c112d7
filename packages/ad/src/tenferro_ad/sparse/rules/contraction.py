"""Contractions, reductions, and operations along an axis."""

from __future__ import annotations

from typing import Any, Final

from tenferro_ad.sparse._zeros import constant, contracted_with
from tenferro_runtime.extension import IndexEntries, IndexForm, IndexMap, SparsityStep, catalog, index_map

Parts = tuple[tuple[tuple[IndexMap | IndexEntries, ...] | None, ...], ...]


def _dot_general(step: SparsityStep) -> Parts:
    (cx, cy), (bx, by) = step.op.params["contract"], step.op.params["batch"]
    x, y = step.ins
    names_x: list[Any] = [("x", i) for i in range(x.ndim)]
    names_y: list[Any] = [("y", i) for i in range(y.ndim)]
    for i, j in (*zip(cx, cy, strict=True), *zip(bx, by, strict=True)):
        names_y[j] = names_x[i]
    free_x = [names_x[i] for i in range(x.ndim) if i not in cx and i not in bx]
    free_y = [names_y[j] for j in range(y.ndim) if j not in cy and j not in by]
    output = [*[names_x[i] for i in bx], *free_x, *free_y]
    (out,) = step.outs
    left, right = (constant(step, i) for i in (0, 1))
    of_x = None if right is None else contracted_with(right, names_y, names_x, output, out, x)
    of_y = None if left is None else contracted_with(left, names_x, names_y, output, out, y)
    return (((of_x or index_map(output, names_x, out, x),), (of_y or index_map(output, names_y, out, y),)),)


def _reduction(step: SparsityStep) -> Parts:
    (x,), (out,) = step.ins, step.outs
    names = range(x.ndim)
    return (((index_map([i for i in names if i not in step.op.params["axes"]], names, out, x),),),)


def _line(step: SparsityStep) -> IndexMap:
    (x,), (out,) = step.ins, step.outs
    names: list[Any] = [*range(x.ndim)]
    others = [("other", i) if i == step.op.params["axis"] else i for i in names]
    return index_map(names, others, out, x)


def _along(step: SparsityStep) -> Parts:
    """Each element depends on all elements along an axis."""
    return (((_line(step),),),)


def _cumulative(step: SparsityStep) -> Parts:
    """Each element depends on itself and the elements before it along an axis."""
    count, axis = step.ins[0].ndim, step.op.params["axis"]
    whole = _line(step)
    sign = -1 if step.op.params["reverse"] else 1
    order = IndexForm(0, ((axis, sign), (count, -sign)))
    return (((IndexMap(whole.extents, whole.output, whole.operand, (order,)),),),)


RULES: Final = {
    catalog.dot_general: _dot_general,
    **dict.fromkeys((catalog.reduce_sum, catalog.reduce_prod, catalog.reduce_max, catalog.reduce_min), _reduction),
    catalog.sort: _along,
    **dict.fromkeys(
        (catalog.cumsum, catalog.cumprod, catalog.cummax, catalog.cummin, catalog.cumlogsumexp), _cumulative
    ),
}
