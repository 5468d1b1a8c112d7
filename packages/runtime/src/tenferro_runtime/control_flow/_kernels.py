"""Kernels of branches and loops on raw arrays of any backend: Python's own, around rendered programs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tenferro_runtime._execute import executable
from tenferro_runtime._program import Program
from tenferro_runtime.control_flow.primitives import cond, scan, while_loop
from tenferro_tensor import REGISTRY, Spec, tensor

Kernel = Callable[..., Any]


def _make_cond(ins: tuple[Spec, ...], outs: tuple[Spec, ...], *, branches: tuple[Program, ...]) -> Kernel:
    runs = [executable(branch) for branch in branches]
    last = len(runs) - 1

    def run(index: Any, *xs: Any) -> Any:
        return runs[min(max(int(index), 0), last)](*xs)

    return run


def _make_while(
    ins: tuple[Spec, ...], outs: tuple[Spec, ...], *, cond: Program, body: Program, consts: int, max_steps: int | None
) -> Kernel:
    goes_on, step = executable(cond), executable(body)

    def run(*xs: Any) -> Any:
        fixed, carry = xs[:consts], xs[consts:]
        left = -1 if max_steps is None else max_steps
        while left and goes_on(*fixed, *carry)[0]:
            carry = step(*fixed, *carry)
            left -= 1
        return carry

    return run


def _make_scan(
    ins: tuple[Spec, ...],
    outs: tuple[Spec, ...],
    *,
    body: Program,
    consts: int,
    carry: int,
    length: int,
    reverse: bool,
) -> Kernel:
    """A loop written out for its numbers of carries, slices and rows."""
    fixed = [f"a{i}" for i in range(consts)]
    kept = [f"c{i}" for i in range(carry)]
    slices = [f"s{i}" for i in range(len(ins) - consts - carry)]
    rows = [f"y{i}" for i in range(len(outs) - carry)]
    lists = [f"l{y}" for y in rows]
    over = ", ".join([f"x{s}[::-1]" if reverse else f"x{s}" for s in slices])
    if not slices:
        head = f"for _ in range({length}):"
    elif len(slices) == 1:
        head = f"for s0 in {over}:"
    else:
        head = f"for {', '.join(slices)} in zip({over}):"
    results = [*kept, *[f"stack{y}({name})" for y, name in zip(rows, lists)]]
    lines = [
        f"def loop({_listed([*fixed, *kept, *['x' + s for s in slices]])}):",
        *[f"    {name} = []" for name in lists],
        f"    {head}",
        f"        ({_listed([*kept, *rows])}) = step({_listed([*fixed, *kept, *slices])})",
        *[f"        {name}.append({y})" for name, y in zip(lists, rows)],
        *[f"    {name}.reverse()" for name in lists if reverse],
        f"    return ({_listed(results)})",
    ]
    names: dict[str, Any] = {"step": executable(body)}
    names.update({f"stack{y}": _stacker(spec) for y, spec in zip(rows, outs[carry:])})
    exec(compile("\n".join(lines), "<tenferro scan>", "exec"), names)
    return names["loop"]  # type: ignore[no-any-return]


def _listed(names: Sequence[str]) -> str:
    return "".join([f"{name}, " for name in names])


def _stacker(spec: Spec) -> Callable[[Sequence[Any]], Any]:
    """Makes one array of rows that were kept in a list."""
    shape: tuple[Any, ...] = spec.shape
    if shape[0] == 0:
        empty = tensor(np.empty(shape, spec.dtype), device=spec.place.device).data
        return lambda rows: empty
    if len(shape) == 1:
        host = spec.place.device.kind == "cpu"
        return (lambda rows: np.fromiter(rows, spec.dtype, shape[0])) if host else np.stack
    return lambda rows: np.concatenate(rows).reshape(shape)


REGISTRY.kernel(cond, "*", _make_cond)
REGISTRY.kernel(while_loop, "*", _make_while)
REGISTRY.kernel(scan, "*", _make_scan)
