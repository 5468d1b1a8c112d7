"""`kernel_function`: a `KernelIR` as loop nests."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from typing import Any, Final

import numpy as np

from tenferro_tensor.catalog import arithmetic
from tenferro_tensor.device_model import Access, KernelIR, Literal
from tenferro_tensor.loop_ir import (
    INDEX,
    Affine,
    Buffer,
    Carried,
    For,
    Let,
    Load,
    LoopFunction,
    Order,
    Reg,
    Role,
    Statement,
    Store,
    Value,
)
from tenferro_tensor_core import DimLike, UnsupportedError, dim

JOINED: Final = {
    "sum": arithmetic.add.op(),
    "prod": arithmetic.mul.op(),
    "max": arithmetic.maximum.op(),
    "min": arithmetic.minimum.op(),
}
"""The combining op of each kind of reduction."""


def extents_of(rank: int, reduced: int) -> tuple[list[DimLike], list[DimLike]]:
    """Symbolic extents of the kept and of the reduced axes."""
    return [dim(f"e{a}") for a in range(rank)], [dim(f"r{a}") for a in range(reduced)]


def strides_of(access: Access, operand: int, extents: Sequence[DimLike]) -> list[DimLike]:
    """Strides of an access over the whole space, in elements; symbolic if it is strided."""
    if access is Access.STRIDED:
        return [dim(f"s{operand}_{a}") for a in range(len(extents))]
    found: list[DimLike] = []
    step: DimLike = 0 if access is Access.FIXED else 1
    for extent in reversed(extents):
        found.insert(0, step)
        step = step * extent
    return found


def kernel_function(kernel: KernelIR, rank: int, reduced: int, strides: Sequence[Sequence[DimLike]]) -> LoopFunction:
    """The kernel over a space of symbolic extents, with contiguous results.

    Args:
        kernel: what to compute.
        rank: number of axes, for a reduction of the kept ones.
        reduced: number of reduced axes.
        strides: for each input, over all axes, in elements.

    Returns:
        The loop function.

    Raises:
        UnsupportedError: it locates extremes, or its results are not contiguous.
    """
    _require_values_in_order(kernel)
    numbers = count()

    def new(dtype: np.dtype[Any]) -> Reg:
        return Reg(next(numbers), dtype)

    kept, gone = extents_of(rank, reduced)
    axes = [new(INDEX) for _ in (*kept, *gone)]
    inputs = [Buffer(k, o.dtype, (1,), Role.INPUT) for k, o in enumerate(kernel.inputs)]
    outputs = [Buffer(len(inputs) + k, o.dtype, tuple(kept), Role.OUTPUT) for k, o in enumerate(kernel.written)]
    body: list[Statement] = []
    values: list[Value] = []
    for buffer, own in zip(inputs, strides, strict=True):
        values.append(new(buffer.dtype))
        body.append(Load(values[-1], buffer, _place(axes, own)))  # type: ignore[arg-type]
    for line, dtype in zip(kernel.lines, kernel.dtypes[len(inputs) :], strict=True):
        if isinstance(line, Literal):
            values.append(line)
            continue
        result = new(dtype)
        body.append(Let(result, line.op, tuple([values[i] for i in line.args])))
        values.append(result)
    written = [values[i] for i in kernel.outputs]
    if kernel.reduction is not None:
        kind = kernel.reduction.kind
        loops = list(zip(axes[rank:], gone, strict=True))
        firsts: list[Value] = [_neutral(kind, x.dtype) for x in written]
        loop, written = _reduced(kind, loops, firsts, body, written, new)
        body = [loop]
    place = _place(axes[:rank], strides_of(Access.UNIT, 0, kept))
    body += [Store(buffer, place, x) for buffer, x in zip(outputs, written, strict=True)]
    for index, extent in reversed(list(zip(axes[:rank], kept, strict=True))):
        body = [For(index, extent, tuple(body), (), Order.ANY)]
    symbolic = [str(d) for own in strides for d in own if not isinstance(d, int) and str(d).startswith("s")]
    sizes = (*map(str, kept), *map(str, gone), *symbolic)
    return LoopFunction(sizes, tuple(inputs), tuple(outputs), (), (), tuple(body))


def _place(axes: Sequence[Reg], strides: Sequence[DimLike]) -> Affine:
    total = Affine()
    for index, by in zip(axes, strides, strict=True):
        total += Affine.of(index) * by
    return total


def _reduced(
    kind: str, loops: Sequence[tuple[Reg, DimLike]], firsts: Sequence[Value], body: Sequence[Statement],
    terms: Sequence[Value], new: Callable[[np.dtype[Any]], Reg],
) -> tuple[For, list[Value]]:  # fmt: skip
    """Nested grouped loops that combine terms, and their results."""
    (index, extent), *inner = loops
    insides = [new(x.dtype) for x in terms]
    followings: list[Value]
    if inner:
        loop, followings = _reduced(kind, inner, insides, body, terms, new)
        statements: tuple[Statement, ...] = (loop,)
    else:
        results = [new(x.dtype) for x in terms]
        pairs = zip(results, insides, terms, strict=True)
        statements = (*body, *[Let(result, JOINED[kind], (a, x)) for result, a, x in pairs])
        followings = list(results)
    found = [new(x.dtype) for x in terms]
    carries = tuple(map(Carried, insides, firsts, followings, found))
    return For(index, extent, statements, carries, Order.GROUPED), list(found)


def _neutral(kind: str, dtype: np.dtype[Any]) -> Literal:
    """Neutral element of a reduction."""
    if kind in ("sum", "prod"):
        return Literal(dtype.type(kind == "prod").item(), dtype)
    if dtype.kind == "b":
        return Literal(kind == "min", dtype)
    if dtype.kind == "f":
        return Literal(float("-inf" if kind == "max" else "inf"), dtype)
    info = np.iinfo(dtype)
    return Literal(int(info.min if kind == "max" else info.max), dtype)


def _require_values_in_order(kernel: KernelIR) -> None:
    if kernel.reduction is not None and kernel.reduction.kind not in JOINED:
        raise UnsupportedError(
            f"{kernel.reduction.kind} has no form in a kernel of a GPU; end the kernel before it and run it on CuPy",
            reduction=kernel.reduction.kind,
        )
    if any(access is not Access.UNIT for access in kernel.writes):
        raise UnsupportedError("kernels of a GPU write results in order; leave the access of outputs out")
