"""Fused regions: element-wise steps of programs that cannot be one function, as a separate `LoopFunction`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

import numpy as np

from tenferro_cpu.native.machine._jit import compiles_programs
from tenferro_cpu.native.operations._ops import rule_for
from tenferro_tensor import Op, catalog
from tenferro_tensor.backends import NativeProgram
from tenferro_tensor.device_model import Later, Literal, Region, expansion, in_rows
from tenferro_tensor.loop_ir import INDEX, Affine, Buffer, For, Let, Load, LoopFunction, Order, Reg, Role, Store
from tenferro_tensor_core import Dim, DimLike, UnsupportedError, dim, is_inexact


class Native(Protocol):
    """Compiles a function, as specified by `Backend.whole`."""

    def __call__(self, function: LoopFunction, *, bare: bool) -> NativeProgram | None: ...


Thin = tuple[tuple[bool, ...], ...]
"""For each operand, which of its axes have extent 1 in a larger space."""


def fuses(op: Op, operands: tuple[np.dtype[Any] | Literal, ...], result: np.dtype[Any]) -> bool:
    """Whether an op may be part of a region, independently of the processor."""
    if not compiles_programs() or not op.primitive.elementwise:
        return False
    dtypes = tuple([o.dtype if isinstance(o, Literal) else o for o in operands])
    if op.primitive is catalog.convert and is_inexact(dtypes[0]) and result.kind in "iu":
        return False  # out of range NumPy's own conversion decides, which differs between sizes and processors
    return rule_for(op.primitive, dtypes, True) is not None or expansion(op, *operands) is not None


class NativeRegion:
    """A region for arrays of any extents, compiled in the background for each broadcasting pattern.

    Args:
        region: what to compute.
        fallback: computes the same op by op.
        later: the background queue.
        native: compiles a function.
    """

    def __init__(self, region: Region, fallback: Callable[..., Any], later: Later, native: Native) -> None:
        self.region: Region = region
        self.fallback: Callable[..., Any] = fallback
        self.later: Later = later
        self.native: Native = native
        self.forms: dict[Thin, NativeProgram | None] = {}

    def __call__(self, *raws: Any) -> Any:
        region = self.region
        if region.ordered and not all(map(in_rows, raws)):
            return self.fallback(*raws)
        extents = [1] * region.rank
        for axes, x in zip(region.axes, raws, strict=True):
            for axis, n in zip(axes, x.shape, strict=True):
                extents[axis] = n if extents[axis] == 1 else extents[axis]
        thin = tuple(
            [
                tuple([n != extents[axis] for axis, n in zip(axes, x.shape, strict=True)])
                for axes, x in zip(region.axes, raws, strict=True)
            ]
        )
        form = self.forms.get(thin)
        if form is not None:
            return form.run(tuple(extents), *raws)
        if thin not in self.forms:
            self.forms[thin] = None
            self.later(partial(self._make, thin))
        return self.fallback(*raws)

    def _make(self, thin: Thin) -> None:
        try:
            alone = len(self.region.kernel.outputs) == 1
            self.forms[thin] = self.native(loops_of(self.region, thin), bare=alone)
        except UnsupportedError:
            pass  # op by op for ever


def loops_of(region: Region, thin: Thin) -> LoopFunction:
    """The region as a loop nest over its space, whose extents are the sizes of the function."""
    kernel, names = region.kernel, tuple([f"d{axis}" for axis in range(region.rank)])
    sizes: list[DimLike] = [dim(name) for name in names]
    index = [Reg(axis, INDEX) for axis in range(region.rank)]
    values: list[Reg | Literal] = []
    inputs: list[Buffer] = []
    body: list[Load | Let | Store] = []
    for axes, own, operand in zip(region.axes, thin, kernel.inputs, strict=True):
        shape = [1 if one else sizes[axis] for axis, one in zip(axes, own, strict=True)]
        inputs.append(Buffer(len(inputs), operand.dtype, tuple(shape), Role.INPUT))
        made = Reg(len(index) + len(values), operand.dtype)
        values.append(made)
        body.append(Load(made, inputs[-1], _place([index[axis] for axis in axes], shape)))
    for line in kernel.lines:
        if isinstance(line, Literal):
            values.append(line)
            continue
        made = Reg(len(index) + len(values), kernel.dtypes[len(values)])
        body.append(Let(made, line.op, tuple([values[v] for v in line.args])))
        values.append(made)
    outputs: list[Buffer] = []
    for v in kernel.outputs:
        outputs.append(Buffer(len(inputs) + len(outputs), kernel.dtypes[v], tuple(sizes), Role.OUTPUT))
        body.append(Store(outputs[-1], _place(index, sizes), values[v]))
    nest: tuple[Any, ...] = tuple(body)
    for reg, extent in reversed(list(zip(index, sizes, strict=True))):
        nest = (For(reg, extent, nest, order=Order.ANY),)
    return LoopFunction(names, tuple(inputs), tuple(outputs), (), (), nest)


def _place(index: list[Reg], shape: list[DimLike]) -> Affine:
    """Index of an element of a row-major array; axes of extent 1 are repeated."""
    at, step = Affine(), 1
    for reg, extent in reversed(list(zip(index, shape, strict=True))):
        if isinstance(extent, Dim):
            at = at + Affine.of(reg) * step
            step = step * extent  # type: ignore[assignment]
    return at
