"""Kernels and whole programs by the toolchain that ``TENFERRO_CPU_TOOLCHAIN`` names, instead of LLVM.

Their arrays are contiguous: other operands of programs are copied, and those of single operations left to NumPy.
Kernels raise no floating-point warnings.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from tenferro_cpu.native.kernels._device import device
from tenferro_tensor import Op, Spec
from tenferro_tensor.backends import NativeProgram
from tenferro_tensor.device_model import Program
from tenferro_tensor.loop_ir import (
    INDEX,
    Affine,
    Buffer,
    For,
    Let,
    Load,
    LoopFunction,
    Order,
    Reg,
    Role,
    Statement,
    Store,
)
from tenferro_tensor_core import TenferroError, dim, evaluate

Kernel = Callable[..., Any]


def whole(function: LoopFunction, bare: bool, otherwise: Callable[..., Any] | None) -> NativeProgram:
    """A whole program by the toolchain; see `Backend.whole`."""
    program, inputs, outputs = device().build(function, "program"), function.inputs, function.outputs
    fresh = [b for b in outputs if b not in inputs]

    def run(sizes: tuple[int, ...], *raws: Any) -> Any:
        named = dict(zip(function.sizes, sizes, strict=True))
        if not function.accepts(named):
            if otherwise is None:
                function.refuse(named)
            return otherwise(sizes, *raws)
        arrays = {
            b: np.array(x, b.dtype, order="C") if b in outputs else np.require(x, b.dtype, ("C", "A"))
            for b, x in zip(inputs, raws, strict=True)
        }
        for b in fresh:
            arrays[b] = np.empty(tuple([evaluate(n, named) for n in b.shape]), b.dtype)
        program([arrays[b] for b in (*inputs, *fresh)], sizes)
        found = tuple([arrays[b] if arrays[b].ndim else arrays[b][()] for b in outputs])
        return found[0] if bare else found

    return NativeProgram(run)


def elementwise(op: Op, ins: Sequence[Spec], out: Spec, otherwise: Kernel) -> Kernel:
    """The kernel of an element-wise op by the toolchain, compiled by its first call.

    Args:
        op: the op.
        ins: specs of the operands.
        out: spec of the result.
        otherwise: the kernel for operands that are not contiguous arrays of one shape.

    Returns:
        The kernel; `otherwise` if the renderer has no form of the op.
    """
    dtypes, toolchain = tuple([s.dtype for s in ins]), device().toolchain()
    if not toolchain.renderer.supports(op.primitive, *dtypes):
        return otherwise

    @cache
    def program() -> Program | None:
        try:
            return toolchain.build(loop_of(op, dtypes, out.dtype), op.primitive.name)
        except TenferroError:
            return None

    def run(*raws: Any) -> Any:
        shape = getattr(raws[0], "shape", ())
        if not shape or len(raws) != len(dtypes) or not all(_fits(x, shape) for x in raws) or program() is None:
            return otherwise(*raws)
        made = np.empty(shape, out.dtype)
        run_program: Any = program()
        run_program([*[x.reshape(-1) for x in raws], made.reshape(-1)], (made.size,))
        return made

    return run


def _fits(x: Any, shape: tuple[int, ...]) -> bool:
    return x.__class__ is np.ndarray and x.shape == shape and x.flags.c_contiguous and x.flags.aligned


def loop_of(op: Op, ins: Sequence[np.dtype[Any]], out: np.dtype[Any]) -> LoopFunction:
    """An element-wise op on vectors of one symbolic size, as a function of loop nests."""
    n, i = dim("n"), Reg(0, INDEX)
    inputs = tuple([Buffer(k, d, (n,), Role.INPUT) for k, d in enumerate(ins)])
    result = Buffer(len(ins), out, (n,), Role.OUTPUT)
    loaded = [Reg(k + 1, d) for k, d in enumerate(ins)]
    value = Reg(len(ins) + 1, out)
    body: tuple[Statement, ...] = (
        *[Load(reg, b, Affine.of(i)) for reg, b in zip(loaded, inputs, strict=True)],
        Let(value, op, tuple(loaded)),
        Store(result, Affine.of(i), value),
    )
    return LoopFunction(("n",), inputs, (result,), (), (), (For(i, n, body, order=Order.ANY),))
