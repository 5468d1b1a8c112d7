"""`CudaRenderer`: element-wise kernels and reductions as CUDA C, for iteration spaces of any extents."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from tenferro_gpu.rendering._functions import rendered
from tenferro_gpu.rendering._group_writer import BLOCK
from tenferro_gpu.rendering._text import KernelText
from tenferro_gpu.source import library
from tenferro_tensor import Primitive
from tenferro_tensor.device_model import (
    Access,
    KernelIR,
    Launch,
    Over,
    ProgramSpec,
    Renderer,
    Variable,
)
from tenferro_tensor_core import UnsupportedError


@dataclass(frozen=True, slots=True)
class CudaRenderer(Renderer):
    """Writes one kernel for each way of walking an iteration space; its extents and strides are arguments.

    An operand's access speaks of the whole space: `UNIT` is contiguous in its order, `FIXED` is one element,
    `STRIDED` has a stride for each axis. Results lie in order. The space of a reduction has the axes that stay before
    those that go. A reduction over trailing axes gives a group of work items to each result, one over leading axes a
    single work item; either may split what goes into `parts`, which stay as a last axis of the results.

    Arguments of the kernel are the buffers, then as ``long long`` the number of elements, or of results, of elements
    that go into one, and of parts; the extents but for the first, of the axes that stay and of those that go; and the
    strides of every strided operand, in elements.

    Attributes:
        rank: number of axes of the space, of a reduction of those that stay.
        reduced: number of axes that go.
        wide: whether elements are counted in 64 bits.
        device: kind of device; the text is the same for CUDA and HIP.

    >>> from tenferro_tensor.catalog import mul
    >>> from tenferro_tensor.device_model import Apply, KernelIR, Operand
    >>> f4 = Operand(np.dtype("float32"))
    >>> spec = CudaRenderer().render(KernelIR((f4, f4), (Apply(mul.op(), (0, 1)),), (2,)), "product")
    >>> print(spec.source[spec.source.index("    for"):])
        for (long long i = start; i < n; i += step) {
            const float v0 = x0[i];
            const float v1 = x1[i];
            const float v2 = tf_mul(v0, v1);
            y0[i] = v2;
        }
    }
    <BLANKLINE>
    """

    rank: int = 1
    reduced: int = 1
    wide: bool = True
    device: str = "cuda"

    def supports(self, primitive: Primitive, *dtypes: Any) -> bool:
        """As the contract says."""
        return rendered(primitive, tuple(map(np.dtype, dtypes)))

    def render(self, kernel: KernelIR, name: str) -> ProgramSpec:
        """As the contract says; the variables are the extents of the space."""
        return self.together({name: kernel})[0]

    def together(self, kernels: dict[str, KernelIR]) -> list[ProgramSpec]:
        """Several kernels in one text, by name."""
        bodies, named = [], {}
        for name, kernel in kernels.items():
            _require_rendered(kernel)
            entry = "kernel_" + re.sub(r"\W", "_", name)  # not the name of a function of C
            named[entry] = kernel
            bodies.append(KernelText(kernel, entry, self.rank, self.reduced, self.wide).text())
        complexes = any(d.kind == "c" for kernel in kernels.values() for d in kernel.dtypes)
        source = "\n".join([library(complexes), *bodies])
        return [self._spec(kernel, entry, source) for entry, kernel in named.items()]

    def _spec(self, kernel: KernelIR, entry: str, source: str) -> ProgramSpec:
        inputs, outputs = len(kernel.inputs), len(kernel.outputs)
        axes = [f"e{k}" for k in range(self.rank)]
        if kernel.reduction is not None:
            axes += [f"r{k}" for k in range(self.reduced)]
        alone = kernel.reduction is None or kernel.reduction.over is Over.LEADING
        return ProgramSpec(
            source,
            entry,
            tuple([Variable(axis) for axis in axes]),
            inputs + outputs,
            tuple(range(inputs)),
            tuple(range(inputs, inputs + outputs)),
            Launch((BLOCK if alone else 1,), (BLOCK,)),
            (*kernel.inputs, *kernel.written),
            kernel=kernel,
        )


def _require_rendered(kernel: KernelIR) -> None:
    if kernel.reduction is not None and kernel.reduction.kind.startswith("arg"):
        raise UnsupportedError(
            f"{kernel.reduction.kind} has no form in a kernel of a GPU; end the kernel before it and run it on CuPy",
            reduction=kernel.reduction.kind,
        )
    if any(access is not Access.UNIT for access in kernel.writes):
        raise UnsupportedError("kernels of a GPU write results in order; leave the access of outputs out")
