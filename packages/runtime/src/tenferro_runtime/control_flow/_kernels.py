"""Kernels of branches and loops on raw arrays: Python's own, around rendered programs.

They serve all sizes: a body with open ones is rendered once, and bound to the sizes that a call brings.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tenferro_runtime.control_flow._bound import bound_steps, sizes_in
from tenferro_runtime.control_flow._elsewhere import reader, scan_elsewhere
from tenferro_runtime.control_flow._recurrence import recurrence
from tenferro_runtime.control_flow.primitives import cond, scan, while_loop
from tenferro_runtime.extension import Program
from tenferro_runtime.rendering._tiers import Tiered
from tenferro_runtime.running._execute import WATCH
from tenferro_tensor import REGISTRY, Spec
from tenferro_tensor_core import DimLike

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


def _make_while(ins: Specs, outs: Specs, *, cond: Program, body: Program, consts: int, max_steps: int | None) -> Kernel:
    count = len(ins)
    at, asked = bound_steps((cond, body)), reader(cond.outputs[0], bool)

    def run(*raws: Any) -> Any:
        fixed, carry = raws[:consts], raws[consts:count]
        goes_on, step = at(raws[count:])
        left = -1 if max_steps is None else max_steps
        while left and asked(goes_on(*fixed, *carry)[0]):
            carry = step(*fixed, *carry)
            left -= 1
        return carry

    return run


def _while_sizes(
    ins: Specs, outs: Specs, *, cond: Program, body: Program, consts: int, max_steps: int | None
) -> tuple[DimLike, ...]:
    return sizes_in((cond, body))


def _make_scan(
    ins: Specs, outs: Specs, *, body: Program, consts: int, carry: int, length: DimLike, reverse: bool
) -> Kernel:
    if not all(s.place.on_host for s in (*ins, *outs)):
        return scan_elsewhere(ins, outs, body=body, consts=consts, carry=carry, length=length, reverse=reverse)
    count, rows = len(ins), outs[carry:]
    at = bound_steps((body,))
    loop = _looped(_loop(consts, carry, count - consts - carry, rows, reverse), body, consts, carry, reverse)
    if length.__class__ is int and not body.symbolic and not any(s.symbolic for s in outs):
        (step,), shapes = at(()), tuple([s.shape for s in rows])
        return lambda *raws: loop(step, length, shapes, *raws)

    def run(*raws: Any) -> Any:
        n, shapes, *sizes = raws[count:]
        return loop(at(tuple(sizes))[0], n, shapes, *raws[:count])

    return run


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


def _loop(consts: int, carry: int, sliced: int, rows: Specs, reverse: bool) -> Kernel:
    """The loop of a scan, written out for its numbers of constants, carries, slices and rows."""
    fixed = [f"a{i}" for i in range(consts)]
    kept = [f"c{i}" for i in range(carry)]
    slices = [f"s{i}" for i in range(sliced)]
    made = [f"y{i}" for i in range(len(rows))]
    over = ", ".join([f"x{s}[::-1]" if reverse else f"x{s}" for s in slices])
    if not slices:
        head = "for _ in range(n):"
    elif len(slices) == 1:
        head = f"for s0 in {over}:"
    else:
        head = f"for {', '.join(slices)} in zip({over}):"
    results = [*kept, *[f"stack{y}(l{y}, shapes[{i}])" for i, y in enumerate(made)]]
    lines = [
        f"def loop(step, n, shapes, {_listed([*fixed, *kept, *['x' + s for s in slices]])}):",
        *[f"    l{y} = []" for y in made],
        f"    {head}",
        f"        ({_listed([*kept, *made])}) = step({_listed([*fixed, *kept, *slices])})",
        *[f"        l{y}.append({y})" for y in made],
        *[f"    l{y}.reverse()" for y in made if reverse],
        f"    return ({_listed(results)})",
    ]
    names: dict[str, Any] = {f"stack{y}": _stacker(spec) for y, spec in zip(made, rows, strict=True)}
    exec(compile("\n".join(lines), "<tenferro scan>", "exec"), names)
    return names["loop"]  # type: ignore[no-any-return]


def _listed(names: Sequence[str]) -> str:
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
