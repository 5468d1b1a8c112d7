"""`CudaRenderer`: a `LoopFunction` as one kernel in CUDA C, for any sizes."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from tenferro_gpu.rendering._functions import rendered
from tenferro_gpu.rendering._group_writer import BLOCK
from tenferro_gpu.rendering._nest_kernels import NestKernel, Sharing
from tenferro_gpu.rendering._sharing import sharing_of
from tenferro_gpu.source import library
from tenferro_tensor import Primitive
from tenferro_tensor.device_model import Launch, ProgramSpec, Renderer
from tenferro_tensor.loop_ir import Call, For, Foreign, LoopFunction, Order, everything, registers, swapped
from tenferro_tensor_core import UnsupportedError, is_narrow


@dataclass(frozen=True, slots=True)
class CudaRenderer(Renderer):
    """Renders one kernel, whose arguments are the buffers, then the sizes as ``long long``.

    Work items or groups of them share the iterations of a parallel loop that is the only statement; one group runs any
    other statements in order.

    Methods take:
        primitive, dtypes: primitive and dtypes of its operands.
        kernel, kernels: the functions to render, with `together` by name.
        name: name of the kernel.

    Methods return:
        The rendered kernel or kernels, or a flag.

    Attributes:
        device: kind of device; the text is the same for CUDA and HIP.

    >>> from tenferro_tensor.catalog import mul
    >>> from tenferro_tensor.loop_ir import Affine, Buffer, Let, Load, Reg, Role, Store
    >>> from tenferro_tensor_core import dim
    >>> f4, n, i = np.dtype("float32"), dim("n"), Reg(0, np.dtype("int64"))
    >>> x, y = Buffer(0, f4, (n,), Role.INPUT), Buffer(1, f4, (n,), Role.OUTPUT)
    >>> a, b, at = Reg(1, f4), Reg(2, f4), Affine.of(i)
    >>> loop = For(i, n, (Load(a, x, at), Let(b, mul.op(), (a, a)), Store(y, at, b)), order=Order.ANY)
    >>> spec = CudaRenderer().render(LoopFunction(("n",), (x,), (y,), (), (), (loop,)), "square")
    >>> print(spec.source[spec.source.index("    for"):])
        for (long long r0 = start; r0 < n0; r0 += step) {
            const float r1 = b0[r0];
            const float r2 = tf_mul(r1, r1);
            b1[r0] = r2;
        }
    }
    <BLANKLINE>
    """

    device: str = "cuda"

    def supports(self, primitive: Primitive, *dtypes: Any) -> bool:
        """See `Renderer.supports`."""
        return rendered(primitive, tuple(map(np.dtype, dtypes)))

    def render(self, kernel: LoopFunction, name: str) -> ProgramSpec:
        """See `Renderer.render`."""
        return self.together({name: kernel})[0]

    def together(self, kernels: dict[str, LoopFunction]) -> list[ProgramSpec]:
        """Render several kernels as one text, by name."""
        entries = {"kernel_" + re.sub(r"\W", "_", name): kernel for name, kernel in kernels.items()}
        nests = {entry: _nest(kernel, entry) for entry, kernel in entries.items()}
        dtypes = {d for kernel in kernels.values() for d in _dtypes(kernel)}
        functions = library(any(d.kind == "c" for d in dtypes), any(map(is_narrow, dtypes)))
        source = "\n".join([functions, *[nest.text() for nest in nests.values()]])
        return [
            ProgramSpec.of(kernel, entry, source, Launch(_GRID[nests[entry].sharing], (BLOCK,)))
            for entry, kernel in entries.items()
        ]


_GRID = {Sharing.ITEMS: (BLOCK,), Sharing.GROUPS: (1,), Sharing.ONE: ()}
"""Iterations of the outer loops for each group; one group runs all statements in order."""


def _nest(kernel: LoopFunction, entry: str) -> NestKernel:
    if kernel.temporaries or kernel.constants or any(isinstance(s, Call | Foreign) for s in everything(kernel.body)):
        raise UnsupportedError(
            f"{entry} needs memory or libraries beside its buffers, which one kernel has not; compile a program of it"
        )
    if any(swapped(kernel.body)):
        raise UnsupportedError(f"{entry} swaps buffers, which one kernel cannot; compile a program of it")
    (first, *rest) = kernel.body or (None,)
    alone = isinstance(first, For) and first.order is Order.ANY and not rest
    sharing = sharing_of(first) if alone and isinstance(first, For) else Sharing.ONE
    buffers = tuple(dict.fromkeys([*kernel.inputs, *kernel.outputs]))
    return NestKernel(entry, sharing, (), kernel.body, None, buffers, kernel.sizes, (), (), ())


def _dtypes(kernel: LoopFunction) -> set[np.dtype[Any]]:
    found = {b.dtype for b in (*kernel.inputs, *kernel.outputs)}
    return found | {reg.dtype for s in everything(kernel.body) for reg in registers(s)}
