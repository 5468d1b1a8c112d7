"""Calls, branches and loops; a loop that counts to a known bound becomes a `fori_loop`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

import tenferro_runtime as tr
from tenferro_runtime.extension import catalog
from tenferro_tensor_core import int32
from tenferro_xla.importing._counting import counting
from tenferro_xla.importing._reader import Handler, ModuleReader, ValueScope, results_of
from tenferro_xla.importing._values import Splat, Value, arrays, as_array


def _call(reader: ModuleReader, op: Any, xs: list[Value], scope: ValueScope) -> Sequence[Value]:
    return reader.run(op.attributes["callee"].value, xs)


def _composite(reader: ModuleReader, op: Any, xs: list[Value], scope: ValueScope) -> Sequence[Value]:
    handler = reader.handlers.get(op.attributes["name"].value)
    if handler is None:
        return reader.run(op.attributes["decomposition"].value, xs)
    return results_of(handler(reader, op, xs, scope))


def _case(reader: ModuleReader, op: Any, xs: list[Value], scope: ValueScope) -> Sequence[Value]:
    """An index out of range selects the last branch."""
    blocks = [region.blocks[0] for region in op.regions]
    last = len(blocks) - 1
    index = xs[0]
    if isinstance(index, Splat):
        chosen = int(index.number)
        return reader.run_block(blocks[chosen if 0 <= chosen <= last else last], (), scope)
    index = catalog.convert(index, dtype=int32)
    chosen = catalog.select(catalog.lt(index, 0), last, index)
    branches = [lambda block=block: tuple(arrays(reader.run_block(block, (), scope))) for block in blocks]
    return tuple(tr.switch(chosen, branches))


def _if(reader: ModuleReader, op: Any, xs: list[Value], scope: ValueScope) -> Sequence[Value]:
    yes, no = (region.blocks[0] for region in op.regions)
    pred = xs[0]
    if isinstance(pred, Splat):
        return reader.run_block(yes if pred.number else no, (), scope)
    branches = [lambda block=block: tuple(arrays(reader.run_block(block, (), scope))) for block in (yes, no)]
    return tuple(tr.cond(pred, *branches))


def _while(reader: ModuleReader, op: Any, xs: list[Value], scope: ValueScope) -> Sequence[Value]:
    test, body = (region.blocks[0] for region in op.regions)
    found = counting(reader, test, body, xs)
    carried = [i for i in range(len(xs)) if i not in found.fixed]

    def with_fixed(carry: Sequence[Any], index: Any = None) -> list[Value]:
        values = list(xs)
        for i, value in zip(carried, carry, strict=True):
            values[i] = value
        if index is not None:
            for i, (start, step) in found.indices.items():
                values[i] = _index_value(index, start - step * found.first, step, xs[i].spec.dtype)
        return values

    if found.steps is None:
        carried = [i for i in range(len(xs)) if i not in found.fixed]

        def goes_on(carry: Sequence[Any]) -> Any:
            return as_array(reader.run_block(test, with_fixed(carry), scope)[0])

        def step(carry: Sequence[Any]) -> Any:
            results = reader.run_block(body, with_fixed(carry), scope)
            return tuple([as_array(results[i]) for i in carried])

        last = tr.while_loop(goes_on, step, tuple([as_array(xs[i]) for i in carried]))
        return _merged(xs, carried, last)
    carried = [i for i in carried if i not in found.indices]

    def counted(index: Any, carry: Sequence[Any]) -> Any:
        results = reader.run_block(body, with_fixed(carry, index), scope)
        return tuple([as_array(results[i]) for i in carried])

    init = tuple([as_array(xs[i]) for i in carried])
    last = tr.fori_loop(found.first, found.first + found.steps, counted, init) if carried else ()
    merged = list(_merged(xs, carried, last))
    for i, (start, step_) in found.indices.items():
        merged[i] = Splat(np.asarray(start + step_ * found.steps, xs[i].spec.dtype), xs[i].spec)
    return merged


def _index_value(index: Any, start: int, step: int, dtype: np.dtype[Any]) -> Any:
    if step != 1:
        index = index * step
    if start:
        index = index + start
    return catalog.convert(index, dtype=dtype)


def _merged(xs: Sequence[Value], carried: Sequence[int], last: Sequence[Any]) -> Sequence[Value]:
    merged = list(xs)
    for i, value in zip(carried, last, strict=True):
        merged[i] = value
    return merged


CONTROL_FLOW: Final[dict[str, Handler]] = {
    "func.call": _call,
    "call": _call,
    "stablehlo.composite": _composite,
    "stablehlo.case": _case,
    "stablehlo.if": _if,
    "stablehlo.while": _while,
}
"""Calls, branches and loops."""
