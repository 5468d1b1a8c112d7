"""Branches and loops over values in the memory of accelerators, whose raw arrays lack NumPy's methods.

The host waits for the device at every decision: which branch to take, and whether a loop continues.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tenferro_runtime.control_flow._bound import bound_steps
from tenferro_runtime.ir._program import Program
from tenferro_runtime.ir._sizes import occurring
from tenferro_tensor import Spec, Tensor, get_backend
from tenferro_tensor.functions import stack, zeros
from tenferro_tensor_core import DimLike, evaluate

Kernel = Callable[..., Any]


def reader(spec: Spec, number: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A function that converts a raw 0-d array to a Python number, as `number` does in main memory."""
    if spec.place.on_host:
        return number
    download = get_backend(spec.place.device.kind).download
    return lambda raw: number(download(raw))


def scan_elsewhere(
    ins: tuple[Spec, ...],
    outs: tuple[Spec, ...],
    *,
    body: Program,
    consts: int,
    carry: int,
    length: DimLike,
    reverse: bool,
) -> Kernel:
    """The loop of a scan on tensors: slices and stacks are kernels of the device."""
    count, rows, at = len(ins), outs[carry:], bound_steps((body,))
    names = tuple(occurring(body)) if body.symbolic else ()
    known = length.__class__ is int and not any(s.symbolic for s in (*ins, *outs)) and not names

    def run(*raws: Any) -> Any:
        n, shapes, *sizes = raws[count:] or (length, tuple([s.shape for s in rows]))
        numbers = dict(zip(names, sizes, strict=True))
        (step,) = at(tuple(sizes))
        sliced = [
            Tensor.wrap(raw, s if known else _with_numbers(s, n, numbers))
            for raw, s in zip(raws[consts + carry : count], ins[consts + carry :], strict=True)
        ]
        fixed, kept, made = raws[:consts], raws[consts : consts + carry], []
        for i in reversed(range(n)) if reverse else range(n):
            results = step(*fixed, *kept, *[x[i]._data for x in sliced])
            kept = tuple(results[:carry])
            made.append(results[carry:])
        if reverse:
            made.reverse()
        return (*kept, *[_stacked(s, [m[k] for m in made], shapes[k]) for k, s in enumerate(rows)])

    return run


def _with_numbers(spec: Spec, n: int, numbers: dict[str, int]) -> Spec:
    return spec.with_(shape=(n, *[evaluate(d, numbers) for d in spec.shape[1:]]))


def _stacked(spec: Spec, rows: Sequence[Any], shape: tuple[int, ...]) -> Any:
    if not rows:
        return zeros(shape, dtype=spec.dtype, device=spec.place.device)._data
    row = spec.with_(shape=shape[1:])
    return stack([Tensor.wrap(raw, row) for raw in rows])._data
