"""`CudaRenderer`: element-wise kernels and reductions as CUDA C, for iteration spaces of any extents."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from tenferro_gpu.rendering._functions import rendered
from tenferro_gpu.rendering._group_writer import BLOCK
from tenferro_gpu.rendering._kernel_function import extents_of, kernel_function, strides_of
from tenferro_gpu.rendering._nest_kernels import NestKernel, Sharing
from tenferro_gpu.source import library
from tenferro_tensor import Primitive
from tenferro_tensor.device_model import KernelIR, Launch, Over, ProgramSpec, Renderer, Variable
from tenferro_tensor_core import is_narrow


@dataclass(frozen=True, slots=True)
class CudaRenderer(Renderer):
    """Renders one kernel for all extents and strides of an iteration space, which are arguments.

    An operand's access refers to the whole space: `UNIT` is contiguous in its order, `FIXED` is one element, `STRIDED`
    has a stride for each axis. Results are contiguous. The space of a reduction has the kept axes before the reduced
    ones. A reduction over trailing axes assigns a group of work items to each result, one over leading axes a single
    work item.

    Arguments of the kernel are the buffers, then as ``long long`` the extents of the kept and of the reduced axes, and
    the strides of every strided operand, in elements.

    Methods take:
        primitive, dtypes: primitive and dtypes of its operands.
        kernel, kernels: the kernels to render, with `together` by name.
        name: name of the function.

    Methods return:
        The rendered kernel or kernels, or a flag.

    Attributes:
        rank: number of axes of the space, for a reduction of the kept ones.
        reduced: number of reduced axes.
        device: kind of device; the text is the same for CUDA and HIP.

    >>> from tenferro_tensor.catalog import mul
    >>> from tenferro_tensor.device_model import Apply, KernelIR, Operand
    >>> f4 = Operand(np.dtype("float32"))
    >>> spec = CudaRenderer().render(KernelIR((f4, f4), (Apply(mul.op(), (0, 1)),), (2,)), "product")
    >>> print(spec.source[spec.source.index("    for"):])
        for (long long r0 = start; r0 < n0; r0 += step) {
            const float r1 = b0[r0];
            const float r2 = b1[r0];
            const float r3 = tf_mul(r1, r2);
            b2[r0] = r3;
        }
    }
    <BLANKLINE>
    """

    rank: int = 1
    reduced: int = 1
    device: str = "cuda"

    def supports(self, primitive: Primitive, *dtypes: Any) -> bool:
        """See `Renderer.supports`."""
        return rendered(primitive, tuple(map(np.dtype, dtypes)))

    def render(self, kernel: KernelIR, name: str) -> ProgramSpec:
        """See `Renderer.render`; the variables are the extents of the space."""
        return self.together({name: kernel})[0]

    def together(self, kernels: dict[str, KernelIR]) -> list[ProgramSpec]:
        """Render several kernels as one text, by name."""
        entries = {"kernel_" + re.sub(r"\W", "_", name): kernel for name, kernel in kernels.items()}
        nests = {entry: self._nest(kernel, entry) for entry, kernel in entries.items()}
        dtypes = {d for kernel in kernels.values() for d in kernel.dtypes}
        functions = library(any(d.kind == "c" for d in dtypes), any(map(is_narrow, dtypes)))
        source = "\n".join([functions, *[nest.text() for nest in nests.values()]])
        return [self._spec(kernel, nests[entry], source) for entry, kernel in entries.items()]

    def _nest(self, kernel: KernelIR, entry: str) -> NestKernel:
        reduced = 0 if kernel.reduction is None else self.reduced
        kept, gone = extents_of(self.rank, reduced)
        strides = [strides_of(o.access, k, [*kept, *gone]) for k, o in enumerate(kernel.inputs)]
        function = kernel_function(kernel, self.rank, reduced, strides)
        sharing = Sharing.ITEMS
        if kernel.reduction is not None:
            sharing = Sharing.GROUPS if kernel.reduction.over is Over.TRAILING else Sharing.ITEMS
        sharing = sharing if self.rank else Sharing.ONE
        buffers = (*function.inputs, *function.outputs)
        return NestKernel(entry, sharing, (), function.body, None, buffers, function.sizes, (), (), ())

    def _spec(self, kernel: KernelIR, nest: NestKernel, source: str) -> ProgramSpec:
        inputs, outputs = len(kernel.inputs), len(kernel.outputs)
        return ProgramSpec(
            source,
            nest.entry,
            tuple([Variable(name) for name in nest.sizes if name[0] in "er"]),
            inputs + outputs,
            tuple(range(inputs)),
            tuple(range(inputs, inputs + outputs)),
            Launch((BLOCK if nest.sharing is Sharing.ITEMS else 1,), (BLOCK,)),
            (*kernel.inputs, *kernel.written),
            kernel=kernel,
        )
