"""Kernels of branches and loops on raw arrays: Python control flow around rendered programs.

They serve all sizes: a body with symbolic sizes is rendered once, and bound to the sizes of a call.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tenferro_runtime._generated_code import defined
from tenferro_runtime.control_flow._bound import bound_steps, sizes_in
from tenferro_runtime.control_flow._elsewhere import reader, scan_elsewhere
from tenferro_runtime.control_flow._in_place import copying, overwritten_by_while, overwritten_carries
from tenferro_runtime.control_flow.primitives import cond, scan, while_loop
from tenferro_runtime.ir._program import Program
from tenferro_tensor import REGISTRY, Spec
from tenferro_tensor_core import Dim, DimLike

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
    loop = _loop(consts, carry, count - consts - carry, rows, reverse)
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


def _scan_sizes(
    ins: Specs, outs: Specs, *, body: Program, consts: int, carry: int, length: DimLike, reverse: bool
) -> tuple[Any, ...]:
    return length, tuple([s.shape for s in outs[carry:]]), *sizes_in((body,))


def _loop(consts: int, carry: int, sliced: int, rows: Specs, reverse: bool) -> Kernel:
    """The loop of a scan, generated for its numbers of constants, carries, slices and rows."""
    fixed = [f"a{i}" for i in range(consts)]
    kept = [f"c{i}" for i in range(carry)]
    slices = [f"s{i}" for i in range(sliced)]
    made = [f"y{i}" for i in range(len(rows))]
    over = ["range(n - 1, -1, -1)" if reverse else "range(n)", *[f"x{s}[::-1]" if reverse else f"x{s}" for s in slices]]
    lines = [
        f"def loop(step, n, shapes, {_written([*fixed, *kept, *['x' + s for s in slices]])}):",
        *[f"    o{y} = empty(shapes[{k}], d{y})" for k, y in enumerate(made)],
        f"    for {', '.join(['i', *slices])} in {over[0] if not slices else f'zip({_written(over)})'}:",
        f"        ({_written([*kept, *made])}) = step({_written([*fixed, *kept, *slices])})",
        *[f"        o{y}[i] = {y}" for y in made],
        f"    return ({_written([*kept, *[f'o{y}' for y in made]])})",
    ]
    names: dict[str, Any] = {"empty": np.empty, **{f"d{y}": s.dtype for y, s in zip(made, rows, strict=True)}}
    return defined("loop", lines, names, "scan")


def _written(names: Sequence[str]) -> str:
    return "".join([f"{name}, " for name in names])


_make_cond.sizes = _cond_sizes  # type: ignore[attr-defined]
_make_while.sizes = _while_sizes  # type: ignore[attr-defined]
_make_scan.sizes = _scan_sizes  # type: ignore[attr-defined]
REGISTRY.kernel(cond, "*", _make_cond)
REGISTRY.kernel(while_loop, "*", _make_while)
REGISTRY.kernel(scan, "*", _make_scan)
