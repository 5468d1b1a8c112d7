"""Kernels of branches and loops on raw arrays: Python's own, around rendered programs.

They serve all sizes: a body with open ones is rendered once, and bound to the sizes that a call brings.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, Final

import numpy as np

from tenferro_runtime._written import defined
from tenferro_runtime.control_flow._bound import bound_steps, sizes_in
from tenferro_runtime.control_flow._elsewhere import reader, scan_elsewhere
from tenferro_runtime.control_flow._in_place import copying, overwritten_by_while, overwritten_carries
from tenferro_runtime.control_flow._recurrence import recurrence
from tenferro_runtime.control_flow.primitives import cond, scan, while_loop
from tenferro_runtime.extension import Program
from tenferro_runtime.rendering._tiers import Tiered
from tenferro_runtime.running._execute import WATCH
from tenferro_tensor import REGISTRY, Spec
from tenferro_tensor_core import Dim, DimLike

LIST_MAX_ROW_BYTES: Final = 1024
"""Bytes of the longest row that is kept in a list until the loop is done."""

Kernel = Callable[..., Any]
Specs = tuple[Spec, ...]


def _make_cond(ins: Specs, outs: Specs, *, branches: tuple[Program, ...]) -> Kernel:
    count, last = len(ins), len(branches) - 1
    at, number = bound_steps(branches), reader(ins[0], int)

    def run(*raws: Any) -> Any:
        index, *xs = raws[:count]
        return at(raws[count:])[min(max(number(index), 0), last)](*xs)

    return run


def _cond_sizes(ins: Specs, outs: Specs, *, branches: tuple[Program, ...]) -> tuple[DimLike, ...]:
    return sizes_in(branches)


def _make_while(
    ins: Specs, outs: Specs, *, cond: Program, body: Program, consts: int, max_steps: DimLike | None
) -> Kernel:
    count, opened = len(ins), len(_open_bound(max_steps))
    sizes = opened + len(sizes_in((cond, body)))
    which = overwritten_by_while(cond, body, consts) if all(s.place.on_host for s in ins) else ()
    at, asked = bound_steps((cond, body), {1: which}), reader(cond.outputs[0], bool)
    own = copying(which, consts)

    def run(*raws: Any) -> Any:
        stop = len(raws) - sizes
        operands = own(raws[:count], raws[count:stop]) if which else raws[:count]
        fixed, carry = operands[:consts], operands[consts:]
        numbers = raws[stop:]
        goes_on, step = at(numbers[opened:])
        left = numbers[0] if opened else -1 if max_steps is None else max_steps
        while left and asked(goes_on(*fixed, *carry)[0]):
            carry = step(*fixed, *carry)
            left -= 1
        return carry

    return run


def _while_sizes(
    ins: Specs, outs: Specs, *, cond: Program, body: Program, consts: int, max_steps: DimLike | None
) -> tuple[DimLike, ...]:
    return *_open_bound(max_steps), *sizes_in((cond, body))


def _open_bound(max_steps: DimLike | None) -> tuple[DimLike, ...]:
    return (max_steps,) if isinstance(max_steps, Dim) else ()


def _make_scan(
    ins: Specs, outs: Specs, *, body: Program, consts: int, carry: int, length: DimLike, reverse: bool
) -> Kernel:
    if not all(s.place.on_host for s in (*ins, *outs)):
        return scan_elsewhere(ins, outs, body=body, consts=consts, carry=carry, length=length, reverse=reverse)
    count, rows = len(ins), outs[carry:]
    which = overwritten_carries(body, consts, carry)
    at = bound_steps((body,), {0: which})
    loop = _looped(_row_by_row(consts, carry, ins, rows, reverse, which), body, consts, carry, reverse)
    own = copying(which, consts)
    if length.__class__ is int and not body.symbolic and not any(s.symbolic for s in outs):
        (step,), shapes = at(()), tuple([s.shape for s in rows])
        if which:
            return lambda *raws: loop(step, length, shapes, *own(raws[:count], raws[count:]))
        return lambda *raws: loop(step, length, shapes, *raws)
    sizes = 2 + len(sizes_in((body,)))

    def run(*raws: Any) -> Any:
        stop = len(raws) - sizes
        n, shapes, *numbers = raws[stop:]
        operands = own(raws[:count], raws[count:stop]) if which else raws[:count]
        return loop(at(tuple(numbers))[0], n, shapes, *operands)

    return run


def _row_by_row(consts: int, carry: int, ins: Specs, rows: Specs, reverse: bool, which: tuple[int, ...]) -> Kernel:
    """The loop in the form that its rows call for; a row may be a view of what the next step writes over."""
    sliced = len(ins) - consts - carry
    copying = _loop(consts, carry, sliced, rows, reverse, listed=False)
    if which or not rows:
        return copying
    listing = _loop(consts, carry, sliced, rows, reverse, listed=True)
    if all(n.__class__ is int for s in rows for n in s.shape[1:]):
        return listing if in_a_list(rows, which) else copying
    itemsizes = [s.dtype.itemsize for s in rows]

    def loop(step: Any, n: int, shapes: tuple[tuple[int, ...], ...], *raws: Any) -> Any:
        longest = max([prod(shape[1:]) * size for shape, size in zip(shapes, itemsizes)])
        return (listing if longest <= LIST_MAX_ROW_BYTES else copying)(step, n, shapes, *raws)

    return loop


def in_a_list(rows: Specs, which: tuple[int, ...]) -> bool:
    """Whether rows of known extents are kept in lists, where the carries `which` are written over."""
    return bool(rows) and not which and all(_row_bytes(s) <= LIST_MAX_ROW_BYTES for s in rows)


def _row_bytes(spec: Spec) -> int:
    return prod([n if isinstance(n, int) else LIST_MAX_ROW_BYTES for n in spec.shape[1:]]) * spec.dtype.itemsize


def _looped(loop: Kernel, body: Program, consts: int, carry: int, reverse: bool) -> Kernel:
    """`loop`, until the backend has something that carries out all steps at once."""
    found = recurrence(body, consts, carry) if WATCH.get() is None else None
    if found is None:
        return loop
    tier = Tiered(loop, lambda: found.build(consts, reverse, loop))
    return lambda *args: tier.run(*args)


def _scan_sizes(
    ins: Specs, outs: Specs, *, body: Program, consts: int, carry: int, length: DimLike, reverse: bool
) -> tuple[Any, ...]:
    return length, tuple([s.shape for s in outs[carry:]]), *sizes_in((body,))


def _loop(consts: int, carry: int, sliced: int, rows: Specs, reverse: bool, *, listed: bool) -> Kernel:
    """The loop of a scan, written out for its numbers of constants, carries, slices and rows.

    Rows are copied into the stack at once, or kept in a list: that is faster for short ones, and takes their memory
    twice.
    """
    fixed = [f"a{i}" for i in range(consts)]
    kept = [f"c{i}" for i in range(carry)]
    slices = [f"s{i}" for i in range(sliced)]
    made = [f"y{i}" for i in range(len(rows))]
    order = "range(n - 1, -1, -1)" if reverse else "range(n)"
    over = [*[order] * (not listed), *[f"x{s}[::-1]" if reverse else f"x{s}" for s in slices]] or [order]
    each = [*["i"] * (not listed), *slices] or ["_"]
    head = f"for {', '.join(each)} in {over[0] if len(over) == 1 else 'zip(' + ', '.join(over) + ')'}:"
    if listed:
        before = [f"l{y} = []" for y in made]
        keep = [f"l{y}.append({y})" for y in made]
        after = [f"l{y}.reverse()" for y in made if reverse]
        results = [*kept, *[f"stack{y}(l{y}, shapes[{k}])" for k, y in enumerate(made)]]
    else:
        before = [f"o{y} = empty(shapes[{k}], d{y})" for k, y in enumerate(made)]
        keep, after = [f"o{y}[i] = {y}" for y in made], []
        results = [*kept, *[f"o{y}" for y in made]]
    lines = [
        f"def loop(step, n, shapes, {_written([*fixed, *kept, *['x' + s for s in slices]])}):",
        *[f"    {line}" for line in before],
        f"    {head}",
        f"        ({_written([*kept, *made])}) = step({_written([*fixed, *kept, *slices])})",
        *[f"        {line}" for line in keep],
        *[f"    {line}" for line in after],
        f"    return ({_written(results)})",
    ]
    names: dict[str, Any] = {"empty": np.empty}
    for y, spec in zip(made, rows, strict=True):
        names[f"stack{y}"], names[f"d{y}"] = _stacker(spec), spec.dtype
    return defined("loop", lines, names, "scan")


def _written(names: Sequence[str]) -> str:
    return "".join([f"{name}, " for name in names])


def _stacker(spec: Spec) -> Callable[[list[Any], tuple[int, ...]], Any]:
    """Makes one array of rows that were kept in a list."""
    scalars, dtype = spec.ndim == 1, spec.dtype

    def stack(rows: list[Any], shape: tuple[int, ...]) -> Any:
        if not rows:
            return np.empty(shape, dtype)
        if scalars:
            return np.fromiter(rows, dtype, shape[0])
        return np.concatenate(rows).reshape(shape)

    return stack


_make_cond.sizes = _cond_sizes  # type: ignore[attr-defined]
_make_while.sizes = _while_sizes  # type: ignore[attr-defined]
_make_scan.sizes = _scan_sizes  # type: ignore[attr-defined]
REGISTRY.kernel(cond, "*", _make_cond)
REGISTRY.kernel(while_loop, "*", _make_while)
REGISTRY.kernel(scan, "*", _make_scan)
